"""The state machine in SQL, without running anything: tasks are claimed, and finished by hand."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from by_hand import MACHINE, claim, claimed, finish, machine, settle
from sqlalchemy import select, update
from sqlalchemy.pool import QueuePool
from toy_study import ToyStudy, happenings, study_state

from creamtea.contract.step import Resources, StepResult
from creamtea.engine import lease as leases
from creamtea.engine import state
from creamtea.engine.executors.base import NOTHING, Capacity, Need, StepOutcome
from creamtea.engine.lease import Lease
from creamtea.errors import InputError
from creamtea.orders.submission import cancel, requeue
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database
from creamtea.store.tables import SegmentScore, StepRow

FAILED = state.Failure(None, [])


def test_a_step_that_gives_way_is_ready_at_once_and_has_used_no_attempt(
    database: Database, study: ToyStudy, store: ArtefactStore, lease: Lease
) -> None:
    key = study.add("step")
    study.submit(database, store)
    task = claimed(database, lease)
    assert state.give_way(database, task, "room")
    assert not state.give_way(database, task, "room")
    row = study.rows(database)["step"]
    assert (row.state, row.attempts, row.started_at, row.finished_at) == ("ready", 0, None, None)
    assert happenings(database, key) == ["started", "interrupted"]
    again = claimed(database, lease)
    assert (again.attempt, again.fence) == (1, task.fence + 1)
    assert state.finish(database, store, task, StepOutcome()) is None, "a late result"


def test_steps_run_in_the_order_of_their_inputs_with_their_files(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease, tmp_path: Path
) -> None:
    study.add("first")
    study.add("second", before=["first"])
    submission = study.submit(database, store)
    settle(database)
    first = claimed(database, lease)
    assert (first.name, first.attempt, first.fence, first.inputs) == ("first", 1, 1, {})
    assert claim(database, lease) is None
    assert finish(database, store, first, tmp_path / "out")
    settle(database)
    second = claimed(database, lease)
    [[file]] = second.inputs["before"]
    assert (second.name, file.name, store.read(file.digest)) == ("second", "out.txt", b"first")
    assert study_state(database, submission.study_id) == "running"
    finish(database, store, second, tmp_path / "out")
    settle(database)
    assert study_state(database, submission.study_id) == "succeeded"
    assert happenings(database, first.key) == ["started", "succeeded"]


@pytest.mark.slow
def test_six_threads_claim_two_hundred_steps_once_each(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    for number in range(200):
        study.add(f"step{number}")
    study.submit(database, store)
    settle(database)
    keys = list(study.keys.values())
    taken: list[str] = []

    def work(group: int) -> None:
        for first in range(0, len(keys), group):
            taken.extend(state.claim(database, lease, keys[first : first + group], "artefacts"))

    with ThreadPoolExecutor() as threads:
        done = [threads.submit(work, group) for group in (1, 1, 2, 3, 16, 200)]
    for claimer in done:
        claimer.result()  # raises what the claimer raised, as a deadlock
    assert sorted(taken) == sorted(keys)


def test_priority_then_place_in_the_study(
    database: Database, store: ArtefactStore, log: Path, lease: Lease
) -> None:
    low, high = ToyStudy(log, "low"), ToyStudy(log, "high")
    low.add("low1")
    for name in ("high1", "high2"):
        high.add(name)
    low.submit(database, store)
    high.submit(database, store, priority=1)
    settle(database)
    assert [claimed(database, lease).name for _ in range(3)] == ["high1", "high2", "low1"]


def test_an_exclusive_step_waits_until_nothing_runs(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    study.add("alone", exclusive=True)
    study.add("other")
    study.submit(database, store)
    settle(database)
    other = claimed(database, lease)
    assert other.name == "other"
    assert claim(database, lease, machine(other)) is None
    alone = claimed(database, lease, machine())
    assert alone.name == "alone"
    assert machine(alone).nodes["node"].free == NOTHING


def test_a_step_is_claimed_where_it_fits_or_never_can(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    study.add("large", resources={"cpus": 4})
    study.add("small", resources={"cpus": 1})
    study.add("huge", resources={"cpus": 64})
    study.add("memory", resources={"memory_gb": 99.5})
    study.submit(database, store)
    settle(database)
    three_left = Capacity({"node": MACHINE}, [(["node"], Need.of(Resources(cpus=1, gpus=1.0)))])
    names = [claimed(database, lease, three_left).name for _ in range(3)]
    assert names == ["small", "huge", "memory"]
    assert claim(database, lease, three_left) is None
    assert claimed(database, lease).name == "large"


def test_a_late_result_and_a_late_failure_are_thrown_away(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease, tmp_path: Path
) -> None:
    study.add("step")
    study.submit(database, store)
    settle(database)
    old = claimed(database, lease)
    with database.transaction() as session:
        leases.release_running(session, "test")
    new = claimed(database, lease)
    assert new.fence > old.fence
    assert state.renew(database, [old, new]) == [old]
    assert not finish(database, store, old, tmp_path / "out")
    assert state.fail(database, old, "deterministic", "late") is None
    assert study.states(database) == {"step": "running"}
    assert finish(database, store, new, tmp_path / "out")


def test_an_infrastructure_failure_pauses_longer_each_time_and_ends(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    key = study.add("step", resources={"max_attempts": 3})
    study.submit(database, store)
    settle(database)
    pauses = []
    for attempt in (1, 2):
        task = claimed(database, lease)
        assert task.attempt == attempt
        failure = state.fail(database, task, "infrastructure", "worker died")
        assert failure.pause == 2.0 * 4 ** (attempt - 1)
        row = study.rows(database)["step"]
        pauses.append((row.not_before - row.finished_at).total_seconds())
        assert claim(database, lease) is None, "not before its pause is over"
        with database.transaction() as session:
            earlier = row.not_before - timedelta(hours=1)
            session.execute(update(StepRow).where(StepRow.key == key).values(not_before=earlier))
    assert pauses == [2.0, 8.0]
    assert state.fail(database, claimed(database, lease), "infrastructure", "worker died") == FAILED
    assert happenings(database, key) == ["started", "retry", "started", "retry", "started", "failed"]


def test_the_pause_of_any_attempt_has_a_limit(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    study.add("step", resources={"max_attempts": 1000})
    study.submit(database, store)
    settle(database)
    task = replace(claimed(database, lease), attempt=500)
    failure = state.fail(database, task, "infrastructure", "worker died")
    assert failure.pause == state.MAX_BACK_OFF.total_seconds()


def test_a_clock_that_is_set_back_makes_no_pause_longer(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    key = study.add("step")
    study.submit(database, store)
    settle(database)
    state.fail(database, claimed(database, lease), "infrastructure", "worker died")
    with database.transaction() as session:
        row = session.get_one(StepRow, key)
        assert row.not_before is not None
        row.not_before += timedelta(hours=1)
    queue, _ = state.load(database, lease)
    assert queue.has_ready(0.0)
    assert claimed(database, lease).attempt == 2


def test_other_failures_are_final(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    for kind in ("deterministic", "unavailable", "timeout"):
        study.add(kind)
    study.submit(database, store)
    settle(database)
    for _ in range(3):
        task = claimed(database, lease)
        assert state.fail(database, task, task.name, "because") == FAILED
    assert {row.error_kind for row in study.rows(database).values()} == set(study.keys)


def test_what_stands_behind_a_failed_step_fails_with_its_name(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    study.add("culprit")
    study.add("child", before=["culprit"])
    study.add("grandchild", before=["child"])
    study.add("bystander")
    submission = study.submit(database, store)
    settle(database)
    failure = state.fail(database, claimed(database, lease), "deterministic", "NaN")
    blocked = failure.blocked
    assert settle(database) == []
    message = "did not run, because culprit failed"
    assert [(one.name, one.error) for one in blocked] == [("child", message), ("grandchild", message)]
    assert study_state(database, submission.study_id) == "running"
    assert claimed(database, lease).name == "bystander"


def test_an_unavailable_step_and_what_needs_it_leave_a_study_succeeded(
    database: Database, store: ArtefactStore, log: Path, lease: Lease
) -> None:
    alone, needed = ToyStudy(log, "alone"), ToyStudy(log, "needed")
    alone.add("score1")
    needed.add("score2")
    needed.add("child", before=["score2"])
    submissions = [one.submit(database, store).study_id for one in (alone, needed)]
    settle(database)
    for _ in range(2):
        state.fail(database, claimed(database, lease), "unavailable", "no model")
    settle(database)
    assert [study_state(database, one) for one in submissions] == ["succeeded", "succeeded"]
    child = needed.rows(database)["child"]
    assert child.error_kind == "unavailable"
    assert "score2" in child.error


def test_without_a_step_that_is_not_optional_a_study_has_failed(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STEP_KINDS, "toy", replace(STEP_KINDS["toy"], optional=False))
    study.add("align")
    study.add("child", before=["align"])
    submission = study.submit(database, store)
    settle(database)
    state.fail(database, claimed(database, lease), "unavailable", "no eflomal")
    settle(database)
    assert study_state(database, submission.study_id) == "failed"
    assert study.rows(database)["child"].error_kind == "unavailable"


def test_failed_and_cancelled_steps_are_tried_again_by_a_new_submission_and_by_retry(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    study.add("culprit", resources={"max_attempts": 1})
    study.add("child", before=["culprit"])
    submission = study.submit(database, store)
    for by_retry in (False, True):
        settle(database)
        state.fail(database, claimed(database, lease), "infrastructure", "no luck")
        settle(database)
        assert set(study.states(database).values()) == {"failed"}
        if by_retry:
            submission = requeue(database, store, submission.study_id)
        else:
            submission = study.submit(database, store)
        row = study.rows(database)["culprit"]
        assert (row.state, row.attempts, row.error, row.error_kind) == ("pending", 0, None, None)
    assert study_state(database, submission.study_id) == "queued"
    with pytest.raises(InputError, match="study toys is queued: there is nothing to retry yet"):
        requeue(database, store, submission.study_id)


def test_cancel_stops_what_no_other_study_needs(
    database: Database, store: ArtefactStore, log: Path, lease: Lease, tmp_path: Path
) -> None:
    mine, other = ToyStudy(log, "mine"), ToyStudy(log, "other")
    for one in (mine, other):
        one.add("shared")
    mine.add("own")
    mine.add("later", before=["own"])
    submission = mine.submit(database, store)
    other_submission = other.submit(database, store)
    settle(database)
    shared, own = claimed(database, lease), claimed(database, lease)
    assert cancel(database, submission.study_id)
    assert mine.states(database) == {"shared": "running", "own": "cancelled", "later": "cancelled"}
    assert state.renew(database, [shared, own]) == [own]
    assert not finish(database, store, own, tmp_path / "out")
    assert finish(database, store, shared, tmp_path / "out")
    settle(database)
    assert study_state(database, submission.study_id) == "cancelled"
    assert study_state(database, other_submission.study_id) == "succeeded"
    assert not cancel(database, submission.study_id), "it had ended"


def test_a_newer_submission_of_a_name_takes_the_place_of_an_unfinished_one(
    database: Database, store: ArtefactStore, log: Path, lease: Lease
) -> None:
    old, new = ToyStudy(log), ToyStudy(log)
    old.add("kept")
    old.add("dropped")
    new.add("kept")
    before = old.submit(database, store)
    after = new.submit(database, store)
    assert study_state(database, before.study_id) == "cancelled"
    assert study_state(database, after.study_id) == "queued"
    assert old.states(database) == {"kept": "pending", "dropped": "cancelled"}


def test_a_controller_of_one_study_claims_nothing_else(
    database: Database, store: ArtefactStore, log: Path
) -> None:
    one, two = ToyStudy(log, "one"), ToyStudy(log, "two")
    one.add("step1")
    two.add("step2")
    one.submit(database, store)
    submission = two.submit(database, store)
    lease = leases.acquire(database, "", submission.study_id)
    settle(database)
    assert claimed(database, lease).name == "step2"
    assert claim(database, lease) is None


def test_a_result_that_no_database_can_hold_is_refused_whole(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease
) -> None:
    key = study.add("step")
    study.submit(database, store)
    settle(database)
    outcome = StepOutcome(StepResult(facts={"loss": float("nan")}))
    with pytest.raises(Exception, match="loss"):
        state.finish(database, store, claimed(database, lease), outcome)
    with database.session() as session:
        assert session.scalar(select(StepRow.state).where(StepRow.key == key)) == "running"


def test_what_a_step_wrote_is_read_before_the_transaction_that_stores_it(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite it keeps all others from writing, for as long as a store takes to answer."""
    key = study.add("step")
    study.submit(database, store)
    settle(database)
    task = claimed(database, lease)
    outcome = StepOutcome(StepResult(), [StoredFile("segment_scores.jsonl", "digest", 27)])
    pool = database.engine.pool
    assert isinstance(pool, QueuePool)
    connections = []

    def read(digest: str) -> bytes:
        connections.append(pool.checkedout())
        return b'{"index": 0, "value": 0.5}\n'

    monkeypatch.setattr(store, "read", read)
    state.finish(database, store, task, outcome)
    assert connections == [0]
    with database.session() as session:
        assert session.scalar(select(SegmentScore.value).where(SegmentScore.step_key == key)) == 0.5
