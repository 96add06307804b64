"""What the controller and a worker exchange: plain JSON values in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from creamtea.contract.step import MetricRow, PointRow, StepResult
from creamtea.store.artefacts import StoredFile

DEFAULT_MAX_ATTEMPTS = 4


@dataclass(frozen=True)
class Resources:
    """What a step needs to run; read from `StepRow.resources`, where any of them may be missing."""

    cpus: int = 1
    gpus: float = 0.0
    memory_gb: float | None = None
    timeout_minutes: float | None = None
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    exclusive: bool = False  # runs only while nothing else is running
    plugins: Mapping[str, str] = field(default_factory=dict)  # distributions with their versions

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Resources:
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if name in values})


@dataclass(frozen=True)
class StepTask:
    """One attempt of a step, as a worker receives it."""

    key: str
    fence: int
    node: str  # its place in the study, for people
    kind: str
    version: int
    params: dict[str, Any]
    inputs: dict[str, list[list[StoredFile]]]  # role: for each input step its files
    locations: dict[str, str]
    resources: Resources
    artefacts: str  # root of the artefact store
    attempt: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> StepTask:
        inputs = {
            role: [[StoredFile(**file) for file in files] for files in steps]
            for role, steps in values["inputs"].items()
        }
        return cls(**{**values, "inputs": inputs, "resources": Resources(**values["resources"])})


@dataclass(frozen=True)
class StepOutcome:
    """How an attempt ended; `error_kind` None: it succeeded."""

    result: StepResult = field(default_factory=StepResult)
    files: list[StoredFile] = field(default_factory=list)
    error_kind: str | None = None
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> StepOutcome:
        result = values["result"]
        return cls(
            result=StepResult(
                metrics=[MetricRow(**row) for row in result["metrics"]],
                points=[PointRow(**row) for row in result["points"]],
                facts=result["facts"],
            ),
            files=[StoredFile(**file) for file in values["files"]],
            error_kind=values["error_kind"],
            error=values["error"],
        )

    @classmethod
    def failure(cls, kind: str, error: str) -> StepOutcome:
        return cls(error_kind=kind, error=error)
