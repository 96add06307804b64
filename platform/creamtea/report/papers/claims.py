"""The papers' claims: what our numbers say about each comparison. `judge` decides all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from creamtea.papers.catalogue import Direction
from creamtea.report.cells import NO_MARK
from creamtea.report.model import ONE_SEED, UNMARKED, Cell, Delta
from creamtea.stats.estimate import Bounds, Spread, together, widened

MARGIN = 0.02  # two values are alike within this share of the other value

RULE = (
    "Verdicts compare two of our values as the paper compares its own, in the direction of the printed "
    "difference, or of the paper's words if it prints no difference. "
    "Holds: our difference has the same direction, and it is significant. If the study has compared the two "
    "values, that means p < 0.05 after Holm's correction by both paired tests (in an analysis, by the paired "
    "bootstrap), and also over segments and seeds if there are several seeds. If it has not, their 95 % "
    "intervals (over segments, and over several seeds) must not overlap. A mean over studies has no p, nor "
    "has a difference between two measures of one model: their paired interval must exclude 0. "
    "Opposite: the other direction, equally clearly. "
    "Undecided: the data cannot tell, or the study does not mark the difference because BLEU is near zero "
    "or because one side has one seed and the other several. One seed says nothing about others. "
    "Without intervals, only the direction is named. "
    "Alike: if the paper says that two values are alike, the interval of our difference (over segments and "
    f"seeds, if it is known) is compared with a margin of {100 * MARGIN:g} % of the other value; the papers "
    "name none. Inside the margin the claim holds, outside is the opposite, and across it is undecided. "
    "In brackets: the 95 % interval of our difference. It is the paired one, over segments and seeds if that "
    "is known; if none was computed, it is the widest that the intervals of both values allow."
)


class Outcome(StrEnum):
    HOLDS = "holds"
    OPPOSITE = "opposite"
    UNDECIDED = "undecided"
    SAME = "same direction, no interval"
    OTHER = "other direction, no interval"
    NO_DIRECTION = "not judged: equal as printed"
    NO_INTERVAL = "not judged: no interval"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class OurValue:
    """A value of ours in the unit of the paper's column, and its paired differences from other rows."""

    cell: Cell
    study: str = ""  # empty if no study is in the database
    table: str = ""  # path in the study's report, with the column
    row: str = ""
    deltas: Mapping[str, Delta] = field(default_factory=dict)  # by the row that it is compared with
    # the value's error over seeds, if it is a mean over studies
    spread: Spread | None = None

    @property
    def bounds(self) -> Bounds | None:
        """The 95 % interval of the value over segments, and over its seeds if it has several."""
        cell, spread = self.cell, self.spread or self.cell.spread
        if cell.value is None or cell.low is None or cell.high is None:
            return None
        return (cell.low, cell.high) if spread is None else widened(cell.value, cell.low, cell.high, spread)


@dataclass(frozen=True)
class Judgement:
    outcome: Outcome
    difference: float | None = None
    low: float | None = None  # 95 %
    high: float | None = None
    note: str = ""  # the study's note on the difference, if it decided


def comparable(own: OurValue, other: OurValue) -> bool:
    """Return whether both values are known and come from one study, so from one size."""
    known = own.cell.value is not None and other.cell.value is not None
    return known and own.study == other.study


def direction_of(own: float | None, other: float | None, stated: Direction) -> Direction:
    """Return the direction of the printed values; the stated one if they are words, equal, or alike."""
    if own is None or other is None or own == other or stated == "alike":
        return stated
    return "higher" if own > other else "lower"


def judge(own: OurValue, other: OurValue, direction: Direction) -> Judgement:
    """Judge a claim by our values: `own` is higher than, lower than or like `other`."""
    difference = _difference(own, other)
    if difference is None:
        return Judgement(Outcome.NOT_RUN)
    value, low, high, differs, note = difference
    agrees = value > 0 if direction == "higher" else value < 0
    if not direction:
        outcome = Outcome.NO_DIRECTION
    elif direction == "alike":
        outcome = Outcome.UNDECIDED if note == ONE_SEED else _alike(low, high, margin_of(other))
    elif low is None or high is None:
        outcome = (Outcome.SAME if agrees else Outcome.OTHER) if value else Outcome.UNDECIDED
    elif not differs:
        outcome = Outcome.UNDECIDED
    else:
        outcome = Outcome.HOLDS if agrees else Outcome.OPPOSITE
    decided_by_note = outcome == Outcome.UNDECIDED and (direction != "alike" or note == ONE_SEED)
    return Judgement(outcome, value, low, high, note if decided_by_note else "")


def margin_of(other: OurValue) -> float:
    """Return the distance from `other` within which a value is alike."""
    return MARGIN * abs(other.cell.value or 0.0)


