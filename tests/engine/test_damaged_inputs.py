"""An input that is not what was stored: its step makes it again, and what follows runs with it."""

from pathlib import Path

import pytest
import toy_catalogue
import toy_steps
from sqlalchemy import select
from table_rows import one_of
from toy_steps import attempts
from toy_study import ToyStudy

from creamtea.cli.following import outcome_of
from creamtea.contract.step import StepContext, StepResult
from creamtea.engine.events import EngineEvent, StepFailed, StepReset
from creamtea.errors import InfrastructureError, StepError, StepUnavailable
from creamtea.orders.submission import cancel, requeue
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


# ---------------------------------------------------------------- a step that cannot be made again


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> None:
    """Let the next attempts of a step fail."""
    real = toy_steps.run

    def run(context: StepContext[toy_catalogue.ToyParams]) -> StepResult:
        if context.params.name == name:
            toy_steps.log_attempt(Path(context.params.log), name)
            raise error
        return real(context)

    monkeypatch.setattr(toy_steps, "run", run)


def with_a_damaged_input(study: ToyStudy) -> None:
    study.add("first")
    study.add("old", before=["first"])
    study.run()
    flip_a_bit(object_of(study, "first"))
    study.add("new", before=["first"], resources={"max_attempts": 2})


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (StepError("ref.de has changed since the study was planned"), "failed"),
        (InfrastructureError("the disk went away"), "failed"),
        (StepUnavailable("no COMET here"), "succeeded"),  # toys are optional, as scores are
    ],
)
def test_an_input_that_cannot_be_made_again_keeps_its_result(
    study: ToyStudy, monkeypatch: pytest.MonkeyPatch, error: Exception, ended: str
) -> None:
    with_a_damaged_input(study)
    refuse(monkeypatch, "first", error)
    study.run()
    assert study.states() == {"first": "succeeded", "old": "succeeded", "new": "failed"}
    assert study.state() == ended
    assert said(study) == {"first": "first;", "old": "first;old;", "new": ""}
    assert str(error) in str(study.rows()["first"].error)
    outcome = outcome_of(study.database, study.id)
    assert "first" in [problem.node for problem in (*outcome.failed, *outcome.unavailable)]


def test_the_retry_after_it_makes_the_input_again(study: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    with_a_damaged_input(study)
    with monkeypatch.context() as patched:
        refuse(patched, "first", StepError("ref.de has changed"))
        study.run()
    requeue(study.database, study.store, study.id)
    study.control()
    assert study.state() == "succeeded"
    assert said(study) == {"first": "first;", "old": "first;old;", "new": "first;new;"}
    assert study.rows()["first"].error is None


def test_a_file_that_came_back_ends_the_failure(study: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    with_a_damaged_input(study)
    whole = object_of(study, "first")
    refuse(monkeypatch, "first", StepError("ref.de has changed"))
    study.run()
    whole.write_bytes(b"first;")  # from a backup
    requeue(study.database, study.store, study.id)
    study.control()
    assert study.states() == {"first": "succeeded", "old": "succeeded", "new": "succeeded"}
    assert (study.state(), study.rows()["first"].error) == ("succeeded", None)


def test_a_study_that_is_cancelled_while_an_input_is_made_again_keeps_its_result(study: ToyStudy) -> None:
    with_a_damaged_input(study)

    def react(event: EngineEvent) -> None:
        if isinstance(event, StepReset):
            cancel(study.database, study.id)

    study.run(react=react)
    assert study.state() == "cancelled"
    assert study.states() == {"first": "succeeded", "old": "succeeded", "new": "cancelled"}
    assert said(study)["first"] == "first;"
    study.run()  # the same study goes on
    assert said(study)["new"] == "first;new;"


def test_no_result_of_other_files_is_kept(study: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    study.add("first", "numbered")
    study.add("old", before=["first"])
    study.add("older", before=["old"])
    study.run()
    object_of(study, "first").unlink()
    refuse(monkeypatch, "old", StepError("the loss is NaN"))
    requeue(study.database, study.store, study.id)
    study.control()
    assert study.states() == {"first": "succeeded", "old": "failed", "older": "failed"}
    assert said(study) == {"first": "first2;", "old": "", "older": ""}
