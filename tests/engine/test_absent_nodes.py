"""A step that fits no node of a cluster: how long it waits for one, and how that ends."""

from collections.abc import Callable

import pytest
from sqlalchemy import select
from table_rows import one_of
from toy_study import ToyStudy, happenings

from creamtea.engine.controller import Controller
from creamtea.engine.events import EngineEvent, Notice, StepFailed
from creamtea.engine.executors.base import Amounts, Capacity
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.engine.queue import NODE_GAP, AbsentNodes
from creamtea.orders.controllers import live_controller
from creamtea.store import tables
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database

pytestmark = pytest.mark.usefixtures("quick")

Run = Callable[..., list[EngineEvent]]


class Cluster(InlineExecutor):
    """One node, which gets a GPU once it has been asked for what it has so many times."""

    address = "127.0.0.1:1"

    def __init__(self, asked: int) -> None:
        super().__init__()
        self.until = asked

    def capacity(self) -> Capacity:
        self.until -= 1
        return Capacity({"node": Amounts(8.0, float(self.until < 0), 8.0)})


def test_a_step_that_fits_no_node_of_a_cluster_waits_for_one(
    sqlite: Database, study: ToyStudy, run_study: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.engine.queue.NODE_PAUSE", 0.01)
    key = study.add("step", resources={"gpus": 1})
    events = run_study(study, sqlite, Cluster(3))
    assert study.states(sqlite) == {"step": "succeeded"}
    [notice] = [event.message for event in events if isinstance(event, Notice)]
    assert notice.startswith(
        "the step asks for cpus=1, gpus=1, memory_gb=0 on one node, and no node has that"
    )
    assert notice.endswith("; waiting up to 10 minutes for nodes that have it")
    assert happenings(sqlite, key) == ["started", "succeeded"]


def test_pages_are_told_why_it_waits(
    sqlite: Database, store: ArtefactStore, study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.engine.queue.NODE_PAUSE", 0.01)
    told: list[dict[str, str]] = []

    class Watched(Cluster):
        def capacity(self) -> Capacity:
            live = live_controller(sqlite)
            told.append(store.read_reasons(live.fence))
            return super().capacity()

    key = study.add("step", resources={"gpus": 1})
    submission = study.submit(sqlite, store)
    Controller(sqlite, store, Watched(3)).run(submission.study_id)
    first, *later = told
    assert first == {}
    assert later
    for reasons in later:
        assert reasons[key].endswith("; waiting up to 10 minutes for nodes that have it")
    fence = one_of(sqlite, select(tables.Controller.fence))
    assert store.read_reasons(fence) == {}


def test_it_does_not_wait_for_ever(
    sqlite: Database, study: ToyStudy, run_study: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.engine.queue.NODE_PAUSE", 0.01)
    monkeypatch.setattr("creamtea.engine.queue.NODE_SECONDS", 0.1)
    study.add("step", resources={"gpus": 1})
    [failed] = [event for event in run_study(study, sqlite, Cluster(10**9)) if isinstance(event, StepFailed)]
    assert failed.kind == "unavailable"
    assert (
        "; change it under resources.toy in the study, or retry when there are some (waited " in failed.error
    )


def test_it_waits_anew_where_a_node_was_there_meanwhile() -> None:
    absent = AbsentNodes()
    looks = [0.0, 5.0, 400.0, 405.0, 590.0, 605.0, 620.0]
    assert all(absent.waits("step", "no node has that", now) for now in looks)
    assert absent.reasons(620.0 + NODE_GAP)
    assert not absent.reasons(621.0 + NODE_GAP)
    assert not absent.waits("step", None, 625.0)
    assert not absent.reasons(625.0)


def test_it_waits_no_longer_than_the_limit() -> None:
    absent = AbsentNodes()
    waited = [absent.waits("step", "no node has that", float(now)) for now in range(0, 610, 5)]
    assert waited == [True] * 120 + [False, True]
