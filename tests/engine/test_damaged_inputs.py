"""An input that is not what was stored: its step makes it again, and what follows runs with it."""

from pathlib import Path

import pytest
from sqlalchemy import select
from table_rows import one_of
from toy_steps import attempts
from toy_study import ToyStudy

from creamtea.engine.events import StepFailed, StepReset
from creamtea.store import queries
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.tables import StepFile

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def study(study_on_both: ToyStudy) -> ToyStudy:
    return study_on_both


def object_of(study: ToyStudy, name: str) -> Path:
    digest = one_of(study.database, select(StepFile.digest).where(StepFile.step_key == study.keys[name]))
    return Path(study.store.object_path(digest))


def flip_a_bit(path: Path) -> None:
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[0] ^= 4
    path.write_bytes(content)


def said(study: ToyStudy) -> dict[str, str]:
    return {name: (row.facts or {}).get("said", "") for name, row in study.rows().items()}


def test_a_damaged_input_is_made_again_in_the_same_run(study: ToyStudy) -> None:
    study.add("first")
    study.add("old", before=["first"])
    study.run()
    path = object_of(study, "first")
    whole = path.read_bytes()
    flip_a_bit(path)
    study.add("new", before=["first"])
    study.add("last", before=["new"])
    assert [event.name for event in study.run() if isinstance(event, StepReset)] == ["first"]
    texts = {"first": "first;", "old": "first;old;", "new": "first;new;", "last": "first;new;last;"}
    assert said(study) == texts
    assert path.read_bytes() == whole
    # what was made from the undamaged file stays
    assert attempts(study.log) == ["first", "old", "first", "new", "last"]
    assert study.happened("new") == ["started", "interrupted", "started", "succeeded"]
    assert [aside.name for aside in (Path(study.store.root) / "damaged").iterdir()] == [path.name]


def test_what_follows_runs_again_if_the_file_is_another_one_now(
    study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "KEYS_PER_QUERY", 2)  # more steps follow than a statement binds
    study.add("first", "numbered")
    for old in ("old", "older", "oldest"):
        study.add(old, before=["first"])
        study.add(f"after {old}", before=[old])
    study.run()
    flip_a_bit(object_of(study, "first"))
    study.add("new", before=["first"])
    study.run()
    again = {old: f"first2;{old};" for old in ("old", "older", "oldest")}
    followers = {f"after {old}": f"{text}after {old};" for old, text in again.items()}
    assert said(study) == {"first": "first2;", **again, **followers, "new": "first2;new;"}


def test_a_disk_that_damages_all_it_gets_ends_the_study(
    study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.add("first")
    study.add("second", before=["first"])
    real = ArtefactStore._publish

    def damaging(self: ArtefactStore, source: Path, target: str, *, read_only: bool = False) -> None:
        real(self, source, target, read_only=read_only)
        if "/objects/" in target and Path(target).read_bytes() == b"first;":
            flip_a_bit(Path(target))

    monkeypatch.setattr(ArtefactStore, "_publish", damaging)
    [failed] = [event for event in study.run() if isinstance(event, StepFailed)]
    assert (failed.name, failed.kind) == ("second", "infrastructure")
    assert "is damaged: its content does not match its name" in failed.error
