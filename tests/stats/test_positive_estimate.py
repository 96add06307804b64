"""Intervals of positive values on the scale of logarithms, in simulations of known means."""

from __future__ import annotations

import numpy as np
import pytest

from creamtea.stats.estimate import Estimate, mean_estimate, positive_estimate

RUNS = 2000


@pytest.mark.parametrize("repetitions", [2, 3, 5, 30])
@pytest.mark.parametrize(("sigma", "least"), [(0.05, 0.94), (0.3, 0.935), (1.0, 0.87)])
def test_times_are_covered_at_least_as_often_as_by_the_interval_of_the_times(
    sigma: float, least: float, repetitions: int
) -> None:
    truth = np.exp(sigma**2 / 2)  # of a log-normal distribution
    drawn = np.random.default_rng(1).lognormal(0, sigma, (RUNS, repetitions))
    plain = [mean_estimate(times) for times in drawn]
    positive = [positive_estimate(estimate) for estimate in plain]
    assert all(estimate.low is not None and estimate.low > 0 for estimate in positive)
    assert share(positive, truth) >= max(least, share(plain, truth) - 0.001)


def share(estimates: list[Estimate], truth: float) -> float:
    covered = [e.low <= truth <= e.high for e in estimates if e.low is not None and e.high is not None]
    return sum(covered) / len(covered)


def test_thirty_repetitions_hardly_differ_from_the_interval_of_the_times() -> None:
    plain = mean_estimate(np.random.default_rng(2).normal(20.0, 1.0, 30))  # milliseconds
    positive = positive_estimate(plain)
    assert positive.value == plain.value
    assert (positive.low, positive.high) == pytest.approx((plain.low, plain.high), abs=0.005)


def test_what_has_no_interval_keeps_its_reason() -> None:
    assert positive_estimate(Estimate(3.0, reason="only one item")) == Estimate(3.0, reason="only one item")


def test_a_value_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="not above 0"):
        positive_estimate(Estimate(-1.0, -2.0, 0.0))
