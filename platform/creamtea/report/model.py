"""What a report is: frozen values that the terminal, the web app and JSON all show.

Nothing here is ever empty without saying why: a `Cell` has a value, or a state other than "ok" and a note.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from creamtea.contract.columns import Column

SIGNIFICANT = 0.05  # family-wise, after Holm's correction

# "ok": all there. "partial": a mean over some of the seeds. The rest have no value, and `note` says why.
CELL_STATES = (
    "ok",
    "partial",
    "pending",
    "running",
    "failed",
    "unavailable",
    "cancelled",
    "absent",  # not part of the study, or nothing to measure
)


@dataclass(frozen=True)
class Delta:
    """A system's difference from the baseline on one metric, paired over segments.

    `corrected` p-values are Holm's over the systems of a test set and metric. Comparisons that an earlier
    version made have no p-value of approximate randomisation.
    """

    state: str
    note: str = ""
    value: float | None = None
    low: float | None = None  # 95 %
    high: float | None = None
    p_value: float | None = None  # of the bootstrap, two-sided
    p_corrected: float | None = None
    p_sacrebleu: float | None = None  # of the bootstrap, as sacreBLEU prints it
    p_randomization: float | None = None
    p_randomization_corrected: float | None = None
    significant: bool = False  # both corrected p-values are below SIGNIFICANT


@dataclass(frozen=True)
class Percent:
    """A time as a percentage of a baseline's: both measured in turn, repetition by repetition."""

    value: float
    low: float | None = None  # 95 %; none for the baseline itself
    high: float | None = None


@dataclass(frozen=True)
class Cell:
    state: str
    note: str = ""
    value: float | None = None  # mean over seeds
    low: float | None = None  # 95 % interval; of several seeds the mean of their bounds
    high: float | None = None
    deviation: float | None = None  # sample standard deviation over seeds
    seeds: int = 0  # that the value is made of
    percents: dict[str, Percent] = field(default_factory=dict)  # of each baseline of the latency, in order
    delta: Delta | None = None
    words: str = ""  # shown in place of the number: a verdict, a p-value, a range of ranks


# what the terminal and the web app show of a training, in this order
TRAINING_COLUMNS = (
    Column("updates", "updates", 0),
    Column("dev_loss", "dev loss", 3),
    Column("dev_bleu", "dev BLEU", 1),
    Column("seconds", "seconds", 0),
    Column("tokens_per_second", "tokens/s", 0),
    Column("parameters", "parameters", 0),
    Column("left_out", "left out", 0),
)


@dataclass(frozen=True)
class Row:
    system: str
    variant: str
    baseline: bool  # compared with nothing
    against: str  # what it is compared with; empty for a baseline
    description: str  # objective, selection and search in a few words
    cells: dict[str, Cell]  # by column key


@dataclass(frozen=True)
class TestSetTable:
    __test__ = False  # no test class, whatever pytest thinks of the name
    test_set: str
    segments: int | None  # None until the test set has been prepared
    idioms: int | None
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class CorpusSummary:
    name: str
    state: str
    note: str
    pairs: dict[str, int]  # train_read, train_kept, dev_read, dev_kept
    dropped: dict[str, int]  # by filter


@dataclass(frozen=True)
class Training:
    """One training run: a variant with a seed."""

    variant: str
    seed: int
    cells: dict[str, Cell]  # dev_loss, dev_bleu, updates, seconds, tokens_per_second, parameters, left_out


@dataclass(frozen=True)
class CurvePoint:
    x: float
    y: float
    label: str = ""


@dataclass(frozen=True)
class Curve:
    """A series of points. `group` is the variant and seed of a learning curve, the selection of a recall
    curve, the variant or system of an analysis; `test_set` is that of a recall curve."""

    series: str
    group: str
    test_set: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True)
class PlotPoint(CurvePoint):
    low: float | None = None  # 95 %
    high: float | None = None


@dataclass(frozen=True)
class Plot:
    """What a figure of an analysis draws: one curve a group. `y` says how a value is shown."""

    title: str
    x: Column
    y: Column
    curves: tuple[Curve, ...]  # of PlotPoints
    missing: tuple[str, ...]  # groups without a point, and why: "scones (pending)"
    label: str = "setting"  # what the points' labels say
    logarithmic: bool = False  # the x axis
    diagonal: bool = False  # draw x = y too
    ticks: dict[float, str] = field(default_factory=dict)  # of the x axis, in place of the number
    rows: bool = False  # the ticks are names: each has a row, along which the values are drawn
    bounds: str = "95 %"  # what the points' low and high are


