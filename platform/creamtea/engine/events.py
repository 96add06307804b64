"""Events that a controller reports while it works; the command line shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepEvent:
    key: str
    name: str


@dataclass(frozen=True)
class StepStarted(StepEvent):
    kind: str
    attempt: int


@dataclass(frozen=True)
class StepProgressed(StepEvent):
    done: float
    total: float
    message: str
    at: float  # seconds since 1970, by the worker's clock
    seconds_left: float | None = None  # at the speed since the attempt's first report


@dataclass(frozen=True)
class StepSucceeded(StepEvent):
    seconds: float


@dataclass(frozen=True)
class StepRetried(StepEvent):
    """An infrastructure failure; the step is tried again after a pause."""

    attempt: int
    error: str
    pause: float  # seconds


@dataclass(frozen=True)
class StepFailed(StepEvent):
    kind: str  # an error kind: deterministic, infrastructure, unavailable, timeout, upstream
    error: str


@dataclass(frozen=True)
class StepStopped(StepEvent):
    """A running step was cancelled, its result was discarded, or it starts again (`reason`)."""

    reason: str = ""


@dataclass(frozen=True)
class StepReset(StepEvent):
    """A step that had succeeded runs again."""

    reason: str = ""


@dataclass(frozen=True)
class Notice:
    """A message about the run as a whole."""

    message: str
    trouble: bool = True  # the run may be unable to continue; False: Ray is starting, for example


EngineEvent = StepEvent | Notice
