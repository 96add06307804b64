"""The loop with executors whose steps end at once, as a test says: groups that grow, and any graph against an
oracle."""

import errno
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileOpener
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import ANSWER
from prompt import Prompt
from property_tests import FIXTURES_ARE_SHARED
from psycopg.errors import ProgramLimitExceeded
from sqlalchemy.exc import DBAPIError
from toy_study import ToyStudy

from creamtea.engine import state
from creamtea.engine.events import Notice, StepRetried, StepStopped
from creamtea.engine.executors.base import (
    GAVE_WAY,
    Amounts,
    Capacity,
    FinishedAttempt,
    Need,
    StepOutcome,
    StepTask,
)
from creamtea.errors import InfrastructureError
from creamtea.orders.rows import lock_steps
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database

pytestmark = pytest.mark.usefixtures("quick")


class Growing(Prompt):
    """A machine of which half is there at first; a group that is told of more gives way."""

    def __init__(self, store: ArtefactStore) -> None:
        super().__init__({})
        self._store, self._asked = store, 0
        self.groups: list[int] = []
        self._group: StepTask | None = None

    def capacity(self) -> Capacity:
        self._asked += 1
        running = [] if self._group is None else [(["a"] * self.groups[-1], Need.of(self._group.resources))]
        return Capacity({"a": Amounts(2.0 if self._asked < 4 else 4.0, 0.0, 8.0)}, running)

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        self._group = task
        self.groups.append(len(nodes))

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        time.sleep(0.001)
        if self._group is None:
            return []
        room = self._store.read_room(self._group.key, self._group.fence)
        if self.groups[-1] < 4 and room != 4:
            return []
        outcome = StepOutcome() if self.groups[-1] == 4 else StepOutcome.failure(GAVE_WAY, "more room")
        outcome.result.facts["seconds"] = 0.0
        ended, self._group = FinishedAttempt(self._group, outcome), None
        return [ended]


def test_a_group_is_told_of_room_and_begins_again_larger(
    study_on_both: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_on_both
    monkeypatch.setattr("creamtea.engine.queue.GROW_AFTER", 0.0)
    study.add("group", resources={"workers": [1, 4]})
    executor = Growing(study.store)
    reasons = [event.reason for event in study.run(executor) if isinstance(event, StepStopped)]
    assert executor.groups == [2, 4]
    assert reasons == ["more room"]
    assert study.happened("group") == ["started", "interrupted", "started", "succeeded"]
    assert study.rows()["group"].attempts == 1


def test_a_store_that_takes_no_hint_for_a_while_ends_no_step(
    study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.engine.queue.GROW_AFTER", 0.0)
    write, tried = ArtefactStore.write_room, []

    def full_at_first(self: ArtefactStore, key: str, fence: int, workers: int) -> None:
        tried.append(workers)
        if len(tried) == 1:
            raise InfrastructureError("no space left at /artefacts")
        write(self, key, fence, workers)

    monkeypatch.setattr(ArtefactStore, "write_room", full_at_first)
    study.add("group", resources={"workers": [1, 4]})
    executor = Growing(study.store)
    notices = [event.message for event in study.run(executor) if isinstance(event, Notice)]
    assert executor.groups == [2, 4]
    assert notices == ["no space left at /artefacts; steps run on"]


def test_an_error_that_a_database_cannot_hold_is_stored_readably(study_on_both: ToyStudy) -> None:
    study_on_both.add("step")
    study_on_both.run(Prompt({"step": StepOutcome.failure("deterministic", "a\0b in caf\udce9")}))
    assert study_on_both.rows()["step"].error == "a�b in caf\\udce9"


def test_a_step_whose_texts_the_store_fails_to_give_is_tried_again(
    study: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "segment_scores.jsonl").write_text('{"index": 0, "value": 0.5}\n')
    succeeds = StepOutcome(files=study.store.put_folder(tmp_path / "out"))
    succeeds.result.facts["seconds"] = 0.0
    tried = []

    def failing_at_first(self: LocalFileOpener, *size: int) -> bytes:
        tried.append(size)
        if len(tried) == 1:
            raise OSError(errno.ESTALE, "Stale file handle")
        return bytes(self.f.read(*size))

    monkeypatch.setattr(LocalFileOpener, "read", failing_at_first, raising=False)
    study.add("step")
    [retried] = [event for event in study.run(Prompt({"step": succeeds})) if isinstance(event, StepRetried)]
    assert "Stale file handle" in retried.error
    assert study.happened("step") == ["started", "retry", "started", "succeeded"]


def test_a_result_that_the_database_refuses_fails_its_step_alone(
    study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = state.finish

    def refuse_one(database: Database, store: ArtefactStore, task: StepTask, *rest: Any) -> list[str] | None:
        if task.name == "large":
            raise DBAPIError(
                "INSERT", {}, ProgramLimitExceeded("string too long to represent as jsonb string")
            )
        return finish(database, store, task, *rest)

    monkeypatch.setattr(state, "finish", refuse_one)
    study.submit("large", "usual")
    study.control(Prompt({}))
    rows = study.rows()
    assert (rows["large"].error_kind, rows["usual"].state) == ("deterministic", "succeeded")
    assert "string too long" in str(rows["large"].error)


def test_a_study_that_was_removed_since_the_queue_was_built_is_passed_over(study: ToyStudy) -> None:
    study.submit("step")
    state.end(study.database, [study.id + 1, study.id])
    assert study.state() == "queued"


@pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_a_study_does_not_end_while_it_is_submitted_again(
    database: Database, study_on_both: ToyStudy
) -> None:
    """The submission holds the lock. SQLite has one writer at a time anyway."""
    study_on_both.submit("step")
    ending = threading.Thread(target=state.end, args=(database, [study_on_both.id]))
    with database.transaction() as session:
        lock_steps(session)
        ending.start()
        ending.join(0.5)
        assert ending.is_alive()
    ending.join(ANSWER)
    assert not ending.is_alive()


graphs = st.lists(
    st.tuples(
        st.sets(st.integers(0, 20), max_size=3), st.sampled_from(["ok", "ok", "deterministic", "unavailable"])
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@given(graph=graphs)
@settings(max_examples=15, suppress_health_check=FIXTURES_ARE_SHARED)
def test_any_graph_ends_as_the_definition_says(
    graph: list[tuple[set[int], str]], sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("graph")
    shutil.copyfile(sqlite_template, folder / "database.db")
    database = open_database(f"sqlite:///{folder / 'database.db'}")
    study = ToyStudy(database, ArtefactStore(folder / "artefacts"), folder)
    outcomes = {}
    expected: dict[str, set[str]] = {}  # what its error kind may be
    for number, (before, fate) in enumerate(graph):
        name = str(number)
        inputs = [str(other) for other in sorted(before) if other < number]
        study.add(name, before=inputs)
        if fate != "ok":
            outcomes[name] = StepOutcome.failure(fate, "because")
        above = set().union(*(expected[other] for other in inputs)) - {"ok"}
        # behind both an unavailable and a failed step, the one that is known first names the reason
        expected[name] = {kind if kind == "unavailable" else "upstream" for kind in above} or {fate}
    study.run(Prompt(outcomes))
    for name, row in study.rows().items():
        assert (row.error_kind or "ok") in expected[name]
    failed = {kind for name in outcomes for kind in expected[name]} - {"unavailable"}
    assert study.state() == ("failed" if failed else "succeeded")
    database.close()
