"""The interval of a share whose cases come in clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.stats.estimate import clustered_interval, wilson_interval


def test_single_cases_have_nearly_wilsons_interval() -> None:
    counts = [1] * 60 + [0] * 140
    assert clustered_interval(counts, [1] * 200) == pytest.approx(wilson_interval(60, 200), abs=0.002)


def test_cases_that_only_repeat_their_cluster_count_once() -> None:
    counts = [1] * 30 + [0] * 70
    single = clustered_interval(counts, [1] * 100)
    assert clustered_interval([5 * count for count in counts], [5] * 100) == pytest.approx(single)


def test_shares_of_0_and_1_have_room() -> None:
    low, high = clustered_interval([0] * 20, [7] * 20)
    assert low == 0.0
    assert high == pytest.approx(wilson_interval(0, 20)[1], abs=0.03)
    assert clustered_interval([7] * 20, [7] * 20) == pytest.approx((1 - high, 1.0))
    assert clustered_interval([3], [4]) == (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "together"), [(0.1, 0.5), (0.4, 0.0), (0.4, 0.7), (0.95, 0.3)])
def test_it_covers(share: float, together: float) -> None:
    """Clusters of 1 to 6 cases, each a copy of its cluster's with the probability `together`."""
    draw = np.random.default_rng(7)
    covered = 0
    for _ in range(1500):
        sizes = draw.integers(1, 7, 40)
        own = draw.random(40) < share
        counts = [
            int(np.where(draw.random(size) < together, first, draw.random(size) < share).sum())
            for size, first in zip(sizes, own, strict=True)
        ]
        low, high = clustered_interval(counts, sizes.tolist())
        covered += low <= share <= high
    assert 0.925 <= covered / 1500 <= 0.99


@pytest.mark.parametrize("clusters", [10, 30, 68])
@pytest.mark.parametrize("share", [0.6, 0.9, 0.98])
def test_it_covers_where_one_cluster_is_a_third(clusters: int, share: float) -> None:
    """Beta-binomial clusters with an intraclass correlation of 0.4, as idioms of a test set may have."""
    draw, together = np.random.default_rng(5), 0.4
    covered = 0
    for _ in range(300):
        sizes = draw.integers(2, 5, clusters) * draw.integers(1, 8, clusters)
        sizes[0] = sizes[1:].sum() // 2
        rates = draw.beta(share * (1 / together - 1), (1 - share) * (1 / together - 1), clusters)
        low, high = clustered_interval(draw.binomial(sizes, rates), sizes)
        covered += low <= share <= high
    assert covered / 300 >= 0.93  # 0.72 to 0.96 by the variance alone


def test_clusters_of_equal_size_are_not_capped() -> None:
    """Four clusters of a hundred cases that are alike tell more than twenty cases."""
    low, high = clustered_interval([49, 50, 51, 50], [100] * 4)
    assert high - low < 0.2


@pytest.mark.parametrize("sizes", [[130, 1], [300, 1, 1], [900, 1, 1, 1, 1], [1800, *[1] * 10], [10**9, 1]])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_of_one_cluster_among_crumbs_nothing_is_known(sizes: list[int], share: float) -> None:
    """Their effective number is 1.01 or less, of which Student's quantile has more than a hundred digits."""
    counts = [share * size for size in sizes]
    assert clustered_interval(counts, sizes) == pytest.approx((0.0, 1.0), abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_it_holds_the_share(pairs: list[tuple[int, int]]) -> None:
    counts, sizes = [a for a, _ in pairs], [a + b + (a + b == 0) for a, b in pairs]
    low, high = clustered_interval(counts, sizes)
    assert 0.0 <= low <= sum(counts) / sum(sizes) + 1e-12
    assert sum(counts) / sum(sizes) - 1e-12 <= high <= 1.0


def test_what_is_no_share() -> None:
    for counts, sizes in (([], []), ([2], [1]), ([0], [0]), ([-1], [2])):
        with pytest.raises(ValueError, match="a share needs"):
            clustered_interval(counts, sizes)
