"""An export that cannot be written is one message, and leaves the folder as it was."""

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import media_files as samples
import pytest
from rated import everything
from small_campaigns import add_rater, make_campaign, rate_all
from sqlalchemy import select
from table_rows import all_of

from creamtea.access.audit import EXPORTED
from creamtea.errors import InputError
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.media import store_media
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import AuditEvent, Rater


def full(path: Path, *_: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.fixture
def full_after_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with room for one file and for the beginning of another."""
    write, written = Path.write_bytes, []

    def write_bytes(path: Path, content: bytes) -> int:
        written.append(path)
        if len(written) == 1:
            return write(path, content)
        write(path, content[:1])
        full(path)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "pearmut"])
@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk(
    database: Database, tmp_path: Path, full_after_one: None, kind: str, there: bool
) -> None:
    make_campaign(database, 3, name="c", protocol="da")
    rate_all(database, add_rater(database))
    parent = tmp_path / "new"
    out = parent / "out"
    if there:
        out.mkdir(parents=True)
    with pytest.raises(InputError, match=r"--output .*out: \w+\.(jsonl|csv): No space left"):
        export_campaign(database, "c", kind, out, "test")
    assert parent.exists() == there
    assert list(parent.rglob("*")) == [out] * there
    assert not all_of(database, select(AuditEvent).where(AuditEvent.action == EXPORTED))


def test_a_disk_that_is_full_when_files_beside_sources_are_copied(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, picture, out = ArtefactStore(tmp_path / "artefacts"), tmp_path / "a.png", tmp_path / "out"
    picture.write_bytes(samples.png())
    entry = {"digest": store.put_file(picture), "type": "image/png", "description": ""}
    number = make_campaign(database, [{"media": [entry]}, {}], name="c")
    with database.transaction() as session:
        store_media(session, number, [entry], {entry["digest"]: picture.stat().st_size})
    opened = Path.open

    def open_(path: Path, mode: str = "r", *more: Any, **rest: Any) -> Any:
        return full(path) if path.parent == out / "media" else opened(path, mode, *more, **rest)

    monkeypatch.setattr(Path, "open", open_)
    with pytest.raises(InputError, match=r"--output .*out: media/.*No space left"):
        export_campaign(database, "c", "csv", out, "test", store)
    assert not out.exists()


def test_a_name_that_is_too_long_for_a_file(database: Database, tmp_path: Path) -> None:
    name = everything(database, "mqm")
    with database.transaction() as session:
        session.query(Rater).filter(Rater.pseudonym == "anna").update({"pseudonym": "ж" * 120})
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"called .*mqm\.ж+… \(\d+ bytes; .* 255\).*csv or jsonl"):
        export_campaign(database, name, "mt-metrics-eval", out, "test")
    assert not out.exists()
