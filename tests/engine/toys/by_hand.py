"""What a controller and its workers do with steps, done by hand."""

from pathlib import Path

from sqlalchemy import select
from table_rows import all_of

from creamtea.contract.step import StepResult
from creamtea.engine import state
from creamtea.engine.executors.base import Amounts, Capacity, Need, StepOutcome, StepTask
from creamtea.engine.lease import Lease
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import StepRow

MACHINE = Amounts(4.0, 1.0, 16.0)


def machine(*running: StepTask) -> Capacity:
    """One node, with what runs there."""
    return Capacity({"node": MACHINE}, [(["node"], Need.of(task.resources)) for task in running])


def claim(database: Database, lease: Lease, capacity: Capacity | None = None) -> StepTask | None:
    """The step that a controller would start next, which remembers nothing of earlier calls."""
    running = all_of(database, select(StepRow.key).where(StepRow.state == "running"))
    queue, _ = state.load(database, lease, running)
    choice = queue.next(capacity or machine(), 0.0)
    return choice and state.claim(database, lease, [choice.key], "artefacts").get(choice.key)


def claimed(database: Database, lease: Lease, capacity: Capacity | None = None) -> StepTask:
    task = claim(database, lease, capacity)
    assert task is not None
    return task


def settle(database: Database) -> list[state.Blocked]:
    with database.transaction() as session:
        return state.settle(session)


def finish(database: Database, store: ArtefactStore, task: StepTask, folder: Path) -> bool:
    """Succeed with one file, as the runner would."""
    folder.mkdir(exist_ok=True)
    folder.joinpath("out.txt").write_text(task.name)
    outcome = StepOutcome(StepResult(), store.put_folder(folder))
    return state.finish(database, store, task, outcome) is not None
