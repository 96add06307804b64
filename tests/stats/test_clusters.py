"""Means over clusters against scipy, by hand and by their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from creamtea.stats.estimate import ClusterMean, cluster_mean, effective_clusters


def test_of_single_cases_it_is_the_t_interval_of_a_mean() -> None:
    values = np.random.default_rng(1).normal(0.3, 1.0, 30)
    found = cluster_mean(values, np.ones(30))
    interval = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(interval)
    assert found.p_value == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)


def test_by_hand() -> None:
    """Totals 3 and 1 of 4 and 2 cases: 2/3; residuals 1/3 and -1/3, which count 3 and 3/2 times."""
    found = cluster_mean([3, 1], [4, 2])
    freedom = 36 / 20 - 1
    half = stats.t.ppf(0.975, freedom) * np.sqrt(4.5 / 9) / 6
    assert found.value == pytest.approx(2 / 3)
    assert (found.low, found.high) == pytest.approx((2 / 3 - half, 2 / 3 + half))


def test_clusters_that_weigh_unequally_count_as_fewer() -> None:
    assert effective_clusters([5] * 7) == pytest.approx(7)
    assert effective_clusters([100, 1, 1]) == pytest.approx(102**2 / 10002)


def test_one_cluster_says_nothing_of_others() -> None:
    assert cluster_mean([1], [4]) == ClusterMean(0.25, reason="only one cluster: no spread to judge by")


@pytest.mark.parametrize("times", [0.0, 1.0, 0.7])
def test_nor_do_clusters_that_are_all_alike(times: float) -> None:
    sizes = np.array([2, 3, 41])
    found = cluster_mean(times * sizes, sizes, "idiom")
    assert found == ClusterMean(
        pytest.approx(times), reason="all 3 idioms have the same value: no spread to judge by"
    )


@pytest.mark.parametrize("sizes", [[5] * 30, [400, 100, 60, 50, 40, 30] + [5] * 60])
def test_it_covers_a_difference(sizes: list[int]) -> None:
    """Of two selections that reach equally much, where every occurrence of an idiom is like the others."""
    draw, size = np.random.default_rng(3), np.array(sizes)
    covered, alarms = 0, 0
    for _ in range(1500):
        found = cluster_mean(size * draw.normal(0.0, 0.3, len(size)), size)
        assert found.low is not None
        assert found.high is not None
        assert found.p_value is not None
        covered += found.low <= 0.0 <= found.high
        alarms += found.p_value < 0.05
    assert 0.93 <= covered / 1500 <= 0.985
    assert alarms == 1500 - covered


def test_without_clusters_there_is_no_mean() -> None:
    for totals, sizes in (([], []), ([1], [0]), ([1, 2], [1])):
        with pytest.raises(ValueError, match="needs clusters"):
            cluster_mean(totals, sizes)
