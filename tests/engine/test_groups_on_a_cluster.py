"""Groups of workers on a Ray cluster that loses a node and gets another one: no digit of a result changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import held_steps
import pytest
from held_steps import ALONE, TOGETHER
from limits import START, wait_until
from sqlalchemy import select
from toy_cluster import Cluster, kill_tree, running_cluster
from toy_study import happenings

from creamtea.engine.controller import Controller
from creamtea.engine.events import EngineEvent, StepStopped
from creamtea.engine.executors.base import Executor, FinishedAttempt
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.engine.executors.ray import RayExecutor
from creamtea.engine.task import StepTask
from creamtea.orders.submission import submit
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.tables import StepFile, StepRow
from creamtea.study.loader import load_study
from creamtea.study.plan import Plan, plan

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TINY = Path(__file__).parents[1] / "e2e" / "tiny.yaml"
SETTINGS = [
    "variants.softmax.training.max_epochs=1",
    "systems.greedy.batch_size=4",
    "resources.train.workers=[1, 2]",
    "resources.decode.workers=[1, 2]",
]
INPUTS = ("corpus/grammar", "subwords/grammar/joint", "encode/grammar/joint", "test_set/test")
TRAIN, DECODE = "train/softmax/1", "decode/greedy/1/test"


@dataclass(frozen=True)
class Place:
    """A database and an artefact store in a folder."""

    folder: Path

    def copy(self, folder: Path) -> Place:
        shutil.copytree(self.folder, folder)
        return Place(folder)

    def open(self) -> tuple[Database, ArtefactStore]:
        return open_database(f"sqlite:///{self.folder / 'database.db'}"), ArtefactStore(self.folder / "store")

    def run(
        self,
        nodes: Sequence[str],
        executor: Executor,
        emit: Callable[[EngineEvent], None] = lambda event: None,
    ) -> None:
        """The steps of these nodes of the study; they succeed."""
        whole = planned()
        keys = {node.key for node in whole.nodes if node.node in nodes}
        part = Plan(
            whole.study,
            [step for step in whole.steps if step.key in keys],
            [node for node in whole.nodes if node.node in nodes],
        )
        database, store = self.open()
        submission = submit(database, store, part, {"name": part.study}, "hash", 0)
        try:
            Controller(database, store, executor, emit).run(submission.study_id)
        finally:
            executor.shutdown()
        with database.session() as session:
            errors = {
                row.key: row.error for row in session.scalars(select(StepRow)) if row.state != "succeeded"
            }
        database.close()
        assert not errors

    def digests(self, node: str) -> dict[str, str]:
        """Of the files that the step has left, by name."""
        database, _ = self.open()
        with database.session() as session:
            files = session.scalars(select(StepFile).where(StepFile.step_key == key_of(node)))
            found = {file.name: file.digest for file in files}
        database.close()
        return found


def planned() -> Plan:
    loaded = load_study(TINY, SETTINGS)
    return plan(loaded.study, TINY.parent, loaded.errors)


def key_of(node: str) -> str:
    return next(planned_node.key for planned_node in planned().nodes if planned_node.node == node)


@dataclass(frozen=True)
class Undisturbed:
    """What one worker makes in this process, and what there was before its training and decoding."""

    before: dict[str, Place]
    files: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def undisturbed(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    place, done, before = Place(folder / "whole"), list(INPUTS), {}
    place.folder.mkdir()
    shutil.copyfile(sqlite_template, place.folder / "database.db")
    place.run(INPUTS, InlineExecutor())
    for node in (TRAIN, DECODE):
        before[node] = place.copy(folder / node.replace("/", "-"))
        done.append(node)
        place.run(done, InlineExecutor())
    return Undisturbed(before, {node: place.digests(node) for node in before})


@pytest.fixture(scope="module")
def cluster(undisturbed: Undisturbed) -> Iterator[Cluster]:
    """A head without CPUs and two nodes with one each; started when the other work has been done."""
    with running_cluster("--num-cpus=0") as started:
        for _ in range(2):
            add_node(started)
            started.wait_for_node()
        yield started


def add_node(cluster: Cluster) -> None:
    cluster.start_node(f"--node-name=node{len(cluster.nodes)}")


class Disturbed(RayExecutor):
    """Kills the node of a worker of the group of two that waits for it, and gives the one that goes on alone
    another node."""

    def __init__(self, cluster: Cluster, folder: Path, victim: int) -> None:
        super().__init__(cluster.address, held_steps.environment(folder))
        self.cluster, self.folder, self.victim = cluster, folder, victim
        self.places: list[Sequence[str]] = []  # the node of each worker, for each attempt
        self.done: set[str] = set()

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        self.places.append(nodes)
        super().start(task, nodes)

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        if self.waits(TOGETHER):
            self.kill(self.places[0][self.victim])
        if self.waits(ALONE) or (ALONE in self.done and self.cluster.nodes[-1].poll() is not None):
            add_node(self.cluster)  # again where a busy machine was too slow for Ray
        return super().poll(timeout)

    def waits(self, what: str) -> bool:
        """True once."""
        if what in self.done or not (self.folder / what).exists():
            return False
        self.done.add(what)
        return True

    def kill(self, node_id: str) -> None:
        [number] = [number for number in range(len(self.cluster.nodes)) if node_id == self.node_id(number)]
        kill_tree(self.cluster.nodes[number].pid)

    def node_id(self, number: int) -> str | None:
        import ray

        names = {node["NodeName"]: node["NodeID"] for node in ray.nodes()}
        return names.get(f"node{number}")


@pytest.mark.parametrize(
    ("node", "victim"),
    [
        pytest.param(TRAIN, 1, id="training"),
        pytest.param(DECODE, 0, id="decoding"),  # also of the Ray task that has started the group
    ],
)
def test_a_group_that_loses_a_node_and_gets_another_changes_no_digit(
    undisturbed: Undisturbed,
    cluster: Cluster,
    node: str,
    victim: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("creamtea.engine.queue.GROW_AFTER", 0.0)
    place = undisturbed.before[node].copy(tmp_path / "place")
    executor = Disturbed(cluster, tmp_path, victim)
    wait_until(lambda: sum(each.total.cpus for each in executor.capacity().nodes.values()) == 2, START)
    events: list[EngineEvent] = []
    steps = [*INPUTS, *([TRAIN] if node == DECODE else []), node]
    place.run(steps, executor, events.append)
    assert place.digests(node) == undisturbed.files[node]
    assert [size for size, _ in groupby(map(len, executor.places))] == [2, 1, 2]
    [*_, stopped] = [event for event in events if isinstance(event, StepStopped)]
    assert stopped.reason == "it goes on with more workers"
    database, store = place.open()
    happened = happenings(database, key_of(node))
    retries = happened.count("retry")  # several where Ray still takes the lost node for alive
    assert happened[:2] == ["started", "retry"]
    assert happened[-4:] == ["started", "interrupted", "started", "succeeded"]
    assert happened.count("interrupted") == 1
    with database.session() as session:
        row = session.get_one(StepRow, key_of(node))
        assert row.attempts == retries + 1, "to grow costs no attempt"
        assert row.facts is not None
        assert row.facts["workers"] == 2
    database.close()
    assert not store.checkpoints(key_of(node)).names()
