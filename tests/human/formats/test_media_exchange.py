"""Files beside sources go out with a campaign and come back with it, or are counted as lost."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from small_campaigns import add_rater, make_campaign, rate_all
from sqlalchemy import select

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, NotKept
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.media import store_media
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import CampaignMedia

FILES = {"image/png": samples.png(), "audio/wav": samples.wav(0.1)}


@pytest.fixture
def store(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "artefacts")


@pytest.fixture
def elsewhere(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "other-artefacts")


def with_files(
    database: Database, store: ArtefactStore, folder: Path, protocol: str = "da"
) -> list[dict[str, Any]]:
    """A rated campaign: the first source has a picture, the second both files. Their entries."""
    entries = []
    for media, content in FILES.items():
        path = folder / media.replace("/", ".")
        path.write_bytes(content)
        entries.append({"digest": store.put_file(path), "type": media, "description": f"<b>{media}</b>"})
    items = [{"media": entries[:1]}, {"media": entries}, {}]
    number = make_campaign(database, items, protocol=protocol, baseline="plain", delta=2.0)
    sizes = {entry["digest"]: len(FILES[entry["type"]]) for entry in entries}
    with database.transaction() as session:
        store_media(session, number, entries, sizes)
    rate_all(database, add_rater(database))
    return entries


def noted(database: Database) -> set[tuple[str, str, int]]:
    with database.session() as session:
        return {(row.digest, row.type, row.size) for row in session.scalars(select(CampaignMedia))}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_files_survive(
    database: Database,
    other: Database,
    tmp_path: Path,
    store: ArtefactStore,
    elsewhere: ArtefactStore,
    kind: str,
) -> None:
    entries = with_files(database, store, tmp_path)
    path = tmp_path / "out"
    done = export_campaign(database, "c", kind, path, "test", store)
    assert done.not_kept == ()
    assert {file.read_bytes() for file in (path / "media").iterdir()} == set(FILES.values())
    tried = import_campaign(other, path, kind, ImportFacts("c"), "test", dry_run=True)
    assert tried.items == 3
    assert not Path(elsewhere.root).exists()
    import_campaign(other, path, kind, ImportFacts("c"), "test", store=elsewhere)
    assert [list(item.media) for item in collect(other, "c").items] == [entries[:1], entries, []]
    assert noted(other) == noted(database)
    assert {elsewhere.read(entry["digest"]) for entry in entries} == set(FILES.values())
    export_campaign(other, "c", kind, tmp_path / "again", "test", elsewhere)
    for file in ("items.jsonl", f"ratings.{kind}"):
        assert (path / file).read_bytes() == (tmp_path / "again" / file).read_bytes()


def test_files_survive_pearmut(
    database: Database, other: Database, tmp_path: Path, store: ArtefactStore, elsewhere: ArtefactStore
) -> None:
    entries = with_files(database, store, tmp_path)
    path = tmp_path / "out"
    done = export_campaign(database, "c", "pearmut", path, "test", store)
    assert "files beside sources" not in {part.what for part in done.not_kept}
    campaign = json.loads((path / "campaign.json").read_text())
    folder = campaign["info"]["assets"]
    assert (folder["source"], folder["destination"][:16]) == ("media", "assets/creamtea-")
    sources = [item["src"] for task in campaign["data"] for document in task for item in document]
    first = (
        f'<img src="{folder["destination"]}/{entries[0]["digest"]}.png" alt="&lt;b&gt;image/png&lt;/b&gt;"'
    )
    assert sources[0].startswith(first)
    assert sources[0].endswith("<br>source 0")
    assert "<br><audio controls src=" in sources[1]
    assert sources[2] == "source 2"
    for source in sources[:2]:
        assert all((path / "media" / name).is_file() for name in re.findall(r"[0-9a-f]{64}[.]\w+", source))
    import_campaign(other, path, "pearmut", ImportFacts("c"), "test", store=elsewhere)
    found = [(item.source, list(item.media)) for item in collect(other, "c").items]
    assert found == [("source 0", entries[:1]), ("source 1", entries), ("source 2", [])]
    assert noted(other) == noted(database)
    again = ImportFacts("again", campaign_file=path / "campaign.json")
    (tmp_path / "answers.jsonl").write_bytes((path / "annotations.jsonl").read_bytes())
    import_campaign(other, tmp_path / "answers.jsonl", "pearmut", again, "test", store=elsewhere)
    assert [list(item.media) for item in collect(other, "again").items] == [entries[:1], entries, []]
    alone = ImportFacts("alone", protocol="da")
    left = import_campaign(other, tmp_path / "answers.jsonl", "pearmut", alone, "test").not_kept
    assert NotKept(2, "texts that show files (their tags stay in the text)") in left


def test_tags_of_other_peoples_pearmut_stay_and_are_counted(tmp_path: Path, other: Database) -> None:
    source = '<img src="https://example.org/x.jpg"/>'
    item = {"item_id": "a", "src": source, "tgt": {"A": "Bild"}}
    line = {"annotation": [{"A": {"score": 70}}], "item": [item], "user_id": "ann", "item_i": 0}
    (tmp_path / "x.jsonl").write_text(json.dumps(line))
    done = import_campaign(other, tmp_path / "x.jsonl", "pearmut", ImportFacts("x", protocol="da"), "test")
    counted = {part.what: part.count for part in done.not_kept}
    assert counted["texts that show files (their tags stay in the text)"] == 1
    assert collect(other, "x").items[0].source == source


def test_formats_without_files_count_them(database: Database, tmp_path: Path, store: ArtefactStore) -> None:
    with_files(database, store, tmp_path)
    done = export_campaign(database, "c", "appraise", tmp_path / "out", "test", store)
    assert {part.what: part.count for part in done.not_kept}["files beside sources"] == 3
    assert not (tmp_path / "out" / "media").exists()


def changed(path: Path, how: str) -> None:
    file = next(path.glob("*.png"))
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes({"changed": samples.png(9, 9), "markup": samples.SVG}[how])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", "missing, and an item names it"),
        ("changed", "not the file that was exported"),
        ("markup", "is none of png"),
    ],
)
def test_an_import_looks_at_each_file(
    database: Database,
    other: Database,
    tmp_path: Path,
    store: ArtefactStore,
    elsewhere: ArtefactStore,
    how: str,
    message: str,
) -> None:
    with_files(database, store, tmp_path)
    export_campaign(database, "c", "csv", tmp_path / "out", "test", store)
    changed(tmp_path / "out" / "media", how)
    with pytest.raises(InputError, match=message):
        import_campaign(other, tmp_path / "out", "csv", ImportFacts("c"), "test", store=elsewhere)
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
    database: Database, other: Database, tmp_path: Path, store: ArtefactStore, entry: Any, message: str
) -> None:
    with_files(database, store, tmp_path)
    path = tmp_path / "out"
    export_campaign(database, "c", "csv", path, "test", store)
    lines = [json.loads(line) for line in (path / "items.jsonl").read_text().splitlines()]
    lines[0]["media"] = [entry]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (path / "items.jsonl").write_text(text)
    sidecar = json.loads((path / "campaign.json").read_text())
    sidecar["sha256"]["items.jsonl"] = hashlib.sha256(text.encode()).hexdigest()
    (path / "campaign.json").write_text(json.dumps(sidecar))
    with pytest.raises(InputError, match=message):
        import_campaign(other, path, "csv", ImportFacts("c"), "test", store=store)


def test_a_file_that_is_gone_is_named(database: Database, tmp_path: Path, store: ArtefactStore) -> None:
    entries = with_files(database, store, tmp_path)
    digest = entries[1]["digest"]
    (Path(store.root) / "objects" / digest[:2] / digest).unlink()
    with pytest.raises(InputError, match=rf"audio/wav.* is not in .*put it back there as objects/.*{digest}"):
        export_campaign(database, "c", "csv", tmp_path / "out", "test", store)
    assert not (tmp_path / "out").exists()
