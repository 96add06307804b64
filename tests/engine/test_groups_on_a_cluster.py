"""A group of workers on a Ray cluster that gets a node and loses another one: no digit of a result changes.

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

from creamtea.engine.controller import Controller
from creamtea.engine.events import EngineEvent, StepStopped
from creamtea.engine.executors.base import Executor, FinishedAttempt, StepTask
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.engine.executors.ray import RayExecutor
from creamtea.orders.submission import submit
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Event, StepFile, StepRow
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
) -> dict[str, str]:
    """Run the steps of these nodes of the study; they succeed. Return the digests of their files by name."""
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
    files = {f"{row.step_key}/{row.name}": row.digest for row in all_of(database, select(StepFile))}
    database.close()
    assert not errors
    return files


def planned() -> Plan:
    loaded = load_study(TINY, SETTINGS)
    return plan(loaded.study, TINY.parent, loaded.errors)


class Disturbed(RayExecutor):
    """Gives a worker that is alone another node; then kills the node of the first worker of the group of two,
    and of the Ray actor that has started the group."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(cluster.address, held_steps.environment(folder))
        self.cluster, self.folder = cluster, folder
        self.places: list[Sequence[str]] = []  # the node of each worker, for each attempt
        self.done: set[str] = set()

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        self.places.append(nodes)
        super().start(task, nodes)

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        if self.waits(TOGETHER):
            self.kill(self.places[-1][0])
        grows = ALONE in self.done and TOGETHER not in self.done
        if self.waits(ALONE) or (grows and self.cluster.nodes[-1].poll() is not None):
            self.cluster.start_node()  # again where a busy machine was too slow for Ray
        return super().poll(timeout)

    def waits(self, what: str) -> bool:
        """True once."""
        if what in self.done or not (self.folder / what).exists():
            return False
        self.done.add(what)
        return True

    def kill(self, node_id: str) -> None:
        import ray

        [name] = [node["NodeName"] for node in ray.nodes() if node["NodeID"] == node_id]
        kill_tree(self.cluster.nodes[int(name.removeprefix("node"))].pid)


def test_a_group_that_gets_a_node_and_loses_another_changes_no_digit(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = [node.key for node in planned().nodes if node.node == DECODE]
    place, undisturbed = tmp_path / "place", tmp_path / "undisturbed"
    place.mkdir()
    shutil.copyfile(sqlite_template, place / "database.db")
    run_steps(place, BEFORE, InlineExecutor())
    shutil.copytree(place, undisturbed)
    # one worker, in this process
    expected = run_steps(undisturbed, [*BEFORE, DECODE], InlineExecutor())

    monkeypatch.setattr("creamtea.engine.queue.GROW_AFTER", 0.0)
    events: list[EngineEvent] = []
    with running_cluster("--num-cpus=0") as cluster:  # a head without CPUs, and a node with one
        cluster.start_node()
        cluster.wait_for_node()
        executor = Disturbed(cluster, tmp_path)
        wait_until(lambda: sum(each.total.cpus for each in executor.capacity().nodes.values()) == 1, START)
        assert run_steps(place, [*BEFORE, DECODE], executor, events.append) == expected

    assert [size for size, _ in groupby(map(len, executor.places))] == [1, 2, 1]
    [*_, stopped] = [event for event in events if isinstance(event, StepStopped)]
    assert stopped.reason == "it goes on with more workers"
    database, store = open_place(place)
    happened = all_of(database, select(Event.what).where(Event.step_key == key).order_by(Event.id))
    retries = happened.count("retry")  # several where Ray still takes the lost node for alive
    assert happened[:4] == ["started", "interrupted", "started", "retry"]
    assert happened[-2:] == ["started", "succeeded"]
    assert happened.count("interrupted") == 1
    with database.session() as session:
        row = session.get_one(StepRow, key)
        assert row.attempts == retries + 1, "to grow costs no attempt"
        assert [row.facts["node"]] == [node[:12] for node in executor.places[-1]]
    database.close()
    assert not store.checkpoints(key).names()
