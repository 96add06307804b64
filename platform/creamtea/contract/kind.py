"""Kinds of steps: for each one typed model of its parameters, and what it reads and leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from creamtea.contract.step import StepResult
from creamtea.document.canonical import digest
from creamtea.document.values import Strict


class StepParams(Strict):
    """The parameters of a kind of step: the plan writes them, the key is computed from them, and the worker
    reads them. A parameter that only some steps of a kind have is excluded while it is None, so that it
    changes no other step's key."""

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


P = TypeVar("P", bound=StepParams)

# creamtea's own (`creamtea.steps.catalogue`), whose names no plug-in may take for a step
OWN_STEP_KINDS = frozenset(
    {
        "corpus",
        "test_set",
        "overlap",
        "subwords",
        "import_model",
        "encode",
        "align",
        "ibm3",
        "train",
        "decode",
        "outputs",
        "score",
        "compare",
        "pairs",
        "recall",
        "agreement",
        "beam_sizes",
        "buckets",
        "calibration",
        "depth_limited",
        "differences",
        "empty_string",
        "nvs_context",
        "recall_at_size",
        "search_errors",
        "support_density",
        "latency",
    }
)


@dataclass(frozen=True)
class StepKind(Generic[P]):
    """A kind of step. `version` enters the keys: raise it when a change of the code changes what the step
    produces, and every study recomputes that step and those that depend on it.

    inputs, files, metrics and points map each name to what it is. Methods among the parameters may add files
    and metrics of their own (`creamtea.methods.family.Method`).
    """

    name: str
    version: int
    title: str  # shown in progress and status: "train a variant"
    params: type[P]
    inputs: Mapping[str, str]  # by role
    files: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    points: Mapping[str, str] = field(default_factory=dict)  # by series
    exclusive: bool = False  # started only when nothing else runs, and nothing starts beside it
    divisible: bool = False  # several workers may run it together (`workers` of its resources)
    optional: bool = False  # a study succeeds without it where it is unavailable (errors.StepUnavailable)
    # limits of an attempt, unless the study sets others: of all its time, and of the time between reports
    timeout_minutes: float = 3 * 24 * 60
    silent_minutes: float = 2 * 60
    worker: str = ""  # the module that holds `run(context) -> StepResult`

    @property
    def module(self) -> str:
        return self.worker or f"creamtea_workers.steps.{self.name}"

    def undeclared(self, params: P, result: StepResult, files: list[str]) -> list[str]:
        """What a step left behind that neither its kind nor the methods among its parameters declare."""
        own = [self, *methods_in(params)]
        known = {
            "file": {name for part in own for name in part.files},
            "metric": {name for part in own for name in part.metrics},
            "series": set(self.points),
        }
        left = {
            "file": files,
            "metric": [row.name for row in result.metrics],
            "series": [point.series for point in result.points],
        }
        return [
            f"{what} {name}"
            for what, names in left.items()
            for name in dict.fromkeys(names)
            if name not in known[what]
        ]


def methods_in(value: Any) -> Iterator[Any]:
    """The methods (objectives, searches, …) among parameters, at any depth."""
    if isinstance(value, BaseModel):
        if hasattr(type(value), "family"):
            yield value
        for name in type(value).model_fields:
            yield from methods_in(getattr(value, name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from methods_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from methods_in(item)


def step_key(
    kind: str,
    version: int,
    params: Mapping[str, Any],
    inputs: Mapping[str, Sequence[str]],
    plugins: Mapping[str, str] | None = None,
) -> str:
    """Equal work, equal key, on every machine. `inputs`: the keys of the input steps by role, in the plan's
    order. `plugins`: the versions of the distributions that the step's methods come from; creamtea's own
    methods have the version of their kind."""
    work: dict[str, Any] = {"kind": kind, "version": version, "params": params, "inputs": inputs}
    return digest(work | {"plugins": plugins} if plugins else work)
