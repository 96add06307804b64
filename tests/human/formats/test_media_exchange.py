"""Files beside sources and their captions go out with a campaign and come back, or are counted as lost."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from ready_campaigns import PLAIN, draft_campaign
from small_campaigns import add_rater, make_campaign, rate_all
from sqlalchemy import select
from table_rows import all_of

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, NotKept
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.media import MAX_CAPTIONS, ItemMedia, check_captions, read_media, store_media
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import CampaignMedia, Item

CONTENTS = {"image/png": samples.png(), "audio/wav": samples.wav(0.1), "text/vtt": samples.CAPTIONS}
DIGESTS = {media: hashlib.sha256(content).hexdigest() for media, content in CONTENTS.items()}
PICTURE = {"digest": DIGESTS["image/png"], "type": "image/png", "description": "<b>A cup</b>"}
SOUND = {"digest": DIGESTS["audio/wav"], "type": "audio/wav", "description": "A voice"}
SOUND |= {"captions": DIGESTS["text/vtt"]}


@pytest.fixture
def elsewhere(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "other-artefacts")


@pytest.fixture
def out(database: Database, store: ArtefactStore, tmp_path: Path) -> Callable[[str], Path]:
    """Exports a rated campaign: one source has a picture, another also a sound with captions."""
    for media, content in CONTENTS.items():
        path = tmp_path / media.replace("/", ".")
        path.write_bytes(content)
        store.put_file(path)
    items = [{"media": [PICTURE]}, {"media": [PICTURE, SOUND]}, {}]
    number = make_campaign(database, items, protocol="da", baseline="plain", delta=2.0)
    sizes = {DIGESTS[media]: len(content) for media, content in CONTENTS.items()}
    with database.transaction() as session:
        store_media(session, number, [PICTURE, SOUND], sizes)
    rate_all(database, add_rater(database))

    def export(kind: str) -> Path:
        done = export_campaign(database, "c", kind, tmp_path / "out", "test", store)
        lost = {part.what: part.count for part in done.not_kept}
        assert lost.get("files beside sources") == (3 if kind == "appraise" else None)
        return tmp_path / "out"

    return export


def noted(database: Database) -> set[tuple[str, str, int]]:
    return {(row.digest, row.type, row.size) for row in all_of(database, select(CampaignMedia))}


def media_of(database: Database, name: str = "c") -> list[list[dict[str, Any]]]:
    return [list(item.media) for item in collect(database, name).items]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "pearmut", "appraise"])
def test_files_survive(
    database: Database,
    other: Database,
    out: Callable[[str], Path],
    elsewhere: ArtefactStore,
    tmp_path: Path,
    kind: str,
) -> None:
    path = out(kind)
    if kind == "appraise":  # has no place for them
        assert not (path / "media").exists()
        return
    assert {file.read_bytes() for file in (path / "media").iterdir()} == set(CONTENTS.values())
    tried = import_campaign(other, path, kind, ImportFacts("c"), "test", dry_run=True)
    assert tried.items == 3
    assert not Path(elsewhere.root).exists()
    import_campaign(other, path, kind, ImportFacts("c"), "test", store=elsewhere)
    assert media_of(other) == [[PICTURE], [PICTURE, SOUND], []]
    assert noted(other) == noted(database)
    assert {elsewhere.read(digest) for digest in DIGESTS.values()} == set(CONTENTS.values())


def test_pearmut_shows_files_by_tags(
    other: Database, tmp_path: Path, out: Callable[[str], Path], elsewhere: ArtefactStore
) -> None:
    path = out("pearmut")
    campaign = json.loads((path / "campaign.json").read_text())
    folder = campaign["info"]["assets"]
    assert (folder["source"], folder["destination"][:16]) == ("media", "assets/creamtea-")
    sources = [item["src"] for task in campaign["data"] for document in task for item in document]
    picture = f'<img src="{folder["destination"]}/{PICTURE["digest"]}.png" alt="&lt;b&gt;A cup&lt;/b&gt;"'
    assert sources[0].startswith(picture)
    assert sources[0].endswith("<br>source 0")
    assert "<br><audio controls src=" in sources[1]
    assert '<track kind="captions" label="Captions" src=' in sources[1]
    assert sources[2] == "source 2"
    for source in sources:
        assert all((path / "media" / name).is_file() for name in re.findall(r"[0-9a-f]{64}[.]\w+", source))
    (tmp_path / "answers.jsonl").write_bytes((path / "annotations.jsonl").read_bytes())
    beside = ImportFacts("beside", campaign_file=path / "campaign.json")
    import_campaign(other, tmp_path / "answers.jsonl", "pearmut", beside, "test", store=elsewhere)
    assert media_of(other, "beside") == [[PICTURE], [PICTURE, SOUND], []]
    alone = ImportFacts("alone", protocol="da")
    left = import_campaign(other, tmp_path / "answers.jsonl", "pearmut", alone, "test").not_kept
    assert NotKept(2, "texts that show files (their tags stay in the text)") in left


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
    out: Callable[[str], Path],
    elsewhere: ArtefactStore,
    ending: str,
    content: bytes | None,
    message: str,
) -> None:
    path = out("csv")
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
    other: Database, out: Callable[[str], Path], store: ArtefactStore, entry: Any, message: str
) -> None:
    path = out("csv")
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
def test_a_file_that_is_gone_is_named(
    tmp_path: Path, store: ArtefactStore, out: Callable[[str], Path], media: str
) -> None:
    digest = DIGESTS[media]
    (Path(store.root) / "objects" / digest[:2] / digest).unlink()
    with pytest.raises(InputError, match=rf"{media}.* is not in .*put it back there as objects/.*{digest}"):
        out("csv")
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- captions


def listed(folder: Path, **contents: bytes) -> Path:
    """A list with a sound and a picture beside segment 1, and these files beside it: `a_vtt` is `a.vtt`."""
    beside = {"a_wav": CONTENTS["audio/wav"], "b_png": CONTENTS["image/png"], **contents}
    for name, content in beside.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    lines = [{"segment": 1, "file": "a.wav", "description": "A voice"}, {"segment": 1, "file": "b.png"}]
    path = folder / "media.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


CUE = b"WEBVTT\n\n00:00.000 --> 00:01.500\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CUE + b"Tea\n", None),
        (
            b"\xef\xbb\xbfWEBVTT - a\r\n\r\nNOTE x\r\n\r\n100:00:00.000 --> 100:00:01.000 align:start\r\nT",
            None,
        ),
        (b"WEBVTT\r\r00:00.000\t-->\t00:00.001\rT", None),
        (b"1\n00:00:00,000 --> 00:00:01,500\nTea\n", "list: a.vtt, line 1: found '1'; allowed: WEBVTT"),
        (b"", "line 1: found ''; allowed: WEBVTT"),
        (b"WEBVTTX\n\n00:00.000 --> 00:01.500\n", "allowed: WEBVTT"),
        (b"WEBVTT\n\n00:00:00,000 --> 00:00:01,500\nT", "line 3: found .* a point before the milliseconds"),
        (b"WEBVTT\n\n00:00.000-->00:01.500\nTea\n", "line 3: found"),
        (b"WEBVTT\n\n00:00.000 --> 00:61.500\nTea\n", "line 3: found"),
        (b"WEBVTT\n\nTea\n", "no captions "),
        (CUE + b"T\xe9e\n", "line 4: not UTF-8"),
        (b"WEBVTT\n" + b"x" * MAX_CAPTIONS, "more than 2,000,000 bytes"),
    ],
)
def test_captions_as_the_format_has_them(tmp_path: Path, content: bytes, message: str | None) -> None:
    (tmp_path / "a.vtt").write_bytes(content)
    if message is None:
        assert check_captions(tmp_path / "a.vtt", "list").size == len(content)
        return
    with pytest.raises(InputError, match=message):
        check_captions(tmp_path / "a.vtt", "list")


def test_captions_are_checked_at_creation(tmp_path: Path, store: ArtefactStore) -> None:
    with pytest.raises(InputError, match=r"media.jsonl, line 1: a.vtt"):
        read_media(listed(tmp_path, a_vtt=b""), store)
    (tmp_path / "list").mkdir()
    path = listed(tmp_path / "list")
    (tmp_path / "list" / "a.vtt").symlink_to(tmp_path / "a.vtt")
    with pytest.raises(InputError, match="in the folder or below it"):
        read_media(path, store)
    assert not Path(store.root).exists()
    (tmp_path / "images").mkdir()
    given = read_media(listed(tmp_path / "images", b_vtt=samples.CAPTIONS), store)
    assert [each.media.captions for each in given] == [None, None], "images have no captions"
    with pytest.raises(ValueError, match="captions of an image"):
        ItemMedia(digest="0" * 64, type="image/png", captions="0" * 64)


def test_captions_reach_the_items_of_a_campaign(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    media = read_media(listed(tmp_path, a_vtt=samples.CAPTIONS), store)
    settings = PLAIN.model_copy(update={"items": 1, "select": "all"})
    draft_campaign(study_database, "c", protocol="da", settings=settings, media=media)
    captions = DIGESTS["text/vtt"]
    entries = [entry for item in all_of(study_database, select(Item)) for entry in item.media]
    assert {entry.get("captions") for entry in entries} == {captions, None}
    assert store.read(captions) == samples.CAPTIONS
    assert (captions, "text/vtt", len(samples.CAPTIONS)) in noted(study_database)
