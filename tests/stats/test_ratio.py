"""Baseline = 100 %: both intervals by the formulas written out, and where there is no ratio."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from creamtea.stats.estimate import baseline_ratio


def test_both_intervals_by_hand() -> None:
    baseline, system = np.array([4.0, 5.0, 3.0, 4.0]), np.array([3.0, 5.0, 2.0, 4.0])
    found = baseline_ratio(baseline, system)
    assert found.delta.value == pytest.approx(100 * 14 / 16)
    t = stats.t.ppf(0.975, 3)
    # differences −1, 0, −1, 0: mean −0.5, sd √(1/3); scaled by 100/4
    half = 25 * t * np.sqrt(1 / 3) / 2
    assert (found.paired_t.low, found.paired_t.high) == pytest.approx((87.5 - half, 87.5 + half))
    # residuals x_s − 0.875·x_b: −0.5, 0.625, −0.625, 0.5
    half = 100 * t * np.sqrt((0.25 + 0.390625) * 2 / 3) / (2 * 4)
    assert (found.delta.low, found.delta.high) == pytest.approx((87.5 - half, 87.5 + half))


def test_the_papers_interval_is_scipys_scaled() -> None:
    rng = np.random.default_rng(2)
    baseline = rng.normal(4, 1, 350)
    system = baseline + rng.normal(-0.1, 0.7, 350)
    found = baseline_ratio(baseline, system)
    interval = stats.ttest_rel(system, baseline).confidence_interval()
    expected = 100 + 100 * np.array([interval.low, interval.high]) / baseline.mean()
    assert (found.paired_t.low, found.paired_t.high) == pytest.approx(tuple(expected), rel=1e-12)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=3, max_size=30), st.integers(2, 9)
)
def test_another_unit_and_another_order_change_nothing(pairs: list[tuple[int, int]], unit: int) -> None:
    baseline, system = np.array(pairs, dtype=float).T
    found, scaled = (
        baseline_ratio(baseline, system),
        baseline_ratio(unit * baseline[::-1], unit * system[::-1]),
    )
    assert scaled.delta.value == pytest.approx(found.delta.value, rel=1e-9)
    for ours, theirs in ((found.paired_t, scaled.paired_t), (found.delta, scaled.delta)):
        assert ours.reason == theirs.reason
        if ours.low is not None:
            assert (theirs.low, theirs.high) == pytest.approx((ours.low, ours.high), rel=1e-6)


def test_missing_and_weighted_items() -> None:
    baseline = np.array([4.0, np.nan, 3.0, 5.0, 2.0, 6.0])
    system = np.array([3.0, 5.0, np.nan, 5.0, 2.5, 6.0])
    found = baseline_ratio(baseline, system, [1, 1, 1, 2, 1, 0])
    assert found.delta.value == pytest.approx(100 * (3 + 10 + 2.5) / (4 + 10 + 2))
    assert found.delta.low is not None
    assert found.delta.low < found.delta.value  # type: ignore[operator]


def test_where_there_is_no_ratio_or_no_interval_it_says_why() -> None:
    assert baseline_ratio([], []).delta.reason == "no items"
    zero = baseline_ratio([0.0, 0.0], [1.0, 2.0])
    assert (zero.delta.value, zero.paired_t.low) == (None, None)
    assert zero.paired_t.reason == zero.delta.reason == "the baseline's mean is not above 0: no ratio to it"
    itself = baseline_ratio([1.2, 3.4], [1.2, 3.4])
    assert (itself.delta.value, itself.paired_t.low) == (100.0, None)
    assert itself.delta.reason == "the same value on all 2 items: no spread to judge by"
    assert baseline_ratio([2.0], [3.0]).delta.value == 150.0
    assert baseline_ratio([2.0], [3.0]).delta.reason == "only one item: no spread to judge by"
    # a system that is always half of the baseline: the differences spread, the residuals do not
    half = baseline_ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert half.paired_t.low is not None
    assert half.delta.low is None
