"""The state machine in SQL, without running anything: tasks are claimed, and finished by hand."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from by_hand import MACHINE, ByHand
from sqlalchemy import select, update
from sqlalchemy.pool import QueuePool
from table_rows import one_of
from toy_study import ToyStudy

from creamtea.contract.step import Resources, StepResult
from creamtea.engine import lease as leases
from creamtea.engine import state
from creamtea.engine.executors.base import Capacity, Need, StepOutcome
from creamtea.errors import InputError
from creamtea.orders.submission import cancel, requeue
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.artefacts import StoredFile
from creamtea.store.tables import SegmentScore, StepFile, StepRow, StudyStep

FAILED = state.Failure(None, [])


@pytest.fixture
def study(study_on_both: ToyStudy) -> ToyStudy:
    return study_on_both


def test_a_step_that_gives_way_is_ready_at_once_and_has_used_no_attempt(
    study: ToyStudy, hand: ByHand
) -> None:
    study.submit("step")
    task = hand.claimed()
    assert state.give_way(study.database, task, "room")
    assert not state.give_way(study.database, task, "room")
    row = study.rows()["step"]
    assert (row.state, row.attempts, row.started_at, row.finished_at) == ("ready", 0, None, None)
    assert study.happened("step") == ["started", "interrupted"]
    again = hand.claimed()
    assert (again.attempt, again.fence) == (1, task.fence + 1)
    assert not hand.finish(task), "a late result"


@pytest.mark.slow
def test_six_threads_claim_two_hundred_steps_once_each(study: ToyStudy, hand: ByHand) -> None:
    study.submit(*(f"step{number}" for number in range(200)))
    hand.settle()
    keys = list(study.keys.values())
    taken: list[str] = []

    def work(group: int) -> None:
        for first in range(0, len(keys), group):
            claimed = state.claim(study.database, hand.lease, keys[first : first + group], "artefacts")
            taken.extend(claimed)

    with ThreadPoolExecutor() as threads:
        done = [threads.submit(work, group) for group in (1, 1, 2, 3, 16, 200)]
    for claimer in done:
        claimer.result()  # raises what the claimer raised, as a deadlock
    assert sorted(taken) == sorted(keys)


def test_priority_then_place_in_the_study(study: ToyStudy, hand: ByHand) -> None:
    low, high = study.another("low"), study.another("high")
    low.submit("low1")
    high.submit("high1", "high2", priority=1)
    assert [hand.claimed().name for _ in range(3)] == ["high1", "high2", "low1"]


def test_a_step_is_claimed_where_it_fits_or_never_can(study: ToyStudy, hand: ByHand) -> None:
    study.add("alone", exclusive=True)
    study.add("large", resources={"cpus": 4})
    study.add("small", resources={"cpus": 1})
    study.add("huge", resources={"cpus": 64})
    study.add("memory", resources={"memory_gb": 99.5})
    study.submit()
    three_left = Capacity({"node": MACHINE}, [(["node"], Need.of(Resources(cpus=1, gpus=1.0)))])
    assert [hand.claimed(three_left).name for _ in range(3)] == ["small", "huge", "memory"]
    assert hand.claim(three_left) is None
    assert [hand.claimed().name for _ in range(2)] == ["large", "alone"]


def test_a_late_result_and_a_late_failure_are_thrown_away(study: ToyStudy, hand: ByHand) -> None:
    study.submit("step")
    old = hand.claimed()
    with study.database.transaction() as session:
        leases.release_running(session, "test")
    new = hand.claimed()
    assert new.fence > old.fence
    assert state.renew(study.database, [old, new]) == [old]
    assert not hand.finish(old)
    assert hand.fail(old, "deterministic") is None
    assert study.states() == {"step": "running"}
    assert hand.finish(new)


def test_an_infrastructure_failure_pauses_longer_each_time_and_ends(study: ToyStudy, hand: ByHand) -> None:
    key = study.add("step", resources={"max_attempts": 3})
    study.submit()
    pauses = []
    for attempt in (1, 2):
        task = hand.claimed()
        assert task.attempt == attempt
        failure = hand.fail(task, "infrastructure")
        assert failure.pause == 2.0 * 4 ** (attempt - 1)
        row = study.rows()["step"]
        pauses.append((row.not_before - row.finished_at).total_seconds())
        assert hand.claim() is None, "not before its pause is over"
        with study.database.transaction() as session:
            earlier = row.not_before - timedelta(hours=1)
            session.execute(update(StepRow).where(StepRow.key == key).values(not_before=earlier))
    assert pauses == [2.0, 8.0]
    assert hand.fail(hand.claimed(), "infrastructure") == FAILED
    assert study.happened("step") == ["started", "retry", "started", "retry", "started", "failed"]


def test_the_pause_of_any_attempt_has_a_limit(study: ToyStudy, hand: ByHand) -> None:
    study.add("step", resources={"max_attempts": 1000})
    study.submit()
    failure = hand.fail(replace(hand.claimed(), attempt=500), "infrastructure")
    assert failure.pause == state.MAX_BACK_OFF.total_seconds()


def test_a_clock_that_is_set_back_makes_no_pause_longer(study: ToyStudy, hand: ByHand) -> None:
    study.submit("step")
    hand.fail(hand.claimed(), "infrastructure")
    with study.database.transaction() as session:
        row = session.get_one(StepRow, study.keys["step"])
        assert row.not_before is not None
        row.not_before += timedelta(hours=1)
    queue, _ = state.load(study.database, hand.lease)
    assert queue.has_ready(0.0)
    assert hand.claimed().attempt == 2


def test_what_stands_behind_a_failed_step_fails_with_its_name(study: ToyStudy, hand: ByHand) -> None:
    study.add("culprit")
    study.add("child", before=["culprit"])
    study.add("grandchild", before=["child"])
    study.submit("bystander")
    blocked = hand.fail(hand.claimed(), "deterministic").blocked
    assert hand.settle() == []
    message = "did not run, because culprit failed"
    assert [(step.name, step.error) for step in blocked] == [("child", message), ("grandchild", message)]
    assert study.state() == "running"
    assert hand.claimed().name == "bystander"


def test_an_unavailable_step_and_what_needs_it_leave_a_study_succeeded(study: ToyStudy, hand: ByHand) -> None:
    alone, needed = study.another("alone"), study.another("needed")
    alone.submit("score1")
    needed.add("score2")
    needed.add("child", before=["score2"])
    needed.submit()
    for _ in range(2):
        hand.fail(hand.claimed(), "unavailable")
    hand.settle()
    assert [alone.state(), needed.state()] == ["succeeded", "succeeded"]
    child = needed.rows()["child"]
    assert child.error_kind == "unavailable"
    assert "score2" in child.error


def test_without_a_step_that_is_not_optional_a_study_has_failed(
    study: ToyStudy, hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STEP_KINDS, "toy", replace(STEP_KINDS["toy"], optional=False))
    study.add("align")
    study.add("child", before=["align"])
    study.submit()
    hand.fail(hand.claimed(), "unavailable")
    hand.settle()
    assert study.state() == "failed"
    assert study.rows()["child"].error_kind == "unavailable"


def test_failed_and_cancelled_steps_are_tried_again_by_a_new_submission_and_by_retry(
    study: ToyStudy, hand: ByHand
) -> None:
    study.add("culprit", resources={"max_attempts": 1})
    study.add("child", before=["culprit"])
    study.submit()
    for by_retry in (False, True):
        hand.fail(hand.claimed(), "infrastructure")
        hand.settle()
        assert set(study.states().values()) == {"failed"}
        if by_retry:
            study.id = requeue(study.database, study.store, study.id).study_id
        else:
            study.submit()
        row = study.rows()["culprit"]
        assert (row.state, row.attempts, row.error, row.error_kind) == ("pending", 0, None, None)
    assert study.state() == "queued"
    with pytest.raises(InputError, match="study toys is queued: there is nothing to retry yet"):
        requeue(study.database, study.store, study.id)


def test_a_study_with_two_places_of_one_step_has_nothing_to_retry_once_it_has_succeeded(
    study: ToyStudy, hand: ByHand
) -> None:
    study.submit("step1")
    with study.database.transaction() as session:
        place = {"study_id": study.id, "node": "again", "position": 1, "labels": {}}
        session.add(StudyStep(**place, step_key=study.rows()["step1"].key))
    assert hand.finish(hand.claimed())
    hand.settle()
    with pytest.raises(InputError, match="steps of toys have succeeded"):
        requeue(study.database, study.store, study.id)
    assert study.state() == "succeeded"


def test_a_retry_loses_no_result_that_this_version_cannot_make_again(study: ToyStudy, hand: ByHand) -> None:
    study.submit("old", "new")
    for _ in range(2):
        assert hand.finish(hand.claimed())
    hand.settle()
    with study.database.transaction() as session:
        session.execute(update(StepRow).where(StepRow.key == study.keys["old"]).values(version=0))
        lost = select(StepFile.digest).where(StepFile.step_key == study.keys["old"])
        Path(study.store.object_path(session.scalars(lost).one())).unlink()
    with pytest.raises(InputError, match="old was planned by another version of creamtea"):
        requeue(study.database, study.store, study.id)
    assert (study.state(), study.states()) == ("succeeded", {"old": "succeeded", "new": "succeeded"})


def test_cancel_stops_what_no_other_study_needs(study: ToyStudy, hand: ByHand) -> None:
    mine, other = study.another("mine"), study.another("other")
    mine.add("shared")
    mine.add("own")
    mine.add("later", before=["own"])
    mine.submit()
    other.submit("shared")
    shared, own = hand.claimed(), hand.claimed()
    assert cancel(study.database, mine.id)
    assert mine.states() == {"shared": "running", "own": "cancelled", "later": "cancelled"}
    assert state.renew(study.database, [shared, own]) == [own]
    assert not hand.finish(own)
    assert hand.finish(shared)
    hand.settle()
    assert (mine.state(), other.state()) == ("cancelled", "succeeded")
    assert not cancel(study.database, mine.id), "it had ended"


def test_a_newer_submission_of_a_name_takes_the_place_of_an_unfinished_one(study: ToyStudy) -> None:
    old, new = study.another("toys"), study.another("toys")
    old.submit("kept", "dropped")
    new.submit("kept")
    assert (old.state(), new.state()) == ("cancelled", "queued")
    assert old.states() == {"kept": "pending", "dropped": "cancelled"}


def test_a_controller_of_one_study_claims_nothing_else(study: ToyStudy) -> None:
    other = study.another("other")
    study.submit("step1")
    other.submit("step2")
    hand = ByHand(study, leases.acquire(study.database, "", other.id))
    assert hand.claimed().name == "step2"
    assert hand.claim() is None


def test_what_a_step_wrote_is_read_before_the_transaction_that_stores_it(
    study: ToyStudy, hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite it keeps all others from writing, for as long as a store takes to answer."""
    study.submit("step")
    task = hand.claimed()
    outcome = StepOutcome(StepResult(), [StoredFile("segment_scores.jsonl", "digest", 27)])
    pool = study.database.engine.pool
    assert isinstance(pool, QueuePool)
    connections = []

    def read(digest: str) -> bytes:
        connections.append(pool.checkedout())
        return b'{"index": 0, "value": 0.5}\n'

    monkeypatch.setattr(study.store, "read", read)
    state.finish(study.database, study.store, task, outcome)
    assert connections == [0]
    assert one_of(study.database, select(SegmentScore.value)) == 0.5
