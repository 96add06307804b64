"""Analyses: measurements of the papers beyond the main table, and how a report shows them.

Analyses only declare tables and plots; `creamtea.report` fills them. Columns of several analyses are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from creamtea.contract.step import Column, StepKind, StepParams
from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, one_of
from creamtea.document.values import Name, Positive, unstated
from creamtea.methods.family import Family, Method
from creamtea.methods.planning import Inputs, Key, Labels, Planner
from creamtea.methods.test_sets import is_without_references


class RowSetting(NamedTuple):
    """One of the rows of a variant."""

    parts: tuple[str, ...] = ()  # parts of the metrics' subject: ("k=200", "idiom")
    words: str = ""  # its name for people: "beam 4"
    x: float | None = None  # its position in plots
    tick: str = ""  # label on the axis instead of x
    needs: str = ""  # shown only if measured: "idioms", "words" of idioms, "repeated idioms", …


@dataclass(frozen=True)
class Measure:
    """A column, and the place of its values among a step's metrics."""

    column: Column
    metric: str = ""  # name of the metric; "": the column's key
    detail: str = ""  # the part of the metric's detail to show instead of its value
    no_detail: str = ""  # why the detail may be missing although the metric has a value
    counts: Callable[[Mapping[str, Any]], tuple[int, int]] | None = None  # (count, of) in the detail
    part: int | None = None  # the subject is this part of the setting; None: all parts joined by "/"
    undefined: Mapping[str, str] = field(default_factory=dict)  # subjects without this measure: the reason

    @property
    def name(self) -> str:
        return self.metric or self.column.key

    def subject(self, setting: RowSetting) -> str:
        return "/".join(setting.parts) if self.part is None else setting.parts[self.part]


@dataclass(frozen=True)
class TableLayout:
    """A row for each variant or system and setting, a column for each measure."""

    heading: str  # of the rows' names
    measures: tuple[Measure, ...]
    settings: Callable[[Any], Sequence[RowSetting]] = lambda spec: [RowSetting()]
    # for steps that find their buckets themselves: one table per kind of bucket (title by kind) instead of a
    # single table, with a column for each bucket and measure. Details of metrics have the `bucket`: its kind,
    # words, position, and number of segments
    buckets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CellPlot:
    """A plot of the first table's measures over its settings or another measure.

    Each variant and measure has a curve.
    """

    title: str
    x: Column  # titles the axis; its key names the measure that is x, "setting" the setting
    y: Column
    measures: Mapping[str, str]  # by column key, the name of the variant's curve
    logarithmic: bool = False
    only: str = ""  # plot only settings with this part
    apart: Mapping[str, str] = field(default_factory=dict)  # parts of settings with a curve each, no others
    joined: bool = True  # False: points without lines, because x is not a quantity


@dataclass(frozen=True)
class RowPlot:
    """A plot of a table with one row per variant: one line below the other, one mark per measure."""

    title: str
    y: Column  # titles the axis of the values
    measures: Mapping[str, str]  # by column key, the name of the mark
    table: int
    deviations: bool = False  # draw deviations (column KEY_deviation) instead of intervals


@dataclass(frozen=True)
class PointPlot:
    """A plot of a step's points: one curve per trained model and series."""

    title: str
    x: Column
    y: Column
    series: Mapping[str, str]  # by series, the name of the model's curve
    label: str  # the meaning of the points' labels
    logarithmic: bool = False
    diagonal: bool = False
    counted: bool = False  # y is a share, and the label its denominator: drawn with Wilson intervals


@dataclass(frozen=True)
class IdiomList:
    """A table of the idioms in a metric's detail and their subwords: a column per variant and setting.

    `detail`: the key of the list, and of each idiom's subwords.
    """

    title: str
    metric: str
    detail: str
    about: str


# ---------------------------------------------------------------- columns of several analyses


def share(key: str, title: str, note: str, better: str = "") -> Column:
    """Return the column of a share, shown in per cent."""
    return Column(key, title, 1, better, 100.0, "%", note=note)


def deviation_of(name: str, words: str) -> Measure:
    """Return the measure of a mean log-probability's standard deviation."""
    column = Column(f"{name}_deviation", f"± {words}", 2, note="standard deviation over sentences")
    return Measure(column, metric=name, detail="deviation", no_detail="one sentence alone has no deviation")


BLEU = Column("bleu", "BLEU", 1, "higher")
LENGTH = Column("length_ratio", "length", 3, note="hypothesis over reference tokens, as BLEU counts them")
EMPTY = share("empty", "empty", "share of empty outputs", "lower")
BEAM = Column("setting", "beam width (log scale)", 0)
GAP = Measure(
    Column("log_prob_gap", "gap", 2, note="mean log-probability of the output minus the empty string's")
)


