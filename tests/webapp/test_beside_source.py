"""Files beside sources: who gets them, in parts too, and what a rater sees, hears and reaches by keys."""

import base64
import hashlib
import http.client
import re
from pathlib import Path
from typing import Any

import media_files as samples
import pytest

pytest.importorskip("playwright.sync_api")

from limits import ANSWER
from playwright.sync_api import expect
from rating_board import (
    SECRET_NAMES,
    Wire,
    item_on,
    items_on,
    own_campaign,
    press_at,
    save,
    serious,
    stored,
    wait_for_scores,
    wait_for_width,
)
from sqlalchemy import select
from test_gate import ask, cookie_of, exchange

from creamtea.access import sessions
from creamtea.human.media import store_media
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.tables import Campaign, Item

pytestmark = pytest.mark.browser

PICTURE, SOUND = samples.png(1600, 400), samples.wav(20.0)
TYPES = {
    "tapir.png": "image/png",
    "tapir.wav": "audio/wav",
    "tapir.mp4": "video/mp4",
    "tapir.webm": "video/webm",
    "tapir.vtt": "text/vtt",
}
CONTENTS = {"tapir.png": PICTURE, "tapir.wav": SOUND, "tapir.mp4": samples.MP4}
SIZES = {hashlib.sha256(content).hexdigest(): len(content) for content in CONTENTS.values()}
# A second of film in changing colours, which the browser itself makes: one that it can play.
FILMED = """async () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [160, 90];
    const pen = canvas.getContext("2d");
    const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: "video/webm;codecs=vp8" });
    const parts = [];
    recorder.ondataavailable = (event) => parts.push(event.data);
    const stopped = new Promise((resolve) => { recorder.onstop = resolve; });
    recorder.start();
    for (let frame = 0; frame < 25; frame += 1) {
        pen.fillStyle = `hsl(${frame * 14} 80% 50%)`;
        pen.fillRect(0, 0, 160, 90);
        await new Promise((resolve) => setTimeout(resolve, 40));
    }
    recorder.stop();
    await stopped;
    return btoa(String.fromCharCode(...new Uint8Array(await new Blob(parts).arrayBuffer())));
}"""


def keep(site: Any, tmp_path: Path, *names: str) -> list[dict[str, str]]:
    """The entries of these files, which are in the site's artefact store."""
    return [keep_bytes(site, tmp_path, name, CONTENTS[name]) for name in names]


def keep_bytes(site: Any, tmp_path: Path, name: str, content: bytes) -> dict[str, str]:
    (tmp_path / name).write_bytes(content)
    store = ArtefactStore(Path(site.environment["CREAMTEA_HOME"]) / "artefacts")
    return {"digest": store.put_file(tmp_path / name), "type": TYPES[name], "description": ""}


def campaign_with(
    site: Any,
    name: str,
    entries: list[dict[str, str]],
    items: Any = None,
    sizes: dict[str, int] = SIZES,
    **fields: Any,
) -> int:
    items = items or [("A cup of tea.", ["Eine Tasse Tee."]), ("A scone.", ["Ein Scone."])]
    own_campaign(site.database, name, items, **{"protocol": "da", "item_media": entries, **fields})
    with site.database.transaction() as session:
        campaign = session.scalars(select(Campaign).where(Campaign.name == name)).one()
        store_media(session, campaign.id, entries, sizes)
        return campaign.id


# ---------------------------------------------------------------- who gets them


def answer(site: Any, address: str, method: str = "GET", **headers: str) -> Any:
    """Status, headers and bytes."""
    connection = http.client.HTTPConnection(site.url.removeprefix("http://"), timeout=ANSWER)
    connection.request(method, address, headers={name.replace("_", "-"): v for name, v in headers.items()})
    got = connection.getresponse()
    found = (got.status, got.headers, got.read())
    connection.close()
    return found


