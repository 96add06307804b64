"""What each segment adds to the measures of an analysis: kept, so that rows can be compared in pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from creamtea.methods.analysis import STATISTICS_FILE
from creamtea.stats.bootstrap import Array

Score = Literal["ratio", "deviation", "bleu"]


class Measured(NamedTuple):
    """A column of an analysis, at a setting ("4") or at none ("")."""

    measure: str
    setting: str = ""


class Statistics(NamedTuple):
    score: Score  # of the sums: `creamtea_workers.steps.differences.SCORES`
    values: Array  # (segments, F)


class SegmentStatistics(dict[Measured, Statistics]):
    """Collected by a step, and read by the steps that compare it with others."""

    def add(self, measure: str, values: Array, setting: str = "", score: Score = "ratio") -> None:
        self[Measured(measure, setting)] = Statistics(score, np.asarray(values, dtype=np.float64))

    def share(self, measure: str, counted: ArrayLike, setting: str = "") -> None:
        """A share of all segments."""
        self.add(measure, np.column_stack([counted, np.ones_like(counted)]), setting)

    def mean(self, measure: str, values: ArrayLike) -> None:
        """The mean of the finite values."""
        there = np.isfinite(values)
        self.add(measure, np.column_stack([np.where(there, values, 0.0), there]))

    def deviation(self, measure: str, values: ArrayLike) -> None:
        """The sample deviation of the finite values, as MEASURE_deviation."""
        there = np.isfinite(values)
        numbers = np.where(there, values, 0.0)
        self.add(f"{measure}_deviation", np.column_stack([numbers**2, numbers, there]), score="deviation")

    def save(self, folder: Path) -> None:
        """Each array under "SCORE/MEASURE/SETTING", in the smallest type that holds its numbers exactly."""
        arrays = {
            "/".join((score, *measured)): np.asfortranarray(_smallest(values))
            for measured, (score, values) in self.items()
        }
        np.savez_compressed(folder / STATISTICS_FILE, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, folder: Path) -> SegmentStatistics:
        own = cls()
        with np.load(folder / STATISTICS_FILE, allow_pickle=False) as arrays:
            for name in arrays.files:
                score, measure, setting = name.split("/", 2)
                own.add(measure, arrays[name], setting, score)
        return own


def _smallest(values: Array) -> NDArray[Any]:
    if not values.size or values.min() < 0 or (values != np.floor(values)).any():
        return values
    return values.astype(np.min_scalar_type(int(values.max())))
