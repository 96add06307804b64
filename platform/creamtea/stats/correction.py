"""Correction of p-values for several comparisons."""

from __future__ import annotations

from collections.abc import Sequence

SIGNIFICANT = 0.05  # two-sided; of several comparisons the family-wise level


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (Holm 1979) over the p-values that are there, in the order given.

    With m comparisons the i-th smallest p-value is multiplied by m - i + 1, made monotone and cut at 1;
    rejecting those below 5 % keeps the chance of *any* false alarm among them at 5 %.
    """
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, index) in enumerate(known):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"{p!r} is not a p-value")
        running = max(running, min(1.0, (len(known) - rank) * p))
        adjusted[index] = running
    return adjusted
