"""What executors have in common: they run attempts of steps, and know nothing of the database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from creamtea.contract.resources import Resources
from creamtea.engine.task import StepOutcome, StepTask


@dataclass(frozen=True)
class Amounts:
    cpus: float
    gpus: float
    memory_gb: float  # GiB; steps that name no memory count as needing none

    @classmethod
    def needed(cls, resources: Resources) -> Amounts:
        return cls(resources.cpus, resources.gpus, resources.memory_gb or 0.0)

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.cpus + other.cpus, self.gpus + other.gpus, self.memory_gb + other.memory_gb)

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(self.cpus - other.cpus, self.gpus - other.gpus, self.memory_gb - other.memory_gb)


NOTHING = Amounts(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Capacity:
    """What can be started now, and what could ever be."""

    free: Amounts
    largest: Amounts  # the maximum that a single step can ever have
    idle: bool  # nothing is running at all, so an exclusive step may start

    @classmethod
    def beside(cls, total: Amounts, largest: Amounts, running: Iterable[StepTask]) -> Capacity:
        resources = [task.resources for task in running]
        if any(needed.exclusive for needed in resources):
            return cls(NOTHING, largest, False)
        taken = sum(map(Amounts.needed, resources), NOTHING)
        return cls(total - taken, largest, not resources)

    def refusal(self, resources: Resources) -> str | None:
        """Why a step that needs this can never run here; None if it can."""
        needed = Amounts.needed(resources)
        for name in ("cpus", "gpus", "memory_gb"):
            asked, available = getattr(needed, name), getattr(self.largest, name)
            if asked > available:
                return f"the step asks for {name}={asked:g}, but the largest machine has {available:.4g}"
        return None


@dataclass(frozen=True)
class FinishedAttempt:
    task: StepTask
    outcome: StepOutcome


class Executor(Protocol):
    address: str  # of the Ray cluster; empty on this machine
    opening: str  # shown before the first `capacity`, which may take seconds

    def check(self) -> None:
        """InputError if steps cannot be run there: nothing answers at the address, or it refuses us."""

    def capacity(self) -> Capacity:
        """What is free; the first call starts the executor. InputError where that fails."""

    def start(self, task: StepTask) -> None:
        """Begin the attempt; returns at once."""

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        """The attempts that have finished since the last call; waits up to `timeout` seconds for one."""

    def cancel(self, task: StepTask) -> None:
        """Stop the attempt; `poll` no longer reports it. Nothing happens if it has finished."""

    def shutdown(self) -> None:
        """Stop what is still running and release all resources."""
