"""What a controller reports while it works; the command line shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepStarted:
    key: str
    node: str
    kind: str
    attempt: int


@dataclass(frozen=True)
class StepProgressed:
    key: str
    done: float
    total: float
    message: str


@dataclass(frozen=True)
class StepSucceeded:
    key: str
    node: str
    seconds: float


@dataclass(frozen=True)
class StepRetried:
    """An infrastructure failure; the step is tried again after a pause."""

    key: str
    node: str
    attempt: int
    error: str


@dataclass(frozen=True)
class StepFailed:
    key: str
    node: str
    kind: str  # an error kind: deterministic, infrastructure, unavailable, timeout, upstream
    error: str


@dataclass(frozen=True)
class StepStopped:
    """A running step was cancelled, or its result was discarded."""

    key: str
    node: str


@dataclass(frozen=True)
class Notice:
    """Something about the run as a whole, such as Ray starting."""

    message: str


EngineEvent = StepStarted | StepProgressed | StepSucceeded | StepRetried | StepFailed | StepStopped | Notice
