"""The raters who count, beside whom the checks judge one of them.

Each figure of a rater is computed once for all comparisons, so that a report costs no more where
there are many raters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from creamtea.human.protocols import Protocol
from creamtea.human.quality.measures import Measures
from creamtea.stats.estimate import Array

Figure = Callable[[Measures], float | None]  # of one rater; None where there is nothing to measure it by


@dataclass(frozen=True)
class CountingRaters:
    """The measures of those who count, by rater."""

    measures: Mapping[int, Measures]
    _known: dict[Figure, tuple[dict[int, float], Array]] = field(default_factory=dict, init=False, repr=False)

    def without(self, rater: int, figure: Figure) -> Array:
        """The figures of all others who have one, ascending. `figure` is a function of a module: it is known
        again by its identity."""
        if figure not in self._known:
            of_rater = {
                other: value for other, own in self.measures.items() if (value := figure(own)) is not None
            }
            self._known[figure] = of_rater, np.sort(np.array(list(of_rater.values()), dtype=np.float64))
        of_rater, ascending = self._known[figure]
        if rater not in of_rater:
            return ascending
        return np.delete(ascending, np.searchsorted(ascending, of_rater[rater]))


@dataclass(frozen=True)
class Comparison:
    """What a check knows beside the rater: the protocol and the other raters who count."""

    protocol: Protocol
    counting: CountingRaters
    rater: int

    def others(self, figure: Figure) -> Array:
        """The others' figures, ascending."""
        return self.counting.without(self.rater, figure)

    def usual(self, figure: Figure) -> float | None:
        """The median over the others; None where nobody has the figure."""
        known = self.others(figure)
        return float(np.median(known)) if len(known) else None

    @property
    def one_other(self) -> bool:
        """Whether a single other rater counts: where the two differ, either may be the one who errs."""
        return len(self.counting.measures.keys() - {self.rater}) == 1

    @property
    def points_range(self) -> float:
        scale = self.protocol.scale
        return float(scale.highest - scale.lowest)