# ---------------------------------------------------------------- the base of all analyses

Width = Annotated[int, Field(ge=1, le=1000)]  # width of a beam

# the inputs of every step that runs a trained variant over a test set
MODEL_INPUTS = {"test_set": "segments", "subwords": "subwords", "train": "the trained variant"}


STATISTICS_FILE = "segment_statistics.npz"
STATISTICS = {STATISTICS_FILE: "statistics of each segment, by measure and setting (exact, compressed)"}
# resamples for each comparison in a table's column: with fewer, no p-value could stay below 0.05 after Holm's
# correction
SAMPLES_PER_COMPARISON = 100


class DifferencesParams(StepParams):
    """Parameters of a comparison of rows.

    `base`: the setting to compare a system's other settings with. None: compare two systems, setting by
    setting.
    """

    base: str | None = unstated(None)
    samples: int
    seed: int


DIFFERENCES: StepKind[DifferencesParams] = StepKind(
    "differences",
    2,
    "compare rows of an analysis",
    DifferencesParams,
    worker="creamtea_workers.steps.scores:compare_rows",
    inputs={
        "system": "steps of an analysis, of each seed",
        "baseline": "likewise, of the baseline; none if the settings of one system are compared",
    },
    metrics={
        "delta": "by measure and setting; interval over segments; detail: p_two_sided, sacreBLEU's p_value, "
        "the scores of each seed"
    },
)


class Analysis(Method):
    """A measurement over a test set, by steps of its own kind.

    The docstring of an analysis says what it measures, and where in the papers: reports show it.
    """

    test_set: Name  # a test set of the study
    step: ClassVar[StepKind[Any]]
    tables: ClassVar[tuple[TableLayout, ...]]
    plots: ClassVar[tuple[CellPlot | RowPlot | PointPlot, ...]] = ()
    lists: ClassVar[tuple[IdiomList, ...]] = ()
    over: ClassVar[tuple[str, ...]] = ()  # columns of the first table that plots draw over a number
    rows: ClassVar[Literal["variant", "system"]] = "variant"  # the subject of its tables' rows
    of_models: ClassVar[bool] = True  # it needs a model that the study trains, not only outputs
    needs_references: ClassVar[bool] = True
    # columns that are compared row by row: its steps store their statistics per segment (`STATISTICS`)
    paired: ClassVar[frozenset[str]] = frozenset()

    def describe(self) -> str:
        return self.title

    @classmethod
    def about(cls) -> str:
        return " ".join((cls.__doc__ or "").split())

    @property
    def first_sentences(self) -> int | None:
        """Number of the test set's first sentences to analyse; None: all."""
        return None

    @property
    def base_setting(self) -> str:
        """The setting to compare a row's other settings with; "": no comparison."""
        return ""

    @classmethod
    def fits(cls, system: Block) -> bool:
        """Return True if an analysis without a list of systems includes this raw system."""
        return True

    def plan(self, name: str, planner: Planner) -> None:
        """Add the steps of the analysis that the study calls `name`."""
        raise NotImplementedError(f"{type(self).__name__} plans no steps")

    def plan_differences(
        self, name: str, planner: Planner, steps: Mapping[str, Sequence[Key]], baselines: Sequence[str]
    ) -> None:
        """Add comparisons of the analysed variants (or systems) with the baselines, and between settings.

        `steps`: the steps of each seed, by variant (or system).
        """
        if not self.paired:
            return
        settings = max(len(layout.settings(self)) for layout in self.tables)
        place_of = {baseline: place for place, baseline in enumerate(baselines)}
        pairs = [  # a baseline is compared with the baselines before it
            (row, baseline_row)
            for row in steps
            for baseline_row in baselines
            if place_of.get(row, len(baselines)) > place_of[baseline_row]
        ]
        with_itself = [(row, "") for row in steps] if self.base_setting and settings > 1 else []
        for compared, count in ((pairs, settings), (with_itself, settings - 1)):
            samples = max(planner.significance.samples, SAMPLES_PER_COMPARISON * len(compared) * count)
            for row, baseline_row in compared:
                variant = row if self.rows == "variant" else planner.variant_of(row)
                labels: Labels = {"analysis": name, "variant": variant, self.rows: row}
                labels |= {"baseline": baseline_row} if baseline_row else {}
                base = None if baseline_row else self.base_setting
                params = DifferencesParams(base=base, samples=samples, seed=planner.significance.seed)
                inputs: Inputs = {"system": list(steps[row])}
                inputs |= {"baseline": list(steps[baseline_row])} if baseline_row else {}
                place = "/".join(filter(None, (name, row, baseline_row)))
                planner.add(DIFFERENCES, place, params, inputs, {**labels, "test_set": self.test_set})

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from study.unknown_key(path, block, "test_set", "test_sets")
        test_set = study.named("test_sets", block.get("test_set"))
        if cls.needs_references and test_set is not None and is_without_references(test_set):
            found = f"{block['test_set']}, which has no references"
            yield Mistake((*path, "test_set"), found, "a test set with a `target`")


