"""A step that fits no node of a cluster: how long it waits for one, and how that ends."""

import pytest
from sqlalchemy import select
from table_rows import one_of
from toy_study import ToyStudy

from creamtea.engine.controller import NO_MACHINE
from creamtea.engine.events import Notice, StepFailed
from creamtea.engine.executors.base import Amounts, Capacity
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.engine.queue import NODE_GAP, AbsentNodes
from creamtea.errors import InfrastructureError
from creamtea.orders.controllers import live_controller
from creamtea.store import tables
from creamtea.store.artefacts import EVERY_STEP, ArtefactStore

WAITS = "; waiting up to 10 minutes for nodes that have it"


@pytest.fixture(autouse=True)
def asks_often(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creamtea.engine.queue.NODE_PAUSE", 0.01)


class Cluster(InlineExecutor):
    """One node, which is there (or has a GPU) once it has been asked three times for what it has. Keeps what
    pages were told each time."""

    address = "127.0.0.1:1"

    def __init__(self, study: ToyStudy, before: Capacity, asked: int = 3) -> None:
        super().__init__()
        self.study, self.before, self.until = study, before, asked
        self.told: list[dict[str, str]] = []

    def capacity(self) -> Capacity:
        fence = live_controller(self.study.database).fence  # type: ignore[union-attr]
        self.told.append(self.study.store.read_reasons(fence))
        if len(self.told) > self.until:
            return Capacity({"node": Amounts(8.0, 1.0, 8.0)})
        return self.before


NOTHING, NO_GPU = Capacity({}), Capacity({"node": Amounts(8.0, 0.0, 8.0)})


def test_a_step_that_fits_no_node_of_a_cluster_waits_for_one_and_pages_are_told_why(study: ToyStudy) -> None:
    key = study.add("step", resources={"gpus": 1})
    cluster = Cluster(study, NO_GPU)
    [notice] = [event.message for event in study.run(cluster) if isinstance(event, Notice)]
    asks = "the step asks for cpus=1, gpus=1, memory_gb=0 on one node, and no node has that"
    assert notice.startswith(asks)
    assert notice.endswith(WAITS)
    assert study.happened("step") == ["started", "succeeded"]
    first, *later = cluster.told
    assert first == {}
    assert len(later) >= 3
    assert all(reasons[key].endswith(WAITS) for reasons in later)
    assert study.store.read_reasons(one_of(study.database, select(tables.Controller.fence))) == {}


def test_a_cluster_without_a_machine_is_told_until_there_is_one(study: ToyStudy) -> None:
    cluster = Cluster(study, NOTHING, 2)
    study.add("step")
    study.run(cluster)
    assert cluster.told == [{}, {EVERY_STEP: NO_MACHINE}, {EVERY_STEP: NO_MACHINE}]
    assert study.store.read_reasons(one_of(study.database, select(tables.Controller.fence))) == {}


def test_a_store_that_takes_no_notice_ends_no_controller(
    study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: ArtefactStore, fence: int, reasons: dict[str, str]) -> None:
        raise InfrastructureError("no space left at /artefacts")

    monkeypatch.setattr(ArtefactStore, "write_reasons", full)
    study.add("step")
    events = study.run(Cluster(study, NOTHING))
    assert study.states() == {"step": "succeeded"}
    assert events.count(Notice("no space left at /artefacts; steps run on")) == 1


def test_it_does_not_wait_for_ever(study: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creamtea.engine.queue.NODE_SECONDS", 0.1)
    study.add("step", resources={"gpus": 1})
    events = study.run(Cluster(study, NO_GPU, 10**9))
    [failed] = [event for event in events if isinstance(event, StepFailed)]
    assert failed.kind == "unavailable"
    remedy = "; change it under resources.toy in the study, or retry when there are some (waited "
    assert remedy in failed.error


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
