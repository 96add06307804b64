"""A study while it runs: what each step does, waits for, or failed of."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from teatime_study import fill_study

from creamtea.contract.step import LiveExample, LiveView, PointRow
from creamtea.engine import lease as leases
from creamtea.report.watching import MAX_BARS, NO_CONTROLLER, timeline, watch
from creamtea.store.artefacts import EVERY_STEP, ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import Node
from creamtea.store.tables import StepRow

UNSTARTED = {"state": "pending", "facts": None, "finished_at": None}


@pytest.fixture
def store(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "artefacts")


def begun(database: Database, **training: Any) -> int:
    """A study whose second training has not ended."""
    later = ("decode/scones", "score/scones", "compare/scones", "latency")
    changes: dict[str, Any] = dict.fromkeys(later, UNSTARTED)
    changes["train/scones/2"] = UNSTARTED | {"state": "running"} | training
    return fill_study(database, changes=changes, state="running")


def test_a_training_shows_how_far_it_is_and_how_it_develops(database: Database, store: ArtefactStore) -> None:
    study = begun(database, started_at=None)
    with database.transaction() as session:
        row = session.query(StepRow).filter(StepRow.state == "running").one()
        row.started_at, row.fence, key = database.now(session) - timedelta(seconds=3000), 4, row.key
    store.write_progress(key, 4, 500, 2000, "updates, epoch 1", 9000.0)
    view = LiveView(
        points=[PointRow("train_loss_now", update, 5.0) for update in (20, 40)],
        examples=[LiveExample("a", "b", [(20, "x"), (40, "b")])],
    )
    store.write_live(key, 4, view)
    watched = watch(database, store, study)
    (running,) = watched.running
    assert (running.share, running.message) == (0.25, "500/2,000 updates, epoch 1")
    assert running.title == "train: scones, seed 2"
    assert running.seconds_left == 9000
    losses = [figure for figure in watched.curves if figure.key.startswith("train_loss-scones")]
    assert [row["update"] for row in losses[0].rows if row["run"] == "scones, seed 2"] == [20, 40]
    ((training, example),) = watched.examples
    assert (training, example.outputs) == ("scones, seed 2", [(20, "x"), (40, "b")])
    store.write_live(key, 3, view)  # of an attempt that is over
    assert watch(database, store, study).examples == []


def test_what_waits_says_for_what(database: Database, store: ArtefactStore) -> None:
    study = begun(database)
    reasons = watch(database, store, study).waiting
    after_training = next(titles for reason, titles in reasons.items() if "train: scones, seed 2" in reason)
    assert "decode: scones-greedy, seed 2, test" in after_training
    # the score waits for the decode, which waits for the training
    assert "score: scones-greedy, seed 2, test, bleu" in after_training


@pytest.mark.parametrize(
    "controller, not_before, reason",
    [
        (None, None, NO_CONTROLLER),
        (99, None, "another study"),
        (0, None, "while other steps are running"),
        (0, 100, "tried again in"),
        (0, 4000, "while other steps are running"),  # no pause is that long: the clock was set back
    ],
)
def test_a_ready_step_says_why_it_does_not_start(
    controller: int | None, not_before: int | None, reason: str, database: Database, store: ArtefactStore
) -> None:
    study = begun(database)
    if controller is not None:
        leases.acquire(database, "", controller or study)
    with database.transaction() as session:
        one = session.query(StepRow).filter(StepRow.kind == "train").first()
        one.state = "running"  # the lease has released what it had not started itself
        ready = session.query(StepRow).filter(StepRow.kind == "decode", StepRow.state == "pending").first()
        ready.state = "ready"
        if not_before is not None:
            ready.not_before = database.now(session) + timedelta(seconds=not_before)
            ready.error = "node lost"
    watched = watch(database, store, study)
    assert any(reason in waits for waits in watched.waiting)
    assert watched.nothing_runs == (reason == NO_CONTROLLER)


def test_what_the_controller_says_is_why_a_step_waits(database: Database, store: ArtefactStore) -> None:
    study = fill_study(database, changes={"decode/scones": UNSTARTED | {"state": "ready"}}, state="running")
    lease = leases.acquire(database, "", study)
    with database.session() as session:
        keys = [row.key for row in session.query(StepRow).filter(StepRow.state == "ready")]
    store.write_reasons(lease.fence, {EVERY_STEP: "no machine is there"})
    assert list(watch(database, store, study).waiting) == ["no machine is there"]
    store.write_reasons(
        lease.fence, {**dict.fromkeys(keys, "no node has a GPU"), "of another": "no node has two"}
    )
    assert list(watch(database, store, study).waiting) == ["no node has a GPU"]
    store.write_reasons(lease.fence - 1, {EVERY_STEP: "no machine in an earlier one"})
    assert "no machine" not in str(watch(database, store, study).waiting)


def test_a_study_whose_controller_has_ended_says_so(database: Database, store: ArtefactStore) -> None:
    running = {"train/scones/2": UNSTARTED | {"state": "running"}}
    assert watch(database, store, fill_study(database, changes=running, state="running")).nothing_runs
    assert not watch(database, store, fill_study(database)).nothing_runs


def test_a_failure_comes_with_the_first_line_of_its_reason(database: Database, store: ArtefactStore) -> None:
    error = {"state": "failed", "error_kind": "deterministic", "error": "no cup\nTraceback …"}
    left_out = {"state": "failed", "error_kind": "upstream", "error": "not run"}
    study = fill_study(database, changes={"latency": error, "decode/scones/1": left_out}, state="running")
    (failed,) = watch(database, store, study).failed
    assert (failed.title, failed.outcome, failed.reason) == ("latency: test", "failed", "no cup")


def test_a_timeline_has_a_row_for_each_step_that_ran_at_once() -> None:
    start = datetime(2026, 3, 4, tzinfo=UTC)

    def ran(name: str, begin: float, end: float | None, machine: str = "a", kind: str = "train") -> Node:
        moments = [None if at is None else start + timedelta(minutes=at) for at in (begin, end)]
        state = "running" if end is None else "succeeded"
        facts = {} if end is None else {"node": machine}
        return Node(name, {"corpus": name}, name, kind, state, {}, 1, 1, None, None, facts, *moments)

    nodes = [
        ran("one", 0, 4),
        ran("two", 1, 3),
        ran("three", 3, 5),
        ran("there", 2, 3, "b"),
        ran("now", 5, None),
        ran("reused", -9, -8),
    ]
    drawn = timeline(nodes, start, start + timedelta(minutes=7))
    assert [(row["lane"], row["step"], row["from"], row["to"], row["took"]) for row in drawn.rows] == [
        ("a (1)", "train: one", 0, 4, "4 min"),
        ("a (2)", "train: two", 1, 3, "2 min"),
        ("b (1)", "train: there", 2, 3, "60 s"),
        ("a (2)", "train: three", 3, 5, "2 min"),
        ("running (1)", "train: now", 5, 7, "2 min"),
    ]
    assert drawn.missing == ()
    rows = [f"a ({number})" for number in range(1, 12)]
    drawn = timeline([ran("x", 0, 1) for _ in rows], start, start)
    assert json.dumps(rows) in json.dumps(drawn.spec)  # in the order of their numbers
    many = [ran("x", at / 100, (at + 1) / 100, kind=f"kind_{at % 10}") for at in range(MAX_BARS + 3)]
    drawn = timeline(many, start, start)
    assert drawn.missing == ("3 shorter steps",)
    kinds = {row["kind"] for row in drawn.rows}
    assert len(kinds) == 8
    assert "other" in kinds
    assert timeline([], start, start).rows == ()
