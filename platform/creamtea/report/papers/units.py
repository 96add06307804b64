"""Our values in the units of a paper: percentages, rates, and sizes as the paper counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from creamtea.methods.architectures import Layered
from creamtea.methods.selections import LexiconSelection, NvsSelection
from creamtea.report.model import Cell, Delta
from creamtea.study.spec import Study


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def scaled(cell: Cell, factor: float) -> Cell:
    """Without what is only of the study's own table."""
    return replace(
        cell,
        value=_times(cell.value, factor),
        low=_times(cell.low, factor),
        high=_times(cell.high, factor),
        deviation=_times(cell.deviation, factor),
        percents={},
        delta=None,
    )


def scaled_delta(delta: Delta, factor: float) -> Delta:
    return replace(
        delta,
        value=_times(delta.value, factor),
        low=_times(delta.low, factor),
        high=_times(delta.high, factor),
        seeds_low=_times(delta.seeds_low, factor),
        seeds_high=_times(delta.seeds_high, factor),
        spread=delta.spread and replace(delta.spread, square=delta.spread.square * factor**2),
    )


def scaled_deltas(deltas: Mapping[str, Delta], factor: float) -> dict[str, Delta]:
    return {other: scaled_delta(delta, factor) for other, delta in deltas.items()}


def percent_of(cell: Cell, of: str) -> Cell:
    if cell.value is None:
        return replace(cell, percents={}, delta=None)
    percent = cell.percents.get(of)
    if percent is None:
        return Cell("absent", f"the study gives no percentage of {of}", words="none")
    return Cell("ok", value=percent.value, low=percent.low, high=percent.high)


def per_second(cell: Cell) -> Cell:
    """Sentences per second of the milliseconds of a sentence."""

    def rate(milliseconds: float | None) -> float | None:
        return 1000.0 / milliseconds if milliseconds else None

    return replace(
        cell, value=rate(cell.value), low=rate(cell.high), high=rate(cell.low), deviation=None, percents={}
    )


def selection_size(spec: Study, system: str) -> int | None:
    """The numbers that a system's selection holds (NVS paper, Table 7): k for each of V subwords of a
    lexicon; V × d + V of an NVS head of a model of width d. None where the study has no such system, or the
    paper counts none of its kind."""
    chosen = spec.systems.get(system)
    if chosen is None or not chosen.variant:
        return None
    variant = spec.variants[chosen.variant]
    vocabulary = int(spec.subwords[variant.subwords].vocabulary)
    match chosen.selection, variant.architecture:
        case LexiconSelection(k=k), _:
            return k * vocabulary
        case NvsSelection(), Layered(width=width):
            return vocabulary * (width + 1)
    return None
