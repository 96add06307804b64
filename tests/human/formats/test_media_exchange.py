"""Files of sources and outputs go out with a campaign and come back, or are counted as lost."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from small_campaigns import add_rater, make_campaign, rate_all
from sqlalchemy import select
from table_rows import all_of

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, NotKept
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.media import store_media
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import CampaignMedia

CONTENTS = {"image/png": samples.png(), "audio/wav": samples.wav(0.1), "text/vtt": samples.CAPTIONS}
DIGESTS = {media: hashlib.sha256(content).hexdigest() for media, content in CONTENTS.items()}
PICTURE = {"digest": DIGESTS["image/png"], "type": "image/png", "description": "<b>A cup</b>"}
SOUND = {"digest": DIGESTS["audio/wav"], "type": "audio/wav", "description": "A voice"}
SOUND |= {"captions": DIGESTS["text/vtt"]}
MEDIA = [[PICTURE], [PICTURE, SOUND], [{"system": 0, **SOUND}], [{"system": 1, **SOUND}]]  # of each item
TEXTS = ("Tee", "Milch", "Tee & <b>", "Saft")
Export = Callable[[str], tuple[Path, dict[str, int | None]]]


@pytest.fixture
def elsewhere(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "other-artefacts")


@pytest.fixture
def out(database: Database, store: ArtefactStore, tmp_path: Path) -> Export:
    """Exports a rated campaign: the folder, and what it does not keep."""
    for media, content in CONTENTS.items():
        path = tmp_path / media.replace("/", ".")
        path.write_bytes(content)
        store.put_file(path)
    items = [
        {"media": media, "systems": [media[0].get("system", 0)], "outputs": [text]}
        for media, text in zip(MEDIA, TEXTS, strict=True)
    ]
    number = make_campaign(database, items, protocol="da", systems=2, baseline="plain", delta=2.0)
    sizes = {DIGESTS[media]: len(content) for media, content in CONTENTS.items()}
    with database.transaction() as session:
        store_media(session, number, [PICTURE, SOUND], sizes)
    rate_all(database, add_rater(database))

    def export(kind: str) -> tuple[Path, dict[str, int | None]]:
        done = export_campaign(database, "c", kind, tmp_path / "out", "test", store)
        return tmp_path / "out", {part.what: part.count for part in done.not_kept}

    return export


def noted(database: Database) -> set[tuple[str, str, int]]:
    return {(row.digest, row.type, row.size) for row in all_of(database, select(CampaignMedia))}


def media_of(database: Database, name: str = "c") -> list[tuple[str, tuple[str, ...], list[dict[str, Any]]]]:
    return [(item.source, item.outputs, list(item.media)) for item in collect(database, name).items]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "pearmut"])
def test_files_survive(
    database: Database, other: Database, out: Export, elsewhere: ArtefactStore, kind: str
) -> None:
    path, lost = out(kind)
    assert not {"files beside sources", "files of outputs"} & set(lost)
    assert {file.read_bytes() for file in (path / "media").iterdir()} == set(CONTENTS.values())
    tried = import_campaign(other, path, kind, ImportFacts("c"), "test", dry_run=True)
    assert tried.items == 4
    assert not Path(elsewhere.root).exists()
    import_campaign(other, path, kind, ImportFacts("c"), "test", store=elsewhere)
    assert media_of(other) == media_of(database)
    assert noted(other) == noted(database)
    assert {elsewhere.read(digest) for digest in DIGESTS.values()} == set(CONTENTS.values())
    fewer = ImportFacts("fewer", leave_out=("beam",))
    import_campaign(other, path, kind, fewer, "test", store=elsewhere)
    left = [file for _, _, files in media_of(other, "fewer") for file in files]
    assert {file.get("system") for file in left} == {None, "plain"}


@pytest.mark.parametrize("kind", ["appraise", "mt-metrics-eval"])
def test_formats_that_have_no_place_for_files_count_them(out: Export, kind: str) -> None:
    path, lost = out(kind)
    assert (lost["files beside sources"], lost["files of outputs"]) == (3, 2)
    assert not (path / "media").exists()


def test_pearmut_shows_files_by_tags(
    other: Database, tmp_path: Path, out: Export, elsewhere: ArtefactStore
) -> None:
    path, _ = out("pearmut")
    campaign = json.loads((path / "campaign.json").read_text())
    folder = campaign["info"]["assets"]
    assert (folder["source"], folder["destination"][:16]) == ("media", "assets/creamtea-")
    items = [item for task in campaign["data"] for document in task for item in document]
    sources, texts = (
        [item["src"] for item in items],
        [text for item in items for text in item["tgt"].values()],
    )
    picture = f'<img src="{folder["destination"]}/{PICTURE["digest"]}.png" alt="&lt;b&gt;A cup&lt;/b&gt;"'
    assert sources[0].startswith(picture)
    assert sources[0].endswith("<br>source 0")
    assert "<br><audio controls src=" in sources[1]
    assert '<track kind="captions" label="Captions" src=' in sources[1]
    assert sources[2] == "source 2"
    assert texts[2].startswith("<audio controls src=")
    assert texts[2].endswith("<br>Tee &amp; &lt;b&gt;")
    for text in (*sources, *texts):
        assert all((path / "media" / name).is_file() for name in re.findall(r"[0-9a-f]{64}[.]\w+", text))
    (tmp_path / "answers.jsonl").write_bytes((path / "annotations.jsonl").read_bytes())
    beside = ImportFacts("beside", campaign_file=path / "campaign.json")
    import_campaign(other, tmp_path / "answers.jsonl", "pearmut", beside, "test", store=elsewhere)
    assert [files for _, _, files in media_of(other, "beside")][:2] == MEDIA[:2]
    alone = ImportFacts("alone", protocol="da")
    left = import_campaign(other, tmp_path / "answers.jsonl", "pearmut", alone, "test").not_kept
    assert NotKept(4, "texts that show files (their tags stay in the text)") in left


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        ("png", None, "missing, and an item names it"),
        ("png", samples.png(9, 9), "not the file that was exported"),
        ("png", samples.SVG, "is none of png"),
        ("vtt", b"WEBVTT\n\n00:00.000 --> 00:01.500\nx", "not the file that was exported"),
    ],
)
def test_an_import_looks_at_each_file(
    other: Database,
    out: Export,
    elsewhere: ArtefactStore,
    ending: str,
    content: bytes | None,
    message: str,
) -> None:
    path, _ = out("csv")
    (file,) = (path / "media").glob(f"*.{ending}")
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        import_campaign(other, path, "csv", ImportFacts("c"), "test", store=elsewhere)
    assert not Path(elsewhere.root).exists()
    assert noted(other) == set()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"digest": "../../etc/passwd", "type": "image/png"}, "column media: .*digest"),
        ({"digest": "0" * 64, "type": "image/svg+xml"}, "a file of type image/svg"),
        ({"digest": "0" * 64, "type": "image/png", "path": "x"}, "column media: .*path"),
        ("x", "column media"),
    ],
)
def test_an_items_entries_are_checked(
    other: Database, out: Export, store: ArtefactStore, entry: Any, message: str
) -> None:
    path, _ = out("csv")
    lines = [json.loads(line) for line in (path / "items.jsonl").read_text().splitlines()]
    lines[0]["media"] = [entry]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (path / "items.jsonl").write_text(text)
    sidecar = json.loads((path / "campaign.json").read_text())
    sidecar["sha256"]["items.jsonl"] = hashlib.sha256(text.encode()).hexdigest()
    (path / "campaign.json").write_text(json.dumps(sidecar))
    with pytest.raises(InputError, match=message):
        import_campaign(other, path, "csv", ImportFacts("c"), "test", store=store)


@pytest.mark.parametrize("media", ["audio/wav", "text/vtt"])
def test_a_file_that_is_gone_is_named(tmp_path: Path, store: ArtefactStore, out: Export, media: str) -> None:
    digest = DIGESTS[media]
    (Path(store.root) / "objects" / digest[:2] / digest).unlink()
    with pytest.raises(InputError, match=rf"{media}.* is not in .*put it back there as objects/.*{digest}"):
        out("csv")
    assert not (tmp_path / "out").exists()


def test_pearmuts_own_elements_in_outputs(other: Database, store: ArtefactStore, tmp_path: Path) -> None:
    (tmp_path / "sounds").mkdir()
    (tmp_path / "sounds" / "a.wav").write_bytes(CONTENTS["audio/wav"])
    sound = '<audio controls="" src="assets/x/a.wav" type="audio/wav"></audio>'
    checked = {"src": "Tee", "tgt": {"right": sound, "wrong": "Saft"}, "skippable": True,
               "validation": {"right": {"score": [50, 100], "warning": "No."}}}  # fmt: skip
    rated = {"src": "tea", "tgt": {"one": sound, "two": '<img src="https://example.org/x.png">'}}
    answers = [
        {"annotation": [{name: {"score": 70, "error_spans": []} for name in item["tgt"]}], "actions": [],
         "item": [item], "user_id": "anna", "item_i": number}
        for number, item in enumerate((checked, rated))
    ]  # fmt: skip
    campaign = {"info": {"protocol": "cESA", "assets": {"source": "sounds", "destination": "assets/x"}},
                "campaign_id": "x", "data": [[[checked], [rated]]]}  # fmt: skip
    (tmp_path / "campaign.json").write_text(json.dumps(campaign))
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(answer)}\n" for answer in answers))
    facts = ImportFacts("c", campaign_file=tmp_path / "campaign.json")
    done = import_campaign(other, tmp_path / "answers.jsonl", "pearmut", facts, "test", store=store)
    items = {item.kind: item for item in collect(other, "c").items}
    assert items["rated"].outputs == ("", rated["tgt"]["two"])
    assert [file["system"] for file in items["rated"].media] == ["one"]
    assert [file["system"] for file in items["tutorial"].media] == ["one"], "which stands in for `right`"
    lost = {part.what: part.count for part in done.not_kept}
    assert lost["texts that show files (their tags stay in the text)"] == 1
    (tmp_path / "sounds" / "b.wav").write_bytes(samples.wav(0.2))
    again = {**rated, "item_id": "1", "tgt": {**rated["tgt"], "one": sound.replace("a.wav", "b.wav")}}
    for answer, item in zip(answers, ({**rated, "item_id": "1"}, again), strict=True):
        answer |= {"item": [item], "annotation": [{name: {"score": 70} for name in item["tgt"]}], "item_i": 0}
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(answer)}\n" for answer in answers))
    (tmp_path / "campaign.json").write_text(json.dumps({**campaign, "data": []}))
    facts = ImportFacts("d", campaign_file=tmp_path / "campaign.json")
    import_campaign(other, tmp_path / "answers.jsonl", "pearmut", facts, "test", store=store)
    digests = [item.media[0]["digest"] for item in collect(other, "d").items]
    assert digests == [store.put_file(tmp_path / "sounds" / name) for name in ("a.wav", "b.wav")]
