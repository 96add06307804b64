from __future__ import annotations

import pytest

from creamtea.stats.proportion import wilson_interval


@pytest.mark.parametrize(
    "count, of, low, high",
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_published_intervals(count: int, of: int, low: float, high: float) -> None:
    """Newcombe (1998), "Two-sided confidence intervals for the single proportion", Table I, method 3."""
    assert wilson_interval(count, of) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("count, of", [(0, 0), (2, 1), (-1, 5)])
def test_no_share(count: int, of: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        wilson_interval(count, of)
