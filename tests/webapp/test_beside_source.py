"""Media files: who gets them, in parts too, and what a rater sees, hears and reaches by keys."""

import base64
import http.client
import re
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from limits import ANSWER
from marked_text import click_on
from playwright.sync_api import expect
from rating_board import (
    SECRET_NAMES,
    WHOLE,
    Wire,
    all_done,
    item_on,
    own_campaign,
    press_at,
    save,
    serious,
    wait_for_scores,
    wait_for_width,
)
from sqlalchemy import select
from test_gate import cookie_of, exchange

from creamtea.access import sessions
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.tables import Assignment, Rating

pytestmark = pytest.mark.browser

PICTURE, SOUND = samples.png(1600, 400), samples.wav(20.0)
FILES = {
    "image/png": PICTURE,
    "audio/wav": SOUND,
    "video/mp4": samples.MP4,  # a head without a film
    "text/vtt": samples.CAPTIONS,
}
ITEMS = [("A cup of tea.", ["Eine Tasse Tee."]), ("A scone.", ["Ein Scone."])]
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


class Files:
    """Puts files into the site's artefact store, and makes campaigns with them."""

    def __init__(self, site: Any, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.store = ArtefactStore(Path(site.environment["CREAMTEA_HOME"]) / "artefacts")
        self.sizes: dict[str, int] = {}

    def entry(self, kind: str, content: bytes | None = None, *, captions: bool = False) -> dict[str, str]:
        """What an item says of a file of this type, by default that of `FILES`."""
        path = self.folder / "tapir"  # a name that nobody may see
        path.write_bytes(FILES[kind] if content is None else content)
        digest = self.store.put_file(path)
        self.sizes[digest] = path.stat().st_size
        entry = {"digest": digest, "type": kind, "description": ""}
        return entry | ({"captions": self.entry("text/vtt")["digest"]} if captions else {})

    def fields(self, *entries: dict[str, str], **fields: Any) -> dict[str, Any]:
        """Fields of a campaign that shows these files beside each source."""
        return {"protocol": "da", "item_media": entries, "media_sizes": self.sizes, **fields}

    def campaign(self, name: str, *entries: dict[str, str], **fields: Any) -> int:
        return own_campaign(self.site.database, name, ITEMS, **self.fields(*entries, **fields))


@pytest.fixture
def files(site: Any, tmp_path: Path) -> Files:
    return Files(site, tmp_path)


# ---------------------------------------------------------------- who gets them


def answer(site: Any, address: str, method: str = "GET", **headers: str) -> Any:
    """Status, headers and bytes."""
    connection = http.client.HTTPConnection(site.url.removeprefix("http://"), timeout=ANSWER)
    connection.request(method, address, headers={name.replace("_", "-"): v for name, v in headers.items()})
    got = connection.getresponse()
    found = (got.status, got.headers, got.read())
    connection.close()
    return found


def test_only_people_of_the_campaign_get_a_file(site, files: Files) -> None:
    entry = files.entry("audio/wav", captions=True)
    mine = files.campaign("pangolin-mine", entry)
    other = files.campaign("pangolin-other")
    here, elsewhere = (
        f"#{sessions.create_link(site.database, 'organiser', campaign_id=number)}" for number in (mine, other)
    )
    wanted = {"digest": ("audio/wav", SOUND), "captions": ("text/vtt", samples.CAPTIONS)}
    refused = {
        "rater of another campaign": site.rater_link("pangolin-other", "curious")[0],
        "reader": site.new_link("reader"),
        "organiser of another campaign": elsewhere,
    }
    for who, link in refused.items():
        cookie = cookie_of(exchange(site, link))
        unknown = answer(site, f"/beside-source/{'0' * 64}", Cookie=cookie)
        for file in wanted:
            status, headers, body = answer(site, f"/beside-source/{entry[file]}", Cookie=cookie)
            assert (status, headers["Content-Type"].split(";")[0]) == (404, "text/plain"), who
            assert (status, body) == (unknown[0], unknown[2])
    allowed = {
        "rater": site.rater_link("pangolin-mine", "invited")[0],
        "organiser": site.new_link("organiser"),
        "organiser of this campaign": here,
    }
    for file in wanted:
        assert answer(site, f"/beside-source/{entry[file]}")[0] == 401
    for who, link in allowed.items():
        cookie = cookie_of(exchange(site, link))
        for file, (kind, content) in wanted.items():
            address = f"/beside-source/{entry[file]}"
            packed = {} if kind == "text/vtt" else {"Accept_Encoding": "gzip"}  # sounds are never compressed
            status, headers, body = answer(site, address, Cookie=cookie, **packed)
            assert (status, body) == (200, content), who
            assert headers["Content-Type"].split(";")[0] == kind
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


def test_parts_of_a_file_until_the_link_is_revoked(site, files: Files) -> None:
    entry = files.entry("audio/wav")
    files.campaign("pangolin-ranges", entry)
    link, rater_id = site.rater_link("pangolin-ranges", "player")
    cookie = cookie_of(exchange(site, link))
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
    sessions.revoke_rater(site.database, rater_id)
    assert answer(site, address, Cookie=cookie)[0] == 401


def test_a_file_that_is_gone_is_no_traceback(site, files: Files) -> None:
    digest = "1" * 64
    files.sizes[digest] = 1
    files.campaign("pangolin-lost", {"digest": digest, "type": "video/mp4"})
    cookie = cookie_of(exchange(site, site.new_link("organiser")))
    status, _, body = answer(site, f"/beside-source/{digest}", Cookie=cookie)
    assert (status, body) == (503, b"The file cannot be read at the moment.")
    assert answer(site, f"/beside-source/{digest}")[0] == 401


# ---------------------------------------------------------------- what raters get


def test_a_picture_and_a_sound_beside_the_source(rate, files: Files) -> None:
    picture = files.entry("image/png") | {"description": "A cup of <b>tea</b>"}
    wire = Wire()
    fields = files.fields(picture, files.entry("audio/wav"))
    rater, page = rate(ITEMS, before=wire.tap, slow_clock=True, **fields)
    shown = page.get_by_role("img", name="A cup of <b>tea</b>")
    expect(shown).to_be_visible()
    expect(shown).to_have_js_property("naturalWidth", 1600)
    assert shown.bounding_box()["width"] <= 1280
    sound = page.locator(".board audio")
    expect(sound).to_have_attribute("aria-label", "Sound 2 of the source")
    expect(sound).to_have_js_property("autoplay", False)
    expect(sound).to_have_js_property("paused", True)
    expect(sound).to_have_js_property("duration", 20)
    sound.evaluate("player => { player.currentTime = 15 }")  # by a part of the file
    expect(sound).to_have_js_property("seeking", False)
    expect(sound).to_have_js_property("currentTime", 15)
    assert serious(page) == []

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
    assert rater.stored(ITEMS[0][0]) == {ITEMS[0][1][0]: 70}
    everything = wire.everything()
    assert not [name for name in SECRET_NAMES if name.encode() in everything]


def test_files_and_captions_on_a_phone(rate, files: Files) -> None:
    """Browsers show captions of a sound nowhere: they are text below it, by the rules of their file."""
    entries = (files.entry("image/png"), files.entry("audio/wav", captions=True))
    _, page = rate(ITEMS, pages=[2], phone=True, **files.fields(*entries), **WHOLE)
    expect(page.locator(".board img")).to_have_count(2)
    for picture in page.locator(".board img").all():
        expect(picture).to_have_js_property("complete", True)
    player = page.locator(".board audio").first
    expect(player.locator("track")).to_have_js_property("readyState", 2)  # HTMLTrackElement.LOADED
    shown = page.locator(".board .captions").first
    expect(shown).to_have_text("")
    player.evaluate("player => { player.currentTime = 5 }")
    expect(shown).to_have_text("Eine Tasse Tee, bitte")
    player.evaluate("player => { player.currentTime = 16 }")
    expect(shown).to_have_text("")
    wait_for_width(page, 390)
    assert serious(page) == []
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Image 1 of the source").first.tap()
    expect(opened.value).to_have_url(re.compile(r"/beside-source/[0-9a-f]{64}$"))


CUES = "player => Array.from(player.textTracks[0].cues ?? [], (cue) => cue.text).join()"


def test_practice_has_a_film_with_captions_and_says_which_cannot_be_shown(
    chromium, rate, files: Files
) -> None:
    studio = chromium.new_page()
    filmed = base64.b64decode(studio.evaluate(FILMED))
    studio.close()
    entries = (files.entry("video/webm", filmed, captions=True), files.entry("video/mp4"))
    guidance = {"steps": {"0": [90, 100]}, "explanation": "Yes."}
    practice = {"item_kind": "tutorial", "item_guidance": guidance, "item_segment_index": -1}
    _, page = rate(ITEMS[:1], **files.fields(*entries), **practice)
    film = page.get_by_label("Video 1 of the source")
    expect(film.locator("track")).to_have_js_property("readyState", 2)
    assert film.evaluate("player => player.textTracks[0].mode") == "showing"
    assert film.evaluate(CUES) == "Eine <b>Tasse</b> Tee, bitte"
    expect(film).to_have_js_property("videoWidth", 160)
    expect(film).to_have_js_property("paused", True)
    film.evaluate("player => { player.muted = true; return player.play(); }")
    expect(film).to_have_js_property("ended", True)
    assert film.evaluate("player => player.currentTime") > 0.5
    assert film.evaluate("player => player.getVideoPlaybackQuality().totalVideoFrames") > 5
    lost = page.get_by_text("Video 2 of the source: This file could not be loaded.")
    expect(lost).to_be_visible()
    assert serious(page) == []
    press_at(page, 0, 95, steps=101)
    save(page)
    expect(page.get_by_text("As expected")).to_be_visible()
    expect(lost).to_have_count(1)
    expect(film).to_have_count(1)


def test_outputs_that_are_files(rate, files: Files) -> None:
    """Two of four systems have the same sound, one a picture beside its text: three outputs, by letters."""
    spoken, other = files.entry("audio/wav", captions=True), files.entry("audio/wav", samples.wav(5.0))
    picture = files.entry("image/png") | {"description": "A poster with the text"}
    entries = [entry | {"system": system} for system, entry in enumerate((spoken, spoken, picture, other))]
    items = [("A cup of tea.", ["", "", "Eine Tasse Tee.", ""]), ("A scone.", ["", "", "Ein Scone.", ""])]
    wire = Wire()
    fields = files.fields(*entries, protocol="contrastive-da")
    rater, page = rate(items, before=wire.tap, slow_clock=True, **fields)
    cards = page.locator(".outputs > li")
    expect(cards).to_have_count(3)
    expect(page.locator(".source .media > *")).to_have_count(0)
    expect(page.get_by_text("(empty)").locator("visible=true")).to_have_count(0)
    letters = {}  # what is in the card → its letter
    for number in range(3):
        card, letter = cards.nth(number), "ABC"[number]
        if card.locator("img").count():
            letters["picture"] = letter
            image = card.get_by_role("img", name=f"Translation {letter}: A poster with the text")
            expect(image).to_have_js_property("naturalWidth", 1600)
            expect(card.locator(".text")).to_have_text("Eine Tasse Tee.")
        else:
            sound = card.get_by_label(f"Sound 1 of translation {letter}")
            expect(sound).to_have_js_property("readyState", 4)  # HTMLMediaElement.HAVE_ENOUGH_DATA
            letters["spoken" if card.locator("track").count() else "other"] = letter
    assert set(letters) == {"picture", "spoken", "other"}
    assert serious(page) == []

    heard = cards.nth("ABC".index(letters["spoken"]))
    heard.locator("audio").evaluate("player => { player.currentTime = 5 }")
    expect(heard.locator(".captions")).to_have_text("Eine Tasse Tee, bitte")
    heard.locator("audio").focus()
    page.keyboard.press("5")  # a key of the player's
    wait_for_scores(page, ["–"] * 3)
    expect(heard).to_have_class(re.compile("chosen"))
    page.set_viewport_size({"width": 390, "height": 844})
    wait_for_width(page, 390)
    assert serious(page) == []
    page.set_viewport_size({"width": 1280, "height": 720})
    for number in range(3):
        press_at(page, number, 10 + 5 * number, steps=26)
    save(page)
    item_on(page, 2, 2)
    with rater.database.session() as session:
        own = select(Rating.system, Rating.step).join(Assignment, Assignment.id == Rating.assignment_id)
        steps = dict(session.execute(own.where(Assignment.rater_id == rater.rater_id)).all())
    assert len(steps) == 4
    assert steps[0] == steps[1]
    assert len({*steps.values()}) == 3
    everything = wire.everything()
    assert not [name for name in SECRET_NAMES if name.encode() in everything]
    assert not re.search(rb'"system":', everything)


def test_errors_are_marked_in_the_text_beside_a_file(rate, files: Files) -> None:
    spoken = files.entry("audio/wav") | {"system": 0}
    text = "Eine Tasse Tee."
    rater, page = rate([("A cup of tea.", [text])], **files.fields(spoken, protocol="esa"))
    expect(page.get_by_label("Sound 1 of the translation")).to_have_js_property("readyState", 4)
    click_on(page, "Tasse", "Tasse")
    page.locator(".board .error.current .minor").click()
    press_at(page, 0, 67, steps=101)
    wait_for_scores(page, ["67"])
    assert serious(page) == []
    save(page)
    all_done(page)
    span = {"start": 5, "end": 9, "severity": "minor"}
    assert rater.payloads("A cup of tea.") == {text: {"score": 67, "spans": [span]}}


def test_an_organiser_looks_at_the_files(site, open_page, files: Files) -> None:
    of_output = files.entry("audio/wav", samples.wav(5.0)) | {"system": 0}
    entries = (files.entry("image/png"), files.entry("audio/wav", captions=True), of_output)
    settings = {"baseline": "tapir-greedy", "delta": 2.0}
    number = files.campaign("pangolin-looked", *entries, settings=settings, state="draft")
    page = open_page(site.new_link("organiser").replace("/enter#", f"/enter?campaign={number}#"))
    expect(page.get_by_role("heading", name="Media files")).to_be_visible()
    expect(page.get_by_text(re.compile(r"4 of sources and outputs, \d+\.\d MB"))).to_be_visible()
    expect(page.locator(".beside-source img").first).to_have_js_property("naturalWidth", 1600)
    expect(page.locator(".beside-source audio")).to_have_count(4)
    expect(page.locator(".beside-source figcaption", has_text="tapir-greedy")).to_have_count(2)
    expect(page.get_by_role("link", name="Captions")).to_have_count(2)
    assert serious(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    wait_for_width(page, 390)
