from __future__ import annotations

import math

import pytest

from creamtea.stats.estimate import logit_interval, wilson_interval


@pytest.mark.parametrize(
    "count, of, low, high",
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_published_intervals(count: int, of: int, low: float, high: float) -> None:
    """Newcombe (1998), "Two-sided confidence intervals for the single proportion", Table I, method 3."""
    assert wilson_interval(count, of) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_on_the_scale_of_log_odds_stays_between_0_and_1() -> None:
    half = 0.1 / (0.95 * 0.05)
    odds = [math.exp(sign * half) * 19 for sign in (-1, 1)]
    assert logit_interval(0.95, 0.1) == pytest.approx(tuple(one / (1 + one) for one in odds))
    assert logit_interval(0.5, 1e-6) == pytest.approx((0.5 - 1e-6, 0.5 + 1e-6), abs=1e-12)


@pytest.mark.parametrize("count, of", [(0, 0), (2, 1), (-1, 5)])
def test_no_share(count: int, of: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        wilson_interval(count, of)