def test_only_people_of_the_campaign_get_a_file(site, tmp_path: Path) -> None:
    (entry,) = keep(site, tmp_path, "tapir.png")
    mine = campaign_with(site, "pangolin-mine", [entry])
    other = campaign_with(site, "pangolin-other", [])
    address = f"/beside-source/{entry['digest']}"
    elsewhere = sessions.create_link(site.database, "organiser", campaign_id=other)
    refused = {
        "rater of another campaign": site.rater_link("pangolin-other", "curious")[0],
        "reader": site.new_link("reader"),
        "organiser of another campaign": f"#{elsewhere}",
    }
    for who, link in refused.items():
        cookie = cookie_of(exchange(site, link))
        status, headers, body = answer(site, address, Cookie=cookie)
        assert (status, headers["Content-Type"].split(";")[0]) == (404, "text/plain"), who
        unknown = answer(site, f"/beside-source/{'0' * 64}", Cookie=cookie)
        assert (status, body) == (unknown[0], unknown[2])
    assert answer(site, address)[0] == 401
    here = sessions.create_link(site.database, "organiser", campaign_id=mine)
    allowed = {
        "rater": site.rater_link("pangolin-mine", "invited")[0],
        "organiser": site.new_link("organiser"),
        "organiser of this campaign": f"#{here}",
    }
    for who, link in allowed.items():
        cookie = cookie_of(exchange(site, link))
        status, headers, body = answer(site, address, Cookie=cookie, Accept_Encoding="gzip")
        assert (status, body) == (200, PICTURE), who
        assert headers["Content-Type"] == "image/png"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Content-Encoding"] is None
        assert "tapir" not in str(headers)


@pytest.mark.parametrize(
    "name",
    ["../../creamtea.db", "..%2F..%2Fcreamtea.db", "x", "", "A" * 64, "0" * 63, "0" * 64 + "/x", "%00"],
)
def test_an_address_leads_to_files_of_campaigns_alone(site, name: str) -> None:
    cookie = cookie_of(exchange(site, site.new_link("organiser")))
    status, _, body = answer(site, f"/beside-source/{name}", Cookie=cookie)
    assert status in (301, 307, 400, 404) or b"<!doctype html>" in body.lower(), "Streamlit's page, say"
    assert b"SQLite format" not in body


def test_a_withdrawn_link_ends_it(site, tmp_path: Path) -> None:
    (entry,) = keep(site, tmp_path, "tapir.png")
    campaign_with(site, "pangolin-withdrawn", [entry])
    link, rater_id = site.rater_link("pangolin-withdrawn", "gone")
    cookie = cookie_of(exchange(site, link))
    address = f"/beside-source/{entry['digest']}"
    assert answer(site, address, Cookie=cookie)[0] == 200
    sessions.revoke_rater(site.database, rater_id)
    assert answer(site, address, Cookie=cookie)[0] == 401


def test_parts_of_a_file(site, tmp_path: Path) -> None:
    (entry,) = keep(site, tmp_path, "tapir.wav")
    campaign_with(site, "pangolin-ranges", [entry])
    cookie = cookie_of(exchange(site, site.rater_link("pangolin-ranges", "player")[0]))
    address, size = f"/beside-source/{entry['digest']}", len(SOUND)
    parts = {
        "bytes=0-": (0, size),
        "bytes=100-199": (100, 200),
        f"bytes={size - 10}-{size + 99}": (size - 10, size),
        "bytes=-7": (size - 7, size),
        f"bytes=-{size + 1}": (0, size),
    }
    for asked, (start, stop) in parts.items():
        status, headers, body = answer(site, address, Cookie=cookie, Range=asked)
        assert (status, body) == (206, SOUND[start:stop]), asked
        assert headers["Content-Range"] == f"bytes {start}-{stop - 1}/{size}"
        assert headers["Content-Length"] == str(stop - start)
    for asked in (f"bytes={size}-", "bytes=-0"):
        status, headers, body = answer(site, address, Cookie=cookie, Range=asked)
        assert (status, headers["Content-Range"], body) == (416, f"bytes */{size}", b"")
    for asked in ("bytes=5-2", "bytes=-", "bytes=0-1,4-5", "lines=0-1", f"bytes={'9' * 30}-"):
        assert answer(site, address, Cookie=cookie, Range=asked)[0] == 200, asked
    tag = f'"{entry["digest"]}"'
    assert answer(site, address, Cookie=cookie, Range="bytes=0-0", If_Range=tag)[0] == 206
    assert answer(site, address, Cookie=cookie, Range="bytes=0-0", If_Range='"other"')[0] == 200
    status, headers, body = answer(site, address, "HEAD", Cookie=cookie)
    shown = (status, headers["Content-Length"], headers["Accept-Ranges"], body)
    assert shown == (200, str(size), "bytes", b"")
    assert answer(site, address, "POST", Cookie=cookie)[0] == 405