def _alike(low: float | None, high: float | None, margin: float) -> Outcome:
    if low is None or high is None:
        return Outcome.NO_INTERVAL
    if -margin < low and high < margin:
        return Outcome.HOLDS
    return Outcome.OPPOSITE if low >= margin or high <= -margin else Outcome.UNDECIDED


def _difference(own: OurValue, other: OurValue) -> tuple[float, float | None, float | None, bool, str] | None:
    """Return value, interval, whether it differs from 0, and the study's note on it."""
    a, b = own.cell, other.cell
    if not comparable(own, other) or a.value is None or b.value is None:
        return None
    for compared, with_, sign in ((own, other, 1), (other, own, -1)):
        delta = compared.deltas.get(with_.row) if compared.table == with_.table else None
        if delta is not None and delta.value is not None:
            signed = delta.scaled(sign)
            return sign * delta.value, *signed.bounds, delta.significant, delta.note
    own_bounds, other_bounds = own.bounds, other.bounds
    if own_bounds is None or other_bounds is None:
        return a.value - b.value, None, None, False, ""
    low, high = own_bounds[0] - other_bounds[1], own_bounds[1] - other_bounds[0]
    if min(a.seeds, b.seeds) == 1 < max(a.seeds, b.seeds):
        return a.value - b.value, low, high, False, ONE_SEED
    return a.value - b.value, low, high, low > 0 or high < 0, ""


def mean_of(values: Sequence[OurValue], study: str) -> OurValue:
    """Return the mean over studies (a macro-average) as a value of the whole `study`.

    Every study has a test set of its own, so errors are independent. Each side of the 95 % interval is that
    of a mean of independent normal errors:

        1/n √Σ d_i²,   d_i: the distance of a study's bound from its value

    The intervals cover the choice of segments, not the choice of studies. If every study has several seeds,
    a value also has a standard deviation, and a difference an interval over seeds. A difference is
    significant if its interval excludes 0, unless a study withholds its mark because BLEU is near zero. If
    one study lacks the value, the mean has that study's state; if one lacks seeds, the mean is partial.
    """
    cells = [value.cell for value in values]
    for value in values:
        if value.cell.value is None:
            note = f"{value.study}: {value.cell.note or value.cell.words}"
            return OurValue(Cell(value.cell.state, note, words=value.cell.words), study)
    first = values[0]
    mean, low, high = _interval((cell.value, cell.low, cell.high) for cell in cells)
    lacking = [f"{value.study}: {value.cell.note}" for value in values if value.cell.state == "partial"]
    same_place = all((value.table, value.row) == (first.table, first.row) for value in values)
    deviations = [cell.deviation for cell in cells if cell.deviation is not None]
    deviation = math.hypot(*deviations) / len(cells) if len(deviations) == len(cells) else None
    return OurValue(
        Cell(
            "partial" if lacking else "ok",
            "; ".join(lacking),
            value=mean,
            low=low,
            high=high,
            deviation=deviation,
            seeds=min(cell.seeds for cell in cells),
        ),
        study,
        first.table if same_place else "",
        first.row if same_place else "",
        _mean_deltas(values) if same_place else {},
        _mean_spread([cell.spread for cell in cells]),
    )


def _mean_spread(spreads: Sequence[Spread | None]) -> Spread | None:
    """Return the spread of a mean of independent values; None if one is unknown."""
    known = [spread for spread in spreads if spread is not None]
    if len(known) < len(spreads):
        return None
    return together([replace(spread, square=spread.square / len(known) ** 2) for spread in known])


def _mean_deltas(values: Sequence[OurValue]) -> dict[str, Delta]:
    """Return the means of the comparisons that every study has made."""
    means = {}
    for other in values[0].deltas:
        deltas = [delta for value in values if (delta := value.deltas.get(other)) is not None]
        if len(deltas) < len(values) or any(delta.value is None for delta in deltas):
            continue
        mean, low, high = _interval((delta.value, delta.low, delta.high) for delta in deltas)
        of_mean = Delta("ok", value=mean, low=low, high=high)
        spread = _mean_spread([delta.spread for delta in deltas])
        of_mean = of_mean if spread is None else of_mean.with_seeds(spread)
        unmarked = next((delta.note for delta in deltas if delta.note in (NO_MARK, *UNMARKED)), "")
        significant = of_mean.excludes_zero and not unmarked
        means[other] = replace(of_mean, significant=significant, note=unmarked)
    return means


def _interval(
    triples: Iterable[tuple[float | None, float | None, float | None]],
) -> tuple[float, float | None, float | None]:
    """Return the mean of several values with its interval, from (value, low, high)."""
    values, lows, highs = zip(*triples, strict=True)
    mean = math.fsum(values) / len(values)
    if None in lows or None in highs:
        return mean, None, None
    below = math.hypot(*(value - low for value, low in zip(values, lows, strict=True))) / len(values)
    above = math.hypot(*(high - value for value, high in zip(values, highs, strict=True))) / len(values)
    return mean, mean - below, mean + above
