"""An input that is not what was stored: its step makes it again, and what follows runs with it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select
from table_rows import one_of
from toy_steps import attempts
from toy_study import ToyStudy, happenings

from creamtea.engine.events import EngineEvent, StepFailed, StepReset
from creamtea.store import queries
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import StepFile

Run = Callable[..., list[EngineEvent]]
pytestmark = pytest.mark.usefixtures("quick")


def object_of(database: Database, store: ArtefactStore, key: str) -> Path:
    digest = one_of(database, select(StepFile.digest).where(StepFile.step_key == key))
    return Path(store.root) / "objects" / digest[:2] / digest


def flip_a_bit(path: Path) -> None:
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[0] ^= 4
    path.write_bytes(content)


def said(study: ToyStudy, database: Database) -> dict[str, str]:
    return {name: (row.facts or {}).get("said", "") for name, row in study.rows(database).items()}


def test_a_damaged_input_is_made_again_in_the_same_run(
    database: Database, store: ArtefactStore, study: ToyStudy, log: Path, run_study: Run
) -> None:
    first = study.add("first")
    study.add("old", before=["first"])
    run_study(study, database)
    path = object_of(database, store, first)
    whole = path.read_bytes()
    flip_a_bit(path)
    new = study.add("new", before=["first"])
    study.add("last", before=["new"])
    events = run_study(study, database)
    assert [event.name for event in events if isinstance(event, StepReset)] == ["first"]
    found = said(study, database)
    assert found == {"first": "first;", "old": "first;old;", "new": "first;new;", "last": "first;new;last;"}
    assert path.read_bytes() == whole
    # what was made from the undamaged file stays
    assert attempts(log) == ["first", "old", "first", "new", "last"]
    assert happenings(database, new) == ["started", "interrupted", "started", "succeeded"]
    assert [aside.name for aside in (Path(store.root) / "damaged").iterdir()] == [path.name]


def test_what_follows_runs_again_if_the_file_is_another_one_now(
    database: Database, store: ArtefactStore, study: ToyStudy, run_study: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "KEYS_PER_QUERY", 2)  # more steps follow than a statement binds
    first = study.add("first", "numbered")
    for old in ("old", "older", "oldest"):
        study.add(old, before=["first"])
        study.add(f"after {old}", before=[old])
    run_study(study, database)
    flip_a_bit(object_of(database, store, first))
    study.add("new", before=["first"])
    run_study(study, database)
    again = {old: f"first2;{old};" for old in ("old", "older", "oldest")}
    followers = {f"after {old}": f"{text}after {old};" for old, text in again.items()}
    assert said(study, database) == {"first": "first2;", **again, **followers, "new": "first2;new;"}


def test_a_disk_that_damages_all_it_gets_ends_the_study(
    database: Database, store: ArtefactStore, study: ToyStudy, run_study: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.add("first")
    study.add("second", before=["first"])
    real = ArtefactStore._publish

    def damaging(self: ArtefactStore, source: Path, target: str, *, read_only: bool = False) -> None:
        real(self, source, target, read_only=read_only)
        if "/objects/" in target and Path(target).read_bytes() == b"first;":
            flip_a_bit(Path(target))

    monkeypatch.setattr(ArtefactStore, "_publish", damaging)
    events = run_study(study, database)
    [failed] = [event for event in events if isinstance(event, StepFailed)]
    assert (failed.name, failed.kind) == ("second", "infrastructure")
    assert "is damaged: its content does not match its name" in failed.error
