"""The contract of steps between plan, engine, workers and store.

A step is a pure function of its parameters and inputs. It reads input files through `StepContext.input`,
writes output files into `StepContext.output`, and saves checkpoints in `StepContext.checkpoints`. It reports
progress with `StepContext.progress`, shows intermediate results with `StepContext.show`, and returns small
JSON values in a `StepResult`. It never touches the database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from creamtea.document.values import Above0, Count, Positive, Strict, digest, unstated

T = TypeVar("T")


@dataclass(frozen=True)
class MetricRow:
    """One number of the report. If `value` is None, `note` says why there is none."""

    name: str  # e.g. "bleu", "selected_size", "recall", "latency_p50"
    value: float | None
    low: float | None = None  # interval, 95 % unless `detail` says otherwise
    high: float | None = None
    subject: str = ""  # the part of the step that it describes: "sentence", "idiom", a filter
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
    """The result of a step. Output files with these names are also copied into tables:

    - `segments.jsonl` (test_set): {"index", "source", "reference", "idioms"}
    - `hypotheses.jsonl` (decode, outputs): {"index", "text", "score", "length", "selected_size"}
    - `segment_scores.jsonl` (score): {"index", "value"}
    """

    metrics: list[MetricRow] = field(default_factory=list)
    points: list[PointRow] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)  # small JSON for people: counts, device, threads


@dataclass(frozen=True)
class LiveExample:
    """A sentence and the model's outputs so far, each with its place on the x axis of the curves."""

    source: str
    reference: str
    outputs: list[tuple[int, str]]


RUNNING_LOSS = "train_loss_now"  # the series of a live view with a point every few updates


@dataclass(frozen=True)
class LiveView:
    """A page's view of a running step. The next view replaces it as a whole. Keep it small."""

    points: list[PointRow] = field(default_factory=list)
    examples: list[LiveExample] = field(default_factory=list)
    tokens_per_second: float | None = None


class Checkpoints(Protocol):
    """Files that outlive an attempt, so that the next attempt can resume.

    Writes are atomic: a file is never seen half-written. Reading a damaged file deletes it and raises
    DamagedCheckpoint.
    """

    def save(self, name: str, source: Path) -> None:
        """Store the local file under `name`; replace an older file atomically. `source` may be changed."""

    def read(self, name: str, parse: Callable[[Path], T]) -> T | None:
        """Apply `parse` to a local copy of the file saved under `name`; return None if there is none.

        The copy is deleted afterwards.
        """

    def names(self) -> list[str]:
        """Return the names of all saved files."""

    def remove(self, name: str) -> None:
        """Delete the file saved under `name`, if there is one."""


P_co = TypeVar("P_co", covariant=True)


class StepContext(Protocol[P_co]):
    """The environment of a running step with parameters P_co."""

    @property
    def params(self) -> P_co: ...

    locations: dict[str, str]  # a user's path as in the parameters -> its path on this machine
    output: Path  # an empty local folder; every file in it becomes an artefact of the step
    checkpoints: Checkpoints
    cpus: int  # threads to use
    gpus: float

    def input(self, role: str) -> Path:
        """Return the local, read-only folder with the outputs of the single input step in this role."""

    def inputs(self, role: str) -> list[Path]:
        """Return the folders of all input steps in this role, in the plan's order."""

    def progress(self, done: float, total: float, message: str = "") -> None:
        """Report progress; cheap to call often. Raise StepCancelled if the step has been cancelled."""

    def has_more_room(self) -> bool:
        """Return True if the step could go on with more workers.

        A step that has just saved a checkpoint may then raise GaveWay. Cheap enough to call after every
        checkpoint.
        """

    def show(self, view: LiveView) -> None:
        """Show intermediate results to people; every call writes a small file."""


class StepCancelled(BaseException):
    """Raised inside a step by `progress` after a cancel; not an Exception, so that steps do not catch it."""

    def __str__(self) -> str:
        return "the attempt was cancelled"


class GaveWay(BaseException):
    """Raised by a step to be started again with more workers; not an Exception either."""

    def __str__(self) -> str:
        return "saved, to go on with more workers"


# Kinds of steps: each has one typed model of its parameters, and descriptions of its inputs and results.