class OfVariants(Analysis):
    """Analyses of trained variants, one step for each variant and seed."""

    variants: list[Name] | None = None  # variants to analyse; none named: all that it fits
    needs_head: ClassVar[bool] = False  # only variants with an NVS head fit

    def plan(self, name: str, planner: Planner) -> None:
        test_set = planner.test_set(self.test_set, self.first_sentences)
        steps: dict[str, list[Key]] = {}
        for variant in self.variants if self.variants is not None else planner.variants(self.needs_head):
            for seed in planner.seeds(variant):
                labels = {"analysis": name, "variant": variant, "seed": seed}
                place = f"{name}/{variant}/{seed}"
                inputs: Inputs = {"test_set": [test_set], **planner.model(variant, seed)}
                inputs |= self.more_inputs(place, test_set, planner, labels)
                labels = {**labels, "test_set": self.test_set}
                step = planner.add(self.step, place, self.params(planner), inputs, labels)
                steps.setdefault(variant, []).append(step)
        self.plan_differences(name, planner, steps, self.baselines_among(list(steps), planner))

    def baselines_among(self, variants: Sequence[str], planner: Planner) -> Sequence[str]:
        """Return the variants that the others are compared with."""
        return baseline_or_first(planner.variant_of(planner.baseline), variants)

    def params(self, planner: Planner) -> StepParams:
        """Return the parameters of a step, from the settings with the same names."""
        model = self.step.params
        params: StepParams = model.model_validate({name: getattr(self, name) for name in model.model_fields})
        return params

    def more_inputs(self, place: str, test_set: Key, planner: Planner, labels: Labels) -> Inputs:
        """Return further inputs beside test set and variant; `labels` name the variant and seed."""
        return {}

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        yield from study.unknown_names((*path, "variants"), block.get("variants"), "variants")
        if cls.needs_head:
            yield from _check_heads(path, block.get("variants"), study)


class OfFirstSentences(OfVariants):
    """Analyses of variants that may be limited to the first sentences of their test set."""

    sentences: Positive | None = None  # [segments] only the first of the test set
    # variants to compare the others with; none named: the variant of the study's baseline, or the first
    baseline_variants: list[Name] | None = None

    @property
    def first_sentences(self) -> int | None:
        return self.sentences

    def baselines_among(self, variants: Sequence[str], planner: Planner) -> Sequence[str]:
        return self.baseline_variants or super().baselines_among(variants, planner)

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        place = (*path, "baseline_variants")
        yield from study.unknown_names(place, block.get("baseline_variants"), "variants")
        yield from not_analysed(place, block.get("baseline_variants"), block.get("variants"))


def baseline_or_first(baseline: str, analysed: Sequence[str]) -> Sequence[str]:
    return [baseline] if baseline in analysed else analysed[:1]


def not_analysed(path: KeyPath, baselines: Any, analysed: Any) -> Iterator[Mistake]:
    """Yield a mistake for each baseline that the analysis' own list of names lacks."""
    if not isinstance(baselines, list) or not isinstance(analysed, list):
        return
    for index, name in enumerate(baselines):
        if name not in analysed:
            yield Mistake((*path, index), f"{name}, which is not analysed", one_of(analysed))


def _check_heads(path: KeyPath, variants: Any, study: RawStudy) -> Iterator[Mistake]:
    with_head = [name for name, variant in study.blocks("variants") if variant.get("nvs") is not None]
    for index, name in enumerate(variants if isinstance(variants, list) else []):
        if study.named("variants", name) is not None and name not in with_head:
            found = f"{name}, which has no NVS head"
            allowed = one_of(with_head, what="a variant with `nvs: {}`")
            yield Mistake((*path, "variants", index), found, allowed)
    if variants is None and not with_head:
        yield Mistake(path, "no variant with an NVS head", "a block `nvs: {}` in a variant")


ANALYSES: Family[Any] = Family("analysis", Analysis, "creamtea.methods.analyses", ())
