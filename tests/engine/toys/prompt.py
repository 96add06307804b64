"""An executor without processes."""

from collections.abc import Sequence

from creamtea.engine.executors.base import Amounts, Capacity, FinishedAttempt, Need, StepOutcome, StepTask


class Prompt:
    """Ends every step at once, as `outcomes` says by its node; succeeds where it says nothing."""

    address = ""
    opening = ""

    def __init__(self, outcomes: dict[str, StepOutcome]) -> None:
        self._outcomes = outcomes
        self._ended: list[FinishedAttempt] = []

    def check(self) -> None:
        pass

    def capacity(self) -> Capacity:
        running = [(["machine"], Need.of(finished.task.resources)) for finished in self._ended]
        return Capacity({"machine": Amounts(4.0, 0.0, 8.0)}, running)

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        succeeded = StepOutcome()
        succeeded.result.facts["seconds"] = 0.0
        self._ended.append(FinishedAttempt(task, self._outcomes.get(task.name, succeeded)))

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        ended, self._ended = self._ended, []
        return ended

    def cancel(self, task: StepTask) -> None:
        raise AssertionError("nothing is cancelled here")

    def shutdown(self) -> None:
        pass
