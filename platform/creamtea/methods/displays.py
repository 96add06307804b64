"""What a report shows of an analysis: its tables, and plots of their cells or of the step's points.

All of this is declared; `creamtea.report` fills it. The columns that several analyses have stand here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from creamtea.contract.columns import Column


class RowSetting(NamedTuple):
    """One of the rows of a variant."""

    parts: tuple[str, ...] = ()  # of the subject of the step's metrics: ("k=200", "idiom")
    words: str = ""  # "beam 4"
    x: float | None = None  # where plots draw it
    tick: str = ""  # on the axis, in place of x
    needs: str = ""  # shown where it was measured: "idioms", "words" of idioms, "repeated idioms", …


@dataclass(frozen=True)
class Measure:
    """A column, and where its values are among a step's metrics."""

    column: Column
    metric: str = ""  # the column's key where it is not given
    detail: str = ""  # what of the metric's detail is shown, in place of its value
    no_detail: str = ""  # why a metric that has a value may lack it
    counts: Callable[[Mapping[str, Any]], tuple[int, int]] | None = None  # (count, of) of the detail: a share
    part: int | None = None  # the subject is this part of the setting's, or all of them joined by "/"
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
    # where steps measure buckets that only they know: in place of one table, one for each kind of buckets
    # (by kind its title), with a column for each bucket and measure. Details of metrics have the `bucket`:
    # its kind, words, position, and number of segments
    buckets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CellPlot:
    """Measures of the first table over its settings, or over another measure: one curve per variant
    and measure."""

    title: str
    x: Column  # titles the axis; its key names the measure that is x, "setting" the setting
    y: Column
    measures: Mapping[str, str]  # by column key, words that tell the curves of a variant apart
    logarithmic: bool = False
    only: str = ""  # settings with this part
    apart: Mapping[str, str] = field(default_factory=dict)  # only settings with one of these, a curve each
    joined: bool = True  # False: points without lines, where x is not a quantity


@dataclass(frozen=True)
class RowPlot:
    """Measures of a table with one row per variant: the rows below each other, with one mark per measure."""

    title: str
    y: Column  # titles the axis of the values
    measures: Mapping[str, str]  # by column key, words that tell the marks apart
    table: int
    deviations: bool = False  # drawn in place of the intervals: those of the column KEY_deviation


@dataclass(frozen=True)
class PointPlot:
    """Series of the step's points, one curve per trained model and series."""

    title: str
    x: Column
    y: Column
    series: Mapping[str, str]  # by name, words that tell the curves of a model apart
    label: str  # what the points' labels say
    logarithmic: bool = False
    diagonal: bool = False
    counted: bool = False  # y is a share of as many as the label says: drawn with Wilson intervals


@dataclass(frozen=True)
class IdiomList:
    """A table of the idioms that a metric's detail lists, each with subwords: a column for each variant and
    setting. `detail` names the list, and in it the subwords of an idiom."""

    title: str
    metric: str
    detail: str
    about: str


# ---------------------------------------------------------------- columns that several analyses have


def share(key: str, title: str, note: str, better: str = "") -> Column:
    """A share, shown in per cent."""
    return Column(key, title, 1, better, 100.0, "%", note=note)


def deviation_of(name: str, words: str) -> Measure:
    """The standard deviation of a mean log-probability."""
    column = Column(f"{name}_deviation", f"± {words}", 2, note="standard deviation over sentences")
    return Measure(column, metric=name, detail="deviation", no_detail="one sentence alone has no deviation")


BLEU = Column("bleu", "BLEU", 1, "higher")
LENGTH = Column("length_ratio", "length", 3, note="hypothesis over reference tokens, as BLEU counts them")
EMPTY = share("empty", "empty", "share of empty outputs", "lower")
BEAM = Column("setting", "beam width (log scale)", 0)
GAP = Measure(
    Column("log_prob_gap", "gap", 2, note="mean log-probability of the output less that of the empty string")
)