def test_a_file_that_is_gone_is_no_traceback(site, tmp_path: Path) -> None:
    campaign_with(
        site, "pangolin-lost", [{"digest": hashlib.sha256(samples.MP4).hexdigest(), "type": "video/mp4"}]
    )
    digest = hashlib.sha256(samples.MP4).hexdigest()
    cookie = cookie_of(exchange(site, site.new_link("organiser")))
    status, _, body = answer(site, f"/beside-source/{digest}", Cookie=cookie)
    assert (status, body) == (503, b"The file cannot be read at the moment.")
    assert ask(site, "GET", f"/beside-source/{digest}").status == 401


# ---------------------------------------------------------------- what raters get


def test_a_picture_and_a_sound_beside_the_source(site, open_page, tmp_path: Path) -> None:
    entries = keep(site, tmp_path, "tapir.png", "tapir.wav")
    entries[0]["description"] = "A cup of <b>tea</b>"
    campaign_with(site, "pangolin-beside", entries)
    link, rater_id = site.rater_link("pangolin-beside", "looks")
    wires: list[Wire] = []
    page = open_page(link, before=lambda page: wires.append(Wire(page)), slow_clock=True)
    item_on(page, 1, 2)
    picture = page.get_by_role("img", name="A cup of <b>tea</b>")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 1600)
    assert picture.bounding_box()["width"] <= 1280
    sound = page.locator(".board audio")
    expect(sound).to_have_attribute("aria-label", "Sound 2 of the source")
    expect(sound).to_have_js_property("autoplay", False)
    expect(sound).to_have_js_property("paused", True)
    expect(sound).to_have_js_property("duration", 20)
    sound.evaluate("player => { player.currentTime = 15 }")  # by a part of the file
    expect(sound).to_have_js_property("seeking", False)
    expect(sound).to_have_js_property("currentTime", 15)
    assert serious(page) == []

    source = page.locator(".board .source > .text").text_content()
    sound.focus()
    page.keyboard.press("5")  # a key of the player's
    page.keyboard.press("ArrowRight")
    wait_for_scores(page, ["–"])
    page.get_by_role("link", name="A cup of <b>tea</b>").focus()
    page.keyboard.press("Tab")
    expect(sound).to_be_focused()
    press_at(page, 0, 70, steps=101)
    save(page)
    item_on(page, 2, 2)
    assert list(stored(site.database, rater_id, source).values()) == [70]
    everything = wires[0].everything()
    assert not [name for name in SECRET_NAMES if name.encode() in everything]


CUES = "player => Array.from(player.textTracks[0].cues ?? [], (cue) => cue.text).join()"


def test_captions_of_a_sound_are_text_below_it(site, open_page, tmp_path: Path) -> None:
    """Browsers show them nowhere. They go by the rules of their file."""
    (entry,) = keep(site, tmp_path, "tapir.wav")
    captions = keep_bytes(site, tmp_path, "tapir.vtt", samples.CAPTIONS)["digest"]
    name = "pangolin-captions"
    sizes = SIZES | {captions: len(samples.CAPTIONS)}
    campaign_with(site, name, [{**entry, "captions": captions}], sizes=sizes)
    link, _ = site.rater_link(name, "reads")
    page = open_page(link, phone=True)
    item_on(page, 1, 2)
    player = page.locator(".board audio")
    expect(player.locator("track")).to_have_js_property("readyState", 2)  # HTMLTrackElement.LOADED
    shown = page.locator(".board .captions")
    expect(shown).to_have_text("")
    player.evaluate("player => { player.currentTime = 5 }")
    expect(shown).to_have_text("Eine Tasse Tee, bitte")
    player.evaluate("player => { player.currentTime = 16 }")
    expect(shown).to_have_text("")
    wait_for_width(page, 390)
    assert serious(page) == []
    address = f"/beside-source/{captions}"
    cookie = cookie_of(exchange(site, site.rater_link(name, "asks")[0]))
    status, headers, body = answer(site, address, Cookie=cookie)
    assert (status, headers["Content-Type"].split(";")[0], body) == (200, "text/vtt", samples.CAPTIONS)
    campaign_with(site, "pangolin-captions-other", [])
    stranger = cookie_of(exchange(site, site.rater_link("pangolin-captions-other", "curious")[0]))
    assert answer(site, address, Cookie=stranger)[0] == 404
    assert answer(site, address)[0] == 401


