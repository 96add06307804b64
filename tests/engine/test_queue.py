"""What starts next and where, without a database; and that the queue agrees with SQL after every event."""

import shutil
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import FIXTURES_ARE_SHARED
from sqlalchemy import select
from sqlalchemy.orm import Session
from table_rows import all_of
from toy_study import ToyStudy

from creamtea.contract.step import Resources, StepResult
from creamtea.engine import lease as leases
from creamtea.engine import state
from creamtea.engine.executors.base import Amounts, Capacity, Names, Need, StepOutcome
from creamtea.engine.queue import Choice, Queue, QueuedStep, larger_group
from creamtea.orders import rows
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.tables import StepRow

GPUS = Amounts(8.0, 4.0, 64.0)
CPUS = Amounts(8.0, 0.0, 64.0)


def ready(*steps: tuple[str, Resources, int]) -> Queue:
    """Name, resources and priority of steps, in the study's order."""
    queued = {}
    for position, (name, resources, priority) in enumerate(steps):
        queued[name] = QueuedStep("ready", Need.of(resources))
        queued[name].add_place(priority, priority, position)
    return Queue([1], queued, [], 0.0)


def start(queue: Queue, capacity: Capacity) -> list[tuple[str, ...]]:
    """Start what fits; the steps with their nodes."""
    started = []
    while (choice := queue.next(capacity, 0.0)) is not None:
        capacity.take(choice.nodes, choice.need)
        started.append((choice.key, *choice.nodes))
    return started


def test_an_exclusive_step_has_one_node_while_the_others_go_on() -> None:
    queue = ready(("alone", Resources(exclusive=True), 0), *((f"s{n}", Resources(cpus=8), 0) for n in "12"))
    running = Capacity({"a": CPUS, "b": CPUS, "c": CPUS}, [(["c"], Need.of(Resources()))])
    assert start(queue, running) == [("s1", "a"), ("s2", "b")]
    queue = ready(("alone", Resources(exclusive=True), 1), *((f"s{n}", Resources(), 0) for n in "12"))
    assert start(queue, Capacity({"a": CPUS, "b": CPUS})) == [("alone", "a"), ("s1", "b"), ("s2", "b")]


def test_lower_priorities_leave_one_node_to_a_step_that_waits() -> None:
    large = ("large", Resources(cpus=8), 1)
    queue = ready(large, *((f"s{n}", Resources(), 0) for n in "12"))
    running = Capacity(
        {"a": CPUS, "b": CPUS}, [(["a"], Need.of(Resources(cpus=2))), (["b"], Need.of(Resources(cpus=7)))]
    )
    assert start(queue, running) == [("s1", "b")], "a is kept for the large one, and b is full"
    assert start(queue, Capacity({"a": CPUS})) == [("large", "a")]


def test_gpus_are_filled_up_and_other_steps_are_spread() -> None:
    capacity = Capacity({"a": GPUS, "b": GPUS, "c": CPUS}, [(["b"], Need.of(Resources(gpus=2)))])
    one = Need.of(Resources(gpus=1))
    assert [capacity.place(Need.of(Resources(gpus=4))), capacity.place(one)] == [["a"], ["b"]]
    assert capacity.place(Need.of(Resources())) == ["c"]
    assert capacity.place(Need.of(Resources(gpus=5))) == []


def test_a_group_takes_as_many_workers_as_there_is_room_for() -> None:
    capacity = Capacity({"a": GPUS, "b": GPUS}, [(["b"], Need.of(Resources(gpus=2)))])
    assert capacity.place(Need.of(Resources(workers=[2, 8], gpus=1))) == ["b"] * 2 + ["a"] * 2, (
        "a power of two"
    )
    assert capacity.place(Need.of(Resources(workers=[8, 8], gpus=1))) == [], "it waits for all of b"
    assert "at least 9 workers" in str(capacity.refusal(Need.of(Resources(workers=[9, 9], gpus=1))))


def test_what_fits_nowhere_is_taken_so_that_it_can_fail() -> None:
    queue = ready(("huge", Resources(gpus=9), 0))
    assert queue.next(Capacity({"a": GPUS, "b": GPUS}), 0.0) == Choice("huge", Need.of(Resources(gpus=9)), [])


def test_a_group_grows_to_a_power_of_two_for_which_there_is_room() -> None:
    names = {"a": Names(group="big")}

    def grown(workers: int, free: int, most: int = 8, **more: str) -> int:
        running = [(["a"], Need.of(Resources(cpus=8 - free)))] if free < 8 else []
        resources = Resources(workers=[1, most], **more)
        return larger_group(resources, workers, Capacity({"a": CPUS}, running, names=names))

    assert [grown(2, free) for free in (0, 1, 2, 5, 6, 8)] == [0, 0, 4, 4, 8, 8]
    assert [grown(workers, 8) for workers in (1, 2, 4, 7, 8)] == [8, 8, 8, 8, 0]
    assert [grown(2, 8, most) for most in (2, 3, 4)] == [0, 0, 4]
    assert grown(2, 8, worker_group="small") == 0


