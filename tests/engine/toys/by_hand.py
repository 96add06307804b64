"""What a controller and its workers do with steps, done by hand."""

from sqlalchemy import select
from table_rows import all_of
from toy_study import ToyStudy

from creamtea.contract.step import StepResult
from creamtea.engine import lease as leases
from creamtea.engine import state
from creamtea.engine.executors.base import Amounts, Capacity, Need, StepOutcome, StepTask
from creamtea.engine.lease import Lease
from creamtea.store.tables import StepRow

MACHINE = Amounts(4.0, 1.0, 16.0)


def machine(*running: StepTask) -> Capacity:
    """One node, with what runs there."""
    return Capacity({"node": MACHINE}, [(["node"], Need.of(task.resources)) for task in running])


class ByHand:
    """A controller of all studies in the study's database, and its workers."""

    def __init__(self, study: ToyStudy, lease: Lease | None = None) -> None:
        self.database, self.store = study.database, study.store
        self.lease = lease or leases.acquire(self.database, "", None)
        self.scratch = study.log / "out"  # of what a step wrote last
        self.scratch.mkdir(exist_ok=True)

    def claim(self, capacity: Capacity | None = None) -> StepTask | None:
        """Start the step that a controller would start next which remembers nothing of earlier calls."""
        running = all_of(self.database, select(StepRow.key).where(StepRow.state == "running"))
        queue, _ = state.load(self.database, self.lease, running)
        choice = queue.next(capacity or machine(), 0.0)
        return choice and state.claim(self.database, self.lease, [choice.key], "artefacts").get(choice.key)

    def claimed(self, capacity: Capacity | None = None) -> StepTask:
        task = self.claim(capacity)
        assert task is not None
        return task

    def settle(self) -> list[state.Blocked]:
        with self.database.transaction() as session:
            return state.settle(session)

    def finish(self, task: StepTask) -> bool:
        """Succeed with one file, as the runner would."""
        self.scratch.joinpath("out.txt").write_text(task.name)
        outcome = StepOutcome(StepResult(), self.store.put_folder(self.scratch))
        return state.finish(self.database, self.store, task, outcome) is not None

    def fail(self, task: StepTask, kind: str, error: str = "because") -> state.Failure | None:
        return state.fail(self.database, task, kind, error)
