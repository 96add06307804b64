"""Tests that hold whenever one looks: error rates over all looks, and what a campaign does with them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from creamtea.stats.aiming import SETTLED_SHARE, State, look, probability, weights_at_the_end
from creamtea.stats.estimate import mean_estimate
from creamtea.stats.sequential import BURN_IN, sequence

UNITS = 300


def test_the_sequence_by_a_slow_oracle() -> None:
    values = np.random.default_rng(1).normal(0.4, 1.5, 60)
    found = sequence(values, best_at=30)
    rho2 = (-2 * math.log(0.05) + math.log(1 - 2 * math.log(0.05))) / 30
    smallest = 1.0
    for t in range(1, 61):
        seen = values[:t]
        assert found.mean[t - 1] == pytest.approx(seen.mean())
        if t < BURN_IN:
            assert math.isinf(found.half_width[t - 1])
            continue
        scale = 1 + t * rho2
        wide = math.sqrt(2 * scale / (t**2 * rho2) * math.log(math.sqrt(scale) / 0.05))
        assert found.half_width[t - 1] == pytest.approx(seen.std(ddof=1) * wide)
        size = (seen.sum() / seen.std(ddof=1)) ** 2
        smallest = min(smallest, math.sqrt(scale) * math.exp(-rho2 * size / (2 * scale)))
        assert found.p_value[t - 1] == pytest.approx(smallest)


def test_p_is_below_five_per_cent_where_the_interval_leaves_zero() -> None:
    values = np.random.default_rng(2).normal(0.25, 1, (40, UNITS))
    found = sequence(values, best_at=UNITS // 2)
    outside = np.logical_or.accumulate((found.low > 0) | (found.high < 0), axis=1)
    np.testing.assert_array_equal(outside, found.p_value < 0.05)
    assert outside[:, -1].mean() > 0.8


@pytest.mark.parametrize("skewed", [False, True])
def test_five_per_cent_are_for_all_looks_together(skewed: bool) -> None:
    """A fixed-sample test looked at 300 times cries wolf in 30 % of campaigns of equal systems."""
    rng = np.random.default_rng(3)
    values = rng.exponential(1, (2000, UNITS)) - 1 if skewed else rng.normal(0, 1, (2000, UNITS))
    found = sequence(values, best_at=UNITS // 2)
    assert np.mean(found.p_value[:, -1] < 0.05) <= (0.08 if skewed else 0.05)
    covered = ((found.low <= 0) & (found.high >= 0)).all(axis=1)
    assert covered.mean() >= (0.92 if skewed else 0.95)
    t = np.arange(BURN_IN, UNITS + 1)
    z = values.cumsum(axis=1)[:, BURN_IN - 1 :] / np.sqrt(t)
    assert np.mean((np.abs(z) > 1.96).any(axis=1)) > 0.25


def aimed(rng: np.random.Generator, difference: float) -> tuple[np.ndarray, np.ndarray]:
    """y_t and q_t of units rated with a probability that falls to a tenth whenever z² > 2.7."""
    y, q = np.zeros(UNITS), np.ones(UNITS)
    total = squares = 0.0
    for t in range(UNITS):
        if t >= 10 and total**2 > 2.7 * squares:
            q[t] = SETTLED_SHARE
        y[t] = (rng.random() < q[t]) * rng.normal(difference, 1) / q[t]
        total, squares = total + y[t], squares + y[t] ** 2
    return y, q


@pytest.mark.slow
def test_means_by_inverse_probabilities_and_their_intervals_at_the_end() -> None:
    rng = np.random.default_rng(4)
    for difference in (0.0, 0.15):
        campaigns = [aimed(rng, difference) for _ in range(1500)]
        means = np.array([y.mean() for y, _ in campaigns])
        assert means.mean() == pytest.approx(difference, abs=4 * means.std() / math.sqrt(len(means)))
        intervals = [mean_estimate(y, weights_at_the_end(q)) for y, q in campaigns]
        covered = np.mean([(x.low or 0) <= difference <= (x.high or 0) for x in intervals])
        assert 0.93 <= covered <= 0.97
        early = [sequence(y, best_at=UNITS // 2) for y, _ in campaigns]
        assert np.mean([((s.low <= difference) & (difference <= s.high)).all() for s in early]) >= 0.94


def test_each_comparison_gets_its_state() -> None:
    rng = np.random.default_rng(5)
    values = [
        rng.normal(3, 5, 200),
        rng.normal(-3, 5, 200),
        rng.normal(0, 1, 200) / 4,
        20 * np.sin(np.arange(200)),
        rng.normal(0.9, 5, 50),
        np.zeros(0),
    ]
    found = look(values, [400, 400, 400, 400, 400, 400], delta=1.0)
    assert [one.state for one in found] == [
        State.BETTER,
        State.WORSE,
        State.NO_LARGER_DIFFERENCE,
        State.HOPELESS,
        State.OPEN,
        State.OPEN,
    ]
    assert [probability(one.state) for one in found[2:5]] == [SETTLED_SHARE, SETTLED_SHARE, 1.0]
    assert found[0].low is not None
    assert found[0].low > 0
    with pytest.raises(ValueError, match="δ must be above 0"):
        look(values, [400] * 6, delta=0.0)


def test_at_the_end_nothing_is_open_and_most_of_the_five_per_cent_are_left() -> None:
    values = np.random.default_rng(6).normal(0, 5, 100)
    values += 2.2 * values.std(ddof=1) / 10 - values.mean()  # t = 2.2, p = 0.030
    assert look([values], [100], delta=0.5)[0].state is State.BETTER
    assert look([values], [100], delta=0.5)[0].p_value == pytest.approx(0.030 / 0.8, abs=0.001)
    assert look([values, values / 1.3], [100, 100], delta=0.5)[1].state is State.HOPELESS


@pytest.mark.slow
def test_a_campaign_that_looks_often_cries_wolf_in_five_per_cent() -> None:
    """Three equal systems beside the baseline, a look after every 20 units, the end included."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        units = rng.normal(0, 1, (4, UNITS))
        values = list(units[1:] - units[0])
        states: set[State] = set()
        for end in range(20, UNITS + 1, 20):
            states |= {one.state for one in look([y[:end] for y in values], [UNITS] * 3, delta=0.01)}
        wrong += bool(states & {State.BETTER, State.WORSE})
    assert wrong <= 0.075 * 400
