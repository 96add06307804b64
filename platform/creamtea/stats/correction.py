"""Correction of p-values for several comparisons."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (Holm 1979): adjusted p-values in the order given.

    With m comparisons the i-th smallest p-value is multiplied by m - i + 1, made monotone and cut at 1;
    rejecting those below 5 % keeps the chance of *any* false alarm among them at 5 %.
    """
    for p in p_values:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"{p!r} is not a p-value")
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