@dataclass(frozen=True)
class AnalysisRow:
    name: str  # of a variant or a system
    setting: str  # "beam 4"; empty where a table has one row a name
    cells: dict[str, Cell]  # by column key


@dataclass(frozen=True)
class AnalysisTable:
    heading: str  # of the rows' names: "variant, beam"
    columns: tuple[Column, ...]
    rows: tuple[AnalysisRow, ...]


@dataclass(frozen=True)
class Analysis:
    """What one analysis of the study has found."""

    name: str
    kind: str
    title: str
    about: str  # what is measured, and where in the papers
    test_set: str
    sentences: int | None  # only so many of the test set
    tables: tuple[AnalysisTable, ...]
    plots: tuple[Plot, ...]


@dataclass(frozen=True)
class HumanTable:
    """One of the tables of what people say. `key` names it: "means", "comparisons" …"""

    key: str
    title: str
    about: str
    table: AnalysisTable


@dataclass(frozen=True)
class Disagreement:
    """An output that people and a metric judge differently. `gap` is people's standard score less the
    metric's, over all outputs that both judge: above 0 people like it better."""

    segment: int
    system: str
    source: str
    output: str
    people: float  # mean over raters, points of the scale
    metric: str
    score: float
    gap: float


@dataclass(frozen=True)
class Dispute:
    """An output that raters judge differently; points of the scale."""

    segment: int
    system: str
    source: str
    output: str
    ratings: int
    lowest: float
    highest: float
    deviation: float  # sample standard deviation


@dataclass(frozen=True)
class HumanReport:
    """What people say of the systems of one campaign."""

    campaign: str
    study: str  # empty for ratings made elsewhere
    test_set: str
    protocol: str
    scale: str
    points: Column  # how points of the scale are shown
    state: str  # launched or closed
    progress: str
    baseline: str
    source_language: str
    target_language: str
    signature: str  # every choice that a mean depends on
    notes: tuple[str, ...]  # what was rated, what was left out, how it was tested
    tables: tuple[HumanTable, ...]  # none before the first rating that counts
    disagreements: tuple[Disagreement, ...]
    disputes: tuple[Dispute, ...]
    complete: bool  # False: a summary without what takes resampling, agreement and metrics

    def table(self, key: str) -> AnalysisTable | None:
        for one in self.tables:
            if one.key == key:
                return one.table
        return None


@dataclass(frozen=True)
class SweepGroup:
    """Systems that differ in one number only, by that number."""

    name: str  # what their names have in common: "nvs+positive_weight=…"
    systems: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Sweep:
    parameter: str  # "variant.nvs.positive_weight"
    title: str  # "nvs positive weight"
    groups: tuple[SweepGroup, ...]


@dataclass(frozen=True)
class Failure:
    """A step that failed, is unavailable or was cancelled, and where it stands in the study."""

    nodes: tuple[str, ...]
    kind: str
    state: str
    reason: str
    attempts: int


@dataclass(frozen=True)
class Provenance:
    config_hash: str
    code_version: str
    seeds: dict[str, tuple[int, ...]]  # by variant
    hardware: tuple[str, ...]  # what the steps told
    signatures: dict[str, str]  # by metric and test set: "bleu on test"


@dataclass(frozen=True)
class Report:
    id: int
    study: str
    description: str
    state: str
    created_at: datetime
    finished_at: datetime | None
    baseline: str
    significance: str  # how differences were tested, in a sentence
    steps: dict[str, int]  # by state
    tables: tuple[TestSetTable, ...]
    corpora: tuple[CorpusSummary, ...]
    training: tuple[Training, ...]
    learning: tuple[Curve, ...]
    recall: tuple[Curve, ...]
    analyses: tuple[Analysis, ...]
    sweeps: tuple[Sweep, ...]
    human: tuple[HumanReport, ...]
    latency_note: str  # how latency was measured, or why there is none
    provenance: Provenance
    failures: tuple[Failure, ...]

    def table(self, test_set: str) -> TestSetTable:
        """KeyError where the study has no such test set."""
        for table in self.tables:
            if table.test_set == test_set:
                return table
        raise KeyError(test_set)


def to_dict(value: Any) -> Any:
    """A report or a part of it as plain JSON values; moments in ISO 8601."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_dict(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_dict(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_dict(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value