def test_a_named_node_and_a_group_are_kept_to() -> None:
    names = {"a": Names(frozenset({"host-a"}), "big"), "b": Names(frozenset({"host-b", "10.0.0.2"}), "small")}
    capacity = Capacity({"a": CPUS, "b": CPUS, "c": CPUS}, [(["b"], Need.of(Resources(cpus=8)))], names=names)
    assert capacity.place(Need.of(Resources(worker_group="big", workers=[1, 4]))) == ["a"] * 4
    assert capacity.place(Need.of(Resources(node="host-a", worker_group="big"))) == ["a"]
    full = Need.of(Resources(node="10.0.0.2"))
    assert (capacity.place(full), capacity.next_to_free(full), capacity.refusal(full)) == ([], ["b"], None)
    refused = capacity.refusal(Need.of(Resources(node="host-a", worker_group="small")))
    assert refused == (
        "the step asks in worker group small for node host-a, and no node is called that "
        "(names: 10.0.0.2, host-b)"
    )
    many = {f"{n}": Names(frozenset({f"host-{n:02}"})) for n in range(20)}
    refused = Capacity(dict.fromkeys(many, CPUS), names=many).refusal(Need.of(Resources(node="host-99")))
    assert str(refused).endswith("host-06, host-07 and 12 more)")
    assert str(Capacity({}).refusal(full)).endswith("and there is none")


def test_a_step_that_failed_waits_for_its_pause() -> None:
    queue = ready(("step", Resources(), 0))
    assert start(queue, Capacity({"a": CPUS})) == [("step", "a")]
    queue.add("step", 10.0, pause=2.0)
    assert not queue.has_ready(11.9)
    assert queue.has_ready(12.1)


def ready_in_sql(database: Database) -> set[str]:
    return set(all_of(database, select(StepRow.key).where(StepRow.state == "ready")))


def test_a_pause_is_counted_from_after_the_databases_clock(
    study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted from before, a step would be offered before it can be claimed."""
    study.submit("step")
    lease = leases.acquire(study.database, "", None)
    asked: list[str] = []
    now = Database.now

    def database_now(session: Session) -> datetime:
        asked.append("database")
        return now(session)

    def clock() -> float:
        asked.append("queue")
        return 0.0

    monkeypatch.setattr(Database, "now", staticmethod(database_now))
    state.load(study.database, lease, (), clock)
    assert asked[-2:] == ["database", "queue"]


@pytest.mark.slow
@given(
    edges=st.lists(st.lists(st.booleans(), min_size=8, max_size=8), min_size=8, max_size=8),
    outcomes=st.lists(st.sampled_from(["", "deterministic", "unavailable"]), min_size=8, max_size=8),
)
@settings(max_examples=15, suppress_health_check=FIXTURES_ARE_SHARED)
def test_the_queue_agrees_with_sql_after_every_event(
    edges: list[list[bool]], outcomes: list[str], sqlite_template: Path, store: ArtefactStore, log: Path
) -> None:
    """The slow oracle is `settle`, which looks at every step: it finds nothing to do."""
    path = log / "database.db"
    path.unlink(missing_ok=True)
    for left in log.glob("database.db-*"):
        left.unlink()
    shutil.copyfile(sqlite_template, path)
    database = open_database(f"sqlite:///{path}")
    study = ToyStudy(database, store, log)
    for number, row in enumerate(edges):
        study.add(f"{number}", before=[f"{other}" for other in range(number) if row[other]])
    study.submit()
    lease = leases.acquire(database, "", None)
    queue, _ = state.load(database, lease)
    machine = {"node": Amounts(100.0, 0.0, 100.0)}
    for _ in outcomes:
        choice = queue.next(Capacity(machine), 0.0)
        if choice is None:
            break
        [task] = state.claim(database, lease, [choice.key], "").values()
        if kind := outcomes[int(task.name)]:
            failure = state.fail(database, task, kind, "because")
            ended = queue.remove([task.key, *(step.key for step in failure.blocked)])
        else:
            outcome = StepOutcome(StepResult(facts={"seconds": 0.0}))
            released = state.finish(database, store, task, outcome, queue.released_by(task.key))
            assert released is not None
            ended = queue.succeeded(task.key)
            for key in released:
                queue.add(key, 0.0)
        with database.transaction() as session:
            state.end_studies(session, ended)
        before = study.states(), study.state()
        again, blocked = state.load(database, lease)
        assert blocked == []
        assert (study.states(), study.state()) == before
        assert again.has_ready(0.0) == queue.has_ready(0.0) == bool(ready_in_sql(database))
    assert study.state() not in rows.LIVE
    database.close()
