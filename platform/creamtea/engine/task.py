"""What the controller gives to a worker, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from creamtea.contract.step import Resources, StepResult
from creamtea.store.artefacts import StoredFile


@dataclass(frozen=True)
class StepTask:
    """One attempt of a step, as a worker receives it."""

    key: str
    fence: int
    name: str  # its place in the study, for people
    kind: str
    version: int
    params: dict[str, Any]
    inputs: dict[str, list[list[StoredFile]]]  # role: for each input step its files
    locations: dict[str, str]
    resources: Resources
    artefacts: str  # root of the artefact store
    attempt: int = 1


GAVE_WAY = "gave way"  # instead of an error kind: it saved a checkpoint, to go on with more workers
DAMAGED = "damaged input"  # likewise: an input is not what was stored, and its step has to make it again


@dataclass(frozen=True)
class StepOutcome:
    """How an attempt ended. `error_kind` None: it succeeded.

    GAVE_WAY and DAMAGED are not failures of the step.
    """

    result: StepResult = field(default_factory=StepResult)
    files: list[StoredFile] = field(default_factory=list)
    error_kind: str | None = None
    error: str = ""

    @classmethod
    def failure(cls, kind: str, error: str) -> StepOutcome:
        return cls(error_kind=kind, error=storable(error))


def storable(text: str) -> str:
    """Return a library's text as every database and terminal takes it.

    PostgreSQL refuses NUL, and half of a surrogate pair (from a file name that is not UTF-8) has no encoding.
    """
    return text.replace("\0", "�").encode("utf-8", "backslashreplace").decode()


# as plain values, so that a worker with another creamtea can say so
TASKS = TypeAdapter(StepTask)
OUTCOMES = TypeAdapter(StepOutcome)
