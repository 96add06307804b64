"""The mean of our cells over the studies of a collection, such as one for each pair of languages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from creamtea.report.model import UNMARKED, Cell, Delta
from creamtea.report.papers.verdict import Ours
from creamtea.report.scores import NO_MARK
from creamtea.stats.seeds import Spread, spread_of_mean, together


def mean_of(values: Sequence[Ours], study: str) -> Ours:
    """The mean over studies, each of which counts alike (a macro-average), as a value of the whole `study`.

    Every study has a test set of its own, so that the errors are independent. Each side of the 95 % interval
    is that of a mean of independent normal errors:

        1/n √Σ d_i²,   d_i the distance of a study's bound from its value

    The intervals cover the choice of segments, not the choice of studies; a difference has one over seeds,
    too, and a value their standard deviation, where every study has several. A difference is significant
    where its interval excludes 0, unless a study has withheld its mark because BLEU is near zero. A value
    that one study lacks makes the mean unavailable, with that reason; one that lacks seeds makes it partial.
    """
    cells = [value.cell for value in values]
    for value in values:
        if value.cell.value is None:
            note = f"{value.study}: {value.cell.note or value.cell.words}"
            return Ours(Cell(value.cell.state, note, words=value.cell.words), study)
    first = values[0]
    mean, low, high = _interval((cell.value, cell.low, cell.high) for cell in cells)
    lacking = [f"{value.study}: {value.cell.note}" for value in values if value.cell.state == "partial"]
    same_place = all((value.table, value.row) == (first.table, first.row) for value in values)
    deviations = [cell.deviation for cell in cells if cell.deviation is not None]
    deviation = math.hypot(*deviations) / len(cells) if len(deviations) == len(cells) else None
    return Ours(
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
        _mean_spread([_spread(cell) for cell in cells]),
    )


def _spread(cell: Cell) -> Spread | None:
    return None if cell.deviation is None else spread_of_mean(cell.deviation, cell.seeds)


def _mean_spread(spreads: Sequence[Spread | None]) -> Spread | None:
    """Of a mean of independent values; None where one is unknown."""
    known = [spread for spread in spreads if spread is not None]
    if len(known) < len(spreads):
        return None
    return together([replace(spread, square=spread.square / len(known) ** 2) for spread in known])


def _mean_deltas(values: Sequence[Ours]) -> dict[str, Delta]:
    """Of the comparisons that every study has made."""
    means = {
        other: _mean_delta([value.deltas[other] for value in values])
        for other in values[0].deltas
        if all(other in value.deltas for value in values)
    }
    return {other: mean for other, mean in means.items() if mean is not None}


def _mean_delta(deltas: Sequence[Delta]) -> Delta | None:
    if any(delta.value is None for delta in deltas):
        return None
    mean, low, high = _interval((delta.value, delta.low, delta.high) for delta in deltas)
    found = Delta("ok", value=mean, low=low, high=high)
    spread = _mean_spread([delta.spread for delta in deltas])
    if spread is not None:
        found = found.with_seeds(spread)
    unmarked = next((delta.note for delta in deltas if delta.note in (NO_MARK, *UNMARKED)), "")
    return replace(found, significant=found.excludes_zero and not unmarked, note=unmarked)


def _interval(
    triples: Iterable[tuple[float | None, float | None, float | None]],
) -> tuple[float, float | None, float | None]:
    """Mean, low and high of several values with theirs."""
    values, lows, highs = zip(*triples, strict=True)
    mean = math.fsum(values) / len(values)
    if None in lows or None in highs:
        return mean, None, None
    below = math.hypot(*(value - low for value, low in zip(values, lows, strict=True))) / len(values)
    above = math.hypot(*(high - value for value, high in zip(values, highs, strict=True))) / len(values)
    return mean, mean - below, mean + above
