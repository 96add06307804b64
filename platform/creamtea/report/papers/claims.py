"""The papers' claims: what our numbers say about each comparison, and the tables of docs/results/claims.md.

`judge` decides every comparison, here and on the papers' pages. `python -m creamtea.report.papers.claims
FOLDER` writes the tables. claims.yaml beside the page has the papers' claims and our figures, as the reports
of the studies print them (docs/results/data).
"""

from __future__ import annotations

import math
import re
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, TypeAdapter, model_validator

from creamtea.contract.step import Column
from creamtea.document.document import read_document
from creamtea.document.values import Positive, Strict
from creamtea.papers.catalogue import Direction
from creamtea.report import text
from creamtea.report.cells import NO_MARK
from creamtea.report.model import ONE_SEED, UNMARKED, Cell, Delta
from creamtea.stats.estimate import Bounds, Spread, together, widened
from creamtea.stats.paired import SIGNIFICANT

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


# ---------------------------------------------------------------- docs/results/claims.md


NUMBER = r"([+−±]?[\d,]*\.?\d+)"
INTERVAL = rf"\[{NUMBER}, {NUMBER}\]"
VALUE = re.compile(rf"{NUMBER}(?: ± {NUMBER})?(?: {INTERVAL})?")
DIFFERENCE = re.compile(rf"{NUMBER} {INTERVAL}(?: p=(\S+))?(?: with seeds {INTERVAL}(?: p=(\S+))?)?")
PLACE = re.compile(r"(<!-- (?!end)([\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
NOT_JUDGED = "not judged"


class Comparison(Strict):
    """Two values of ours, and their paired `difference` with the p-values of the study."""

    what: str = ""
    own: str
    other: str
    difference: str = ""
    direction: Direction = ""  # if it differs from the claim's


class Study(Strict):
    page: str  # the file below docs/results with the study's report
    n: str  # "1,000 captions"
    seeds: Positive


class PaperClaim(Strict):
    claim: str
    paper: str  # what it prints
    unit: str = ""
    direction: Direction = ""
    compared: list[Comparison] = Field(default_factory=list)
    not_judged: str = ""  # why
    study: Study | None = None  # if it differs from the table's

    @model_validator(mode="after")
    def _compared_or_why_not(self) -> Self:
        if bool(self.compared) == bool(self.not_judged):
            raise ValueError("give either `compared` or `not_judged`")
        if any(not (comparison.direction or self.direction) for comparison in self.compared):
            raise ValueError("a comparison has no direction")
        return self


class ClaimTable(Strict):
    study: Study
    claims: list[PaperClaim]


def read_claims(folder: Path) -> dict[str, ClaimTable]:
    """Read claims.yaml: its tables by their names."""
    return TypeAdapter(dict[str, ClaimTable]).validate_python(read_document(folder / "claims.yaml").data)


def markdown(folder: Path) -> str:
    """Return the page with its rule and tables rewritten, each between `<!-- NAME -->` and `<!-- end -->`."""
    blocks = {name: "\n".join(_table(table)) for name, table in read_claims(folder).items()} | {"rule": RULE}

    def block(place: re.Match[str]) -> str:
        return f"{place[1]}{blocks.pop(place[2])}\n"

    page = (folder / "claims.md").read_text(encoding="utf-8")
    written = PLACE.sub(block, page)
    if blocks:
        raise ValueError(f"claims.md has no place for {', '.join(blocks)}")
    return written


def _table(table: ClaimTable) -> Iterator[str]:
    yield "| | claim | verdict | paper | here | n |\n| --: | :-- | :-- | :-- | :-- | :-- |"
    for number, claim in enumerate(table.claims, start=1):
        if claim.not_judged:
            yield f"| {number} | {claim.claim} | {NOT_JUDGED} | {claim.paper} | {claim.not_judged} | – |"
        study = claim.study or table.study
        n = f"{study.n}, {'one seed' if study.seeds == 1 else f'{study.seeds} seeds'}"
        for place, comparison in enumerate(claim.compared):
            first = (str(number), f"{claim.claim}: {comparison.what}".removesuffix(": "), claim.paper)
            start, words, paper = ("", comparison.what, "") if place else first
            verdict, here = judged(comparison, claim, study.seeds)
            escaped = re.sub(r"([\[\]<])", r"\\\1", here)
            yield f"| {start} | {words} | {verdict.outcome} | {paper} | {escaped} | {n} |"


def judged(comparison: Comparison, claim: PaperClaim, seeds: int) -> tuple[Judgement, str]:
    """Return the verdict on a comparison, and its figures: "36.4 → 37.5 BLEU, +1.1 [0.3, 2.0], p = 0.15"."""
    own, other, ps = _ours(comparison.own, seeds), _ours(comparison.other, seeds), ""
    if comparison.difference:
        delta, ps = _delta(comparison.difference)
        own, other = replace(own, row="own", deltas={"other": delta}), replace(other, row="other")
    direction = comparison.direction or claim.direction
    judgement = judge(own, other, direction)
    printed = (comparison.difference or comparison.own).partition(" ")[0]
    column = Column("", "", len(printed.partition(".")[2]))
    values = (words.partition(" [")[0] for words in (comparison.other, comparison.own))
    change = text.number(judgement.difference or 0.0, column)
    change = f"+{change}" if (judgement.difference or 0.0) > 0 else change
    if judgement.low is not None and judgement.high is not None:
        change += f" [{text.number(judgement.low, column)}, {text.number(judgement.high, column)}]"
    margin = text.number(margin_of(other), replace(column, digits=column.digits + 1))
    shown = [f"{' → '.join(values)} {claim.unit}".strip(), change]
    shown += [f"p = {ps}"] if ps else []
    shown += [f"margin {margin}"] if direction == "alike" else []
    return judgement, ", ".join(shown)


def _ours(words: str, seeds: int) -> OurValue:
    value, deviation, low, high = map(_number, _match(VALUE, words).groups())
    return OurValue(Cell("ok", "", value, low, high, deviation, seeds if deviation is not None else 1))


def _delta(words: str) -> tuple[Delta, str]:
    """Return the paired difference, and its p-values in words: over segments, and over seeds."""
    value, low, high, over_segments, seeds_low, seeds_high, over_seeds = _match(DIFFERENCE, words).groups()
    ps = [p for printed in (over_segments, over_seeds) if printed for p in printed.split("/")]
    over_segments_alone = Delta("ok", value=_number(value), low=_number(low), high=_number(high))
    delta = replace(over_segments_alone, seeds_low=_number(seeds_low), seeds_high=_number(seeds_high))
    significant = delta.excludes_zero and all(float(p.lstrip("<")) < SIGNIFICANT for p in ps)
    return replace(delta, significant=significant), ", ".join(ps)


def _match(pattern: re.Pattern[str], words: str) -> re.Match[str]:
    match = pattern.fullmatch(words)
    if match is None:
        raise ValueError(f"claims.yaml: {words!r} is not a figure as reports print it")
    return match


def _number(printed: str | None) -> float | None:
    return None if printed is None else float(re.sub("[±+,]", "", printed).replace("−", "-"))


if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m creamtea.report.papers.claims", description="Write claims.md.")
    parser.add_argument("folder", type=Path, help="the folder of claims.yaml and claims.md")
    folder: Path = parser.parse_args().folder
    (folder / "claims.md").write_text(markdown(folder), encoding="utf-8")