def test_a_film_plays_with_its_captions_on(chromium, site, open_page, tmp_path: Path) -> None:
    studio = chromium.new_page()
    filmed = base64.b64decode(studio.evaluate(FILMED))
    studio.close()
    entry = keep_bytes(site, tmp_path, "tapir.webm", filmed)
    captions = keep_bytes(site, tmp_path, "tapir.vtt", samples.CAPTIONS)["digest"]
    sizes = {entry["digest"]: len(filmed), captions: len(samples.CAPTIONS)}
    campaign_with(site, "pangolin-subtitled", [{**entry, "captions": captions}], sizes=sizes)
    page = open_page(site.rater_link("pangolin-subtitled", "watches")[0])
    item_on(page, 1, 2)
    film = page.locator(".board video")
    expect(film.locator("track")).to_have_js_property("readyState", 2)
    assert film.evaluate("player => player.textTracks[0].mode") == "showing"
    assert film.evaluate(CUES) == "Eine <b>Tasse</b> Tee, bitte"
    expect(film).to_have_attribute("aria-label", "Video 1 of the source")
    expect(film).to_have_js_property("videoWidth", 160)
    expect(film).to_have_js_property("paused", True)
    film.evaluate("player => { player.muted = true; return player.play(); }")
    expect(film).to_have_js_property("ended", True)
    assert film.evaluate("player => player.currentTime") > 0.5
    assert film.evaluate("player => player.getVideoPlaybackQuality().totalVideoFrames") > 5


def test_files_on_a_phone(site, open_page, tmp_path: Path) -> None:
    entries = keep(site, tmp_path, "tapir.png", "tapir.wav")
    items = [("One.", ["Eins."]), ("Two.", ["Zwei."])]
    campaign_with(
        site,
        "pangolin-phone-files",
        entries,
        items,
        pages=[2],
        item_document="d",
        settings={"unit": "document"},
    )
    link, _ = site.rater_link("pangolin-phone-files", "phone")
    page = open_page(link, phone=True)
    items_on(page, 1, 2, 2)
    expect(page.locator(".board img")).to_have_count(2)
    for picture in page.locator(".board img").all():
        expect(picture).to_have_js_property("complete", True)
    wait_for_width(page, 390)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Image 1 of the source").first.tap()
    expect(opened.value).to_have_url(re.compile(r"/beside-source/[0-9a-f]{64}$"))


def test_practice_has_files_and_one_that_cannot_be_shown_says_so(site, open_page, tmp_path: Path) -> None:
    entries = keep(site, tmp_path, "tapir.mp4")  # a head without a film
    campaign_with(site, "pangolin-film", entries)
    guidance = {"steps": {"0": [90, 100]}, "explanation": "Yes."}
    with site.database.transaction() as session:
        number = session.scalars(select(Campaign.id).where(Campaign.name == "pangolin-film")).one()
        item = session.scalars(select(Item).where(Item.campaign_id == number).order_by(Item.position)).first()
        item.kind, item.guidance, item.segment_index = "tutorial", guidance, -1
    link, _ = site.rater_link("pangolin-film", "practises")
    page = open_page(link)
    expect(page.get_by_text("Practice", exact=True)).to_be_visible()
    expect(page.get_by_text("Video 1 of the source: This file could not be loaded.")).to_be_visible()
    assert serious(page) == []
    press_at(page, 0, 95, steps=101)
    save(page)
    expect(page.get_by_text("As expected")).to_be_visible()
    expect(page.get_by_text("Video 1 of the source: This file could not be loaded.")).to_have_count(1)


def test_an_organiser_looks_at_the_files(site, open_page, tmp_path: Path) -> None:
    entries = keep(site, tmp_path, "tapir.png", "tapir.wav")
    entries[1]["captions"] = keep_bytes(site, tmp_path, "tapir.vtt", samples.CAPTIONS)["digest"]
    sizes = SIZES | {entries[1]["captions"]: len(samples.CAPTIONS)}
    settings = {"baseline": "tapir-greedy", "delta": 2.0}
    number = campaign_with(site, "pangolin-looked", entries, sizes=sizes, settings=settings, state="draft")
    page = open_page(site.new_link("organiser").replace("/enter#", f"/enter?campaign={number}#"))
    expect(page.get_by_role("heading", name="Files beside sources")).to_be_visible()
    expect(page.get_by_text(re.compile(r"3 beside sources, \d+\.\d MB"))).to_be_visible()
    picture = page.locator(".beside-source img").first
    expect(picture).to_have_js_property("naturalWidth", 1600)
    expect(page.locator(".beside-source audio")).to_have_count(2)
    expect(page.get_by_role("link", name="Captions")).to_have_count(2)
    assert serious(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    wait_for_width(page, 390)
