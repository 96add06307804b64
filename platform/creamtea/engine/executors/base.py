"""The interface of all executors: they run attempts of steps, and know nothing of the database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from creamtea.engine.task import Resources, StepOutcome, StepTask


@dataclass(frozen=True)
class Limits:
    """What there is in all, and the most that one step can have (of the largest node)."""

    cpus: float
    gpus: float
    largest_cpus: float
    largest_gpus: float

    def refusal(self, resources: Resources) -> str | None:
        """Why a step that needs this cannot run here; None if it can."""
        for name, asked, most in (
            ("cpus", resources.cpus, self.largest_cpus),
            ("gpus", resources.gpus, self.largest_gpus),
        ):
            if asked > most:
                return f"the step asks for {asked:g} {name}, and the largest machine here has {most:g}"
        return None


@dataclass(frozen=True)
class Free:
    """What is not taken now. `idle`: nothing runs at all, so that an exclusive step may start."""

    cpus: float
    gpus: float
    idle: bool
    limits: Limits

    @classmethod
    def beside(cls, limits: Limits, running: Iterable[StepTask]) -> Free:
        resources = [task.resources for task in running]
        if any(one.exclusive for one in resources):
            return cls(0.0, 0.0, False, limits)
        return cls(
            limits.cpus - sum(one.cpus for one in resources),
            limits.gpus - sum(one.gpus for one in resources),
            not resources,
            limits,
        )


@dataclass(frozen=True)
class Ended:
    task: StepTask
    outcome: StepOutcome


class Executor(Protocol):
    address: str  # of the Ray cluster; empty on this machine

    def check(self) -> None:
        """InputError if steps cannot be run there: nothing answers at the address, or it refuses us."""

    def free(self) -> Free:
        """What is not taken; brings the executor up at the first call. InputError where that fails."""

    def start(self, task: StepTask) -> None:
        """Begin the attempt; returns at once."""

    def poll(self, timeout: float) -> list[Ended]:
        """The attempts that have ended since the last call; waits up to `timeout` seconds for one."""

    def cancel(self, task: StepTask) -> None:
        """Stop the attempt; `poll` no longer reports it. Nothing happens if it has ended."""

    def shutdown(self) -> None:
        """Stop what still runs, and give everything back."""
