"""A group of workers on a Ray cluster that loses a node and gets another one: no digit of a result changes.

The group decodes. That a training gives way to more workers, and is the same on any number of them, is shown
without Ray (tests/training); a whole study whose training loses a worker is in tests/e2e/test_whole_study.py.
"""

import shutil
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import held_steps
import pytest
from held_steps import ALONE, TOGETHER
from limits import START, wait_until
from sqlalchemy import select
from table_rows import all_of
from toy_cluster import Cluster, kill_tree, running_cluster
from toy_study import happenings

from creamtea.engine.controller import Controller
from creamtea.engine.events import EngineEvent, StepStopped
from creamtea.engine.executors.base import Executor, FinishedAttempt, StepTask
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.engine.executors.ray import RayExecutor
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
    "resources.decode.workers=[1, 2]",
]
BEFORE = (
    "corpus/grammar",
    "subwords/grammar/joint",
    "encode/grammar/joint",
    "test_set/test",
    "train/softmax/1",
)
DECODE = "decode/greedy/1/test"


def open_place(folder: Path) -> tuple[Database, ArtefactStore]:
    return open_database(f"sqlite:///{folder / 'database.db'}"), ArtefactStore(folder / "store")


def run_steps(
    folder: Path,
    nodes: Sequence[str],
    executor: Executor,
    emit: Callable[[EngineEvent], None] = lambda event: None,
) -> None:
    """Run the steps of these nodes of the study; they succeed."""
    whole = planned()
    keys = {node.key for node in whole.nodes if node.node in nodes}
    part = Plan(
        whole.study,
        [step for step in whole.steps if step.key in keys],
        [node for node in whole.nodes if node.node in nodes],
    )
    database, store = open_place(folder)
    submission = submit(database, store, part, {"name": part.study}, "hash", 0)
    try:
        Controller(database, store, executor, emit).run(submission.study_id)
    finally:
        executor.shutdown()
    errors = {row.key: row.error for row in all_of(database, select(StepRow)) if row.state != "succeeded"}
    database.close()
    assert not errors


def digests(folder: Path, key: str) -> dict[str, str]:
    """Return the digests of the files that the step has left, by name."""
    database, _ = open_place(folder)
    with database.session() as session:
        rows = session.execute(select(StepFile.name, StepFile.digest).where(StepFile.step_key == key)).all()
    database.close()
    return dict(rows)


def planned() -> Plan:
    loaded = load_study(TINY, SETTINGS)
    return plan(loaded.study, TINY.parent, loaded.errors)


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


def test_a_group_that_loses_a_node_and_gets_another_changes_no_digit(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = [node.key for node in planned().nodes if node.node == DECODE]
    place, undisturbed = tmp_path / "place", tmp_path / "undisturbed"
    place.mkdir()
    shutil.copyfile(sqlite_template, place / "database.db")
    run_steps(place, BEFORE, InlineExecutor())
    shutil.copytree(place, undisturbed)
    run_steps(undisturbed, [*BEFORE, DECODE], InlineExecutor())  # one worker, in this process

    monkeypatch.setattr("creamtea.engine.queue.GROW_AFTER", 0.0)
    events: list[EngineEvent] = []
    with running_cluster("--num-cpus=0") as cluster:  # a head without CPUs, and two nodes with one each
        for _ in range(2):
            add_node(cluster)
            cluster.wait_for_node()
        # the victim is the node of the first worker, and of the Ray actor that has started the group
        executor = Disturbed(cluster, tmp_path, victim=0)
        wait_until(lambda: sum(each.total.cpus for each in executor.capacity().nodes.values()) == 2, START)
        run_steps(place, [*BEFORE, DECODE], executor, events.append)

    assert digests(place, key) == digests(undisturbed, key)
    assert [size for size, _ in groupby(map(len, executor.places))] == [2, 1, 2]
    [*_, stopped] = [event for event in events if isinstance(event, StepStopped)]
    assert stopped.reason == "it goes on with more workers"
    database, store = open_place(place)
    happened = happenings(database, key)
    retries = happened.count("retry")  # several where Ray still takes the lost node for alive
    assert happened[:2] == ["started", "retry"]
    assert happened[-4:] == ["started", "interrupted", "started", "succeeded"]
    assert happened.count("interrupted") == 1
    with database.session() as session:
        row = session.get_one(StepRow, key)
        assert row.attempts == retries + 1, "to grow costs no attempt"
        assert row.facts["workers"] == 2
    database.close()
    assert not store.checkpoints(key).names()