class StepParams(Strict):
    """The parameters of a kind of step.

    The plan writes them, the key is computed from them, and the worker reads them. A parameter that only some
    steps of a kind have is omitted while it is None, so that it does not change the keys of other steps.
    """

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


P = TypeVar("P", bound=StepParams)

# creamtea's own kinds of steps (`creamtea.steps.catalogue`): no plug-in may use these names
OWN_STEP_KINDS = frozenset(
    {
        "corpus",
        "test_set",
        "overlap",
        "subwords",
        "import_model",
        "encode",
        "align",
        "shortlist",
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
    """A kind of step.

    `version` enters the keys: raise it when a change of the code changes a step's results. Every study then
    recomputes this step and the steps that depend on it.

    `inputs`, `files`, `metrics` and `points` describe each name. Methods among the parameters may add files
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
    exclusive: bool = False  # starts only when nothing else runs, and nothing starts beside it
    divisible: bool = False  # several workers may run it together (`workers` of its resources)
    optional: bool = False  # a study succeeds even if this step is unavailable (errors.StepUnavailable)
    # limits on an attempt's total time, and on the time between reports; a study may set others
    timeout_minutes: float = 3 * 24 * 60
    silent_minutes: float = 2 * 60
    # "module:function" of the workers, `function(context) -> StepResult`; the default function is `run`
    worker: str = field(kw_only=True)

    @property
    def module(self) -> str:
        return self.worker.partition(":")[0]

    @property
    def function(self) -> str:
        return self.worker.partition(":")[2] or "run"

    def undeclared(self, params: P, result: StepResult, files: list[str]) -> list[str]:
        """Return outputs that neither the step's kind nor the methods among its parameters declare."""
        declaring = [self, *methods_in(params)]
        declared = {
            "file": {name for owner in declaring for name in owner.files},
            "metric": {name for owner in declaring for name in owner.metrics},
            "series": set(self.points),
        }
        returned = {
            "file": files,
            "metric": [row.name for row in result.metrics],
            "series": [point.series for point in result.points],
        }
        return [
            f"{what} {name}"
            for what, names in returned.items()
            for name in dict.fromkeys(names)
            if name not in declared[what]
        ]


def methods_in(value: Any) -> Iterator[Any]:
    """Yield the methods (objectives, searches, …) among parameters, at any depth."""
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
    """Compute a step's key: equal work has an equal key on every machine.

    `inputs`: keys of the input steps by role, in the plan's order. `plugins`: versions of the distributions
    that the step's methods come from. The kind's version covers creamtea's own methods.
    """
    work: dict[str, Any] = {"kind": kind, "version": version, "params": params, "inputs": inputs}
    return digest(work | {"plugins": plugins} if plugins else work)


# The resources of a step, as a study sets them and as the plan completes them.


def _ascending(values: list[int]) -> list[int]:
    if values[0] > values[1]:
        raise ValueError("has the larger number first")
    return values


# seconds that the workers of a step wait for each other: one may validate, or still translate its share. This
# limit is not for lost processes or nodes, which Ray notices itself
GROUP_PATIENCE = 6 * 3600

LeastAndMost = Annotated[list[Count], Field(min_length=2, max_length=2)]
# a study may write one number for [n, n]
Workers = Annotated[
    LeastAndMost,
    BeforeValidator(
        lambda value: [value, value] if isinstance(value, int) else value,
        json_schema_input_type=Count | LeastAndMost,
    ),
    AfterValidator(_ascending),
]


NodeName = Annotated[str, Field(min_length=1, max_length=253)]  # of a node or a group of nodes


class StepResources(Strict):
    # [processes] of a training or a decoding, each with these cpus and gpus: one number, or a minimum and a
    # maximum, between which the free room decides
    workers: Workers = Field(default=[1, 1])
    cpus: Count = 1  # [cores] per worker
    gpus: Annotated[float, Field(ge=0.0, le=4096.0)] = 0.0  # [GPUs] per worker
    memory_gb: Above0 | None = None  # [GB] per worker
    # on a cluster: only on nodes of this group (KubeRay's groupName, or `ray start --labels
    # ray.io/node-group=NAME`); none: anywhere
    worker_group: NodeName | None = unstated(None)
    # only on the node with this host name, address or `ray start --node-name`; none: anywhere
    node: NodeName | None = unstated(None)
    # [minutes] after which an attempt is stopped; none: the limit of its kind
    timeout_minutes: Above0 | None = None
    # [minutes] without a sign of life, after which an attempt is stopped and tried again; none: the limit
    # of its kind
    silent_minutes: Above0 | None = None
    max_attempts: Positive = 4  # attempts after infrastructure failures; deterministic failures are final


class Resources(StepResources, extra="ignore"):
    """A step's resources, completed by the plan.

    Any value may be missing in rows that other versions wrote.
    """

    exclusive: bool = False  # starts only when nothing else runs, and nothing starts beside it
    # distributions that its methods come from, with their versions
    plugins: dict[str, str] = unstated({})


# The files of a checkpoint, which may have several parts and an index.
#
#     training-000000000009.pt              a checkpoint in one file
#     training-000000000009.pt.json         the index of a large checkpoint, written after its parts
#     NAME.parts/<save>/00000.safetensors   a part; every save has its own folder
#     NAME.parts/<save>/rest.pt             everything except tensors
#
# A part that no index names is left over from a save that did not finish.


_PART = re.compile(r"(?P<name>.+)\.parts/[^/]+/[^/]+")


class PartIndex(BaseModel):
    rest: str  # the file with the rest: the content, with None for every tensor
    # by file and tensor: the tensor's places in the content, each a list of keys
    tensors: dict[str, dict[str, list[list[int | str]]]]

    @property
    def files(self) -> list[str]:
        return [self.rest, *self.tensors]


def index_name(name: str) -> str:
    return f"{name}.json"


def part_name(name: str, save: str, file: str) -> str:
    return f"{name}.parts/{save}/{file}"


def orphaned_parts(names: Iterable[str], read: Callable[[str], bytes]) -> list[str]:
    """List the parts among a step's checkpoint files that no index names.

    `read` returns the content of a checkpoint file.
    """
    known = set(names)
    indices: dict[str, frozenset[str]] = {}
    orphans = []
    for name in sorted(known):
        if (part := _PART.fullmatch(name)) is None:
            continue
        index = index_name(part["name"])
        if index not in indices:
            files = PartIndex.model_validate_json(read(index)).files if index in known else []
            indices[index] = frozenset(files)
        if name not in indices[index]:
            orphans.append(name)
    return orphans


# How a number is shown, in tables of steps and of reports.


@dataclass(frozen=True)
class Column:
    key: str
    title: str
    digits: int
    better: str = ""  # "higher", "lower" or "" for neither
    scale: float = 1.0  # shares are shown times 100
    unit: str = ""  # unit of the shown number: "%", "ms"
    signature: str = ""  # a metric's signature
    note: str = ""  # what the column measures
    group: str = ""  # name of the columns that a wide table shows together: "recall"
    less: tuple[str, str] | None = None  # keys of two columns whose paired difference this column shows
    one_of: str = ""  # of several groups, a page shows one at a time; their common name: "human scores"


# The result of an export: facts for a model card, and proofs that the written model translates alike.


@dataclass(frozen=True)
class Difference:
    """The first subword in which two outputs of a source differ."""

    line: int  # the source's line, from 1
    position: int  # the subword's position, from 0
    gap: float  # logit of creamtea's subword minus the other's: nearly 0 if rounding decides


@dataclass(frozen=True)
class Proof:
    sentences: int  # number that both models translated
    left_out: int  # sources that the written model cannot read
    identical: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class BeamProof(Proof):
    search: str  # "beam 4 / length^0.5"


@dataclass(frozen=True)
class MapProof(Proof):
    selection: str  # "lexicon k=200 + 100 frequent"


@dataclass(frozen=True)
class ExportFacts:
    parameters: int
    vocabulary_size: int
    max_length_ratio: float
    quantization: str | None
    subwords: tuple[str, ...]  # SentencePiece files of source and target, for CTranslate2
    proof: Proof  # greedy search over the whole vocabulary
    beam: BeamProof | None  # beam search, for a system with a beam exported to CTranslate2
    map: MapProof | None  # greedy search in the lexicon's vocabulary, for a system with a lexicon
