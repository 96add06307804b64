"""How much segments of a document go together, and what that costs: for planning campaigns.

Segments of one document are less than as many segments of different ones. With an intraclass correlation ρ of
the differences of two systems, the variance of a mean with weights w is

    σ² · ((1 − ρ) Σ_i w_i² + ρ Σ_g W_g²) / (Σ w)²,    W_g = Σ_{i in g} w_i

which for documents of m segments each is the design effect 1 + (m − 1)ρ (Kish 1965, "Survey Sampling").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from creamtea.stats.estimate import USUAL_INTRACLASS, Array


@dataclass(frozen=True)
class Sample:
    """What a sample of units is worth, in equally weighted units: `units` if each were a document of its own
    (Kish's (Σw)²/Σw²), `effective` with the documents as they are; and `documents`, in documents of equal
    weight."""

    units: float
    effective: float
    documents: float

    @property
    def design_effect(self) -> float:
        return self.units / self.effective if self.effective else 1.0


def worth(weights: ArrayLike, documents: ArrayLike, intraclass: float = USUAL_INTRACLASS) -> Sample:
    """What units (n,) with positive weights in documents by number (n,) are worth. ValueError for none."""
    w = np.asarray(weights, dtype=np.float64)
    if not len(w):
        raise ValueError("a sample needs a unit")
    total, squares = float(w.sum()) ** 2, float((w**2).sum())
    _, number = np.unique(documents, return_inverse=True)
    of_documents = float((np.bincount(number, w) ** 2).sum())
    together = (1 - intraclass) * squares + intraclass * of_documents
    return Sample(total / squares, total / together, total / of_documents)


def intraclass_correlation(columns: Sequence[Array], documents: ArrayLike) -> float | None:
    """ρ of several variables (n,), NaN where missing, pooled over them: variances between and within
    documents by the analysis of variance (Searle, Casella and McCulloch 1992, ch. 3), added up. At least 0;
    None where no document has two units, or there is only one."""
    labels = np.asarray(documents)
    between = within = 0.0
    counted = False
    for column in columns:
        known = ~np.isnan(column)
        x = column[known]
        _, number = np.unique(labels[known], return_inverse=True)
        sizes = np.bincount(number)
        groups, n = len(sizes), len(x)
        if groups < 2 or n == groups:
            continue
        means = np.bincount(number, x) / sizes
        of_within = float(((x - means[number]) ** 2).sum()) / (n - groups)
        of_between = float((sizes * (means - x.mean()) ** 2).sum()) / (groups - 1)
        size = (n - float((sizes**2).sum()) / n) / (groups - 1)
        between, within = between + (of_between - of_within) / size, within + of_within
        counted = True
    if not counted or between + within <= 0:
        return None
    return max(0.0, between / (between + within))
