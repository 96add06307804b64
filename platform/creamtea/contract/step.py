"""What a step sees and what it returns: the contract between the engine and the workers.

A step is a pure function of its parameters and inputs. It reads input files through
`StepContext.input`, writes output files into `StepContext.output`, keeps what it would resume from in
`StepContext.checkpoints`, reports how far it is with `StepContext.progress`, lets people see how it develops
with `StepContext.show`, and returns small JSON values in a `StepResult`. It never touches the database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class MetricRow:
    """One number of the report. `value` None with a `note` says why there is none."""

    name: str  # e.g. "bleu", "selected_size", "recall", "latency_p50"
    value: float | None
    low: float | None = None  # interval, 95 % unless `detail` says otherwise
    high: float | None = None
    subject: str = ""  # what inside the step is meant: "sentence", "idiom", a filter, a system's position
    note: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)  # signature, n, seed, hardware, ...


@dataclass(frozen=True)
class PointRow:
    """One point of a curve: learning curves (x = update), recall against size (x = mean size)."""

    series: str  # e.g. "train_loss", "dev_loss", "recall_sentence"
    x: float
    y: float
    label: str = ""  # e.g. "k=200"


@dataclass(frozen=True)
class StepResult:
    """Files in the output folder with these names are also copied into tables:

    - `segments.jsonl` (test_set): {"index", "source", "reference", "idioms"}
    - `hypotheses.jsonl` (decode, outputs): {"index", "text", "score", "length", "selected_size"}
    - `segment_scores.jsonl` (score): {"index", "value"}
    """

    metrics: list[MetricRow] = field(default_factory=list)
    points: list[PointRow] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)  # small JSON for people: counts, device, threads


@dataclass(frozen=True)
class LiveExample:
    """A sentence and what the model has made of it so far: (x, text) each, x as in the curves."""

    source: str
    reference: str
    outputs: list[tuple[int, str]]


RUNNING_LOSS = "train_loss_now"  # of a live view: of the last updates, finer than a point per validation


@dataclass(frozen=True)
class LiveView:
    """What a page shows of a running step; the next view replaces it as a whole. Keep it small."""

    points: list[PointRow] = field(default_factory=list)
    examples: list[LiveExample] = field(default_factory=list)
    tokens_per_second: float | None = None


class Checkpoints(Protocol):
    """Files that outlive an attempt, so that the next one resumes; atomic, never seen half-written. A damaged
    one is a DamagedCheckpoint, and is deleted."""

    def save(self, name: str, source: Path) -> None:
        """Store the local file under `name`, replacing an older one in one move. `source` may be changed."""

    def read(self, name: str, parse: Callable[[Path], T]) -> T | None:
        """What `parse` makes of a local copy of what was saved under `name`, None where nothing was. The copy
        is deleted then."""

    def names(self) -> list[str]:
        """What is saved."""

    def remove(self, name: str) -> None:
        """Delete what was saved under `name`, if anything was."""


P = TypeVar("P", covariant=True)


class StepContext(Protocol[P]):
    """What a step of a kind with parameters P sees."""

    @property
    def params(self) -> P: ...

    locations: dict[str, str]  # a user's path as the parameters give it -> where it is on this machine
    output: Path  # an empty local folder; every file in it becomes an artefact of the step
    checkpoints: Checkpoints
    cpus: int  # threads to use
    gpus: float

    def input(self, role: str) -> Path:
        """The local, read-only folder with the output files of the one input step in this role."""

    def inputs(self, role: str) -> list[Path]:
        """The same for a role with several steps, in the plan's order; empty where the role is absent."""

    def progress(self, done: float, total: float, message: str = "") -> None:
        """Report how far the step is; cheap to call often. Raises StepCancelled once it is cancelled."""

    def has_more_room(self) -> bool:
        """Whether the step could go on with more workers. One that has just saved what it resumes from may
        then raise GaveWay; cheap enough to ask after every checkpoint."""

    def show(self, view: LiveView) -> None:
        """Let people see how the step develops; every call writes a small file."""


class StepCancelled(BaseException):
    """Raised inside a step by `progress` after a cancel; not an Exception, so that steps let it pass."""

    def __str__(self) -> str:
        return "the attempt was cancelled"


class GaveWay(BaseException):
    """Raised by a step that is to be started again with more workers; not an Exception either."""

    def __str__(self) -> str:
        return "saved, to go on with more workers"
