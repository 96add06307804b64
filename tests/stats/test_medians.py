"""Medians with their intervals, against scipy and by resampling whole groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from creamtea.stats.resampling import (
    MIN_VALUES,
    MedianInterval,
    median_interval,
    percentile_interval,
    pooled_median,
)


def test_the_interval_is_the_percentile_bootstraps() -> None:
    values = np.random.default_rng(2).gamma(2.0, size=40)
    found = median_interval(values, resamples=20_000)
    oracle = stats.bootstrap(
        (values,), np.median, n_resamples=20_000, method="percentile", rng=np.random.default_rng(3)
    ).confidence_interval
    assert found.value == np.median(values)
    assert found.low == pytest.approx(oracle.low, rel=0.03)
    assert found.high == pytest.approx(oracle.high, rel=0.03)


def test_the_interval_covers_the_true_median_about_95_times_in_100() -> None:
    draw = np.random.default_rng(4)
    truth = stats.lognorm(0.5).median()
    samples = draw.lognormal(0.0, 0.5, size=(300, 30))
    intervals = [median_interval(sample, resamples=400) for sample in samples]
    covered = np.mean([interval.low <= truth <= interval.high for interval in intervals])
    assert 0.90 <= covered <= 0.99


@pytest.mark.parametrize("repetitions", [1, 2, 3, 4])
def test_of_fewer_than_five_there_is_no_interval(repetitions: int) -> None:
    """That of two covers 52 %, of three 73 %: no resample reaches beyond them."""
    values = np.arange(repetitions, dtype=float)
    assert median_interval(values) == MedianInterval(float(np.median(values)))
    assert pooled_median([np.array([value]) for value in values]).low is None
    assert median_interval(np.arange(5.0), 400).low is not None


def test_no_repetitions_are_refused() -> None:
    with pytest.raises(ValueError, match="no repetitions"):
        median_interval(np.array([]))


def lower_median(values: np.ndarray) -> float:
    return float(np.sort(values)[(len(values) - 1) // 2])


@given(
    groups=st.lists(
        st.lists(st.integers(1, 9), min_size=1, max_size=6).map(np.array), min_size=1, max_size=7
    ),
    seed=st.integers(0, 50),
)
def test_against_resampling_the_groups_themselves(groups: list[np.ndarray], seed: int) -> None:
    found = pooled_median(groups, samples=40, seed=seed)
    rng = np.random.default_rng(seed)
    medians = [
        lower_median(np.concatenate([groups[n] for n in rng.choice(len(groups), size=len(groups))]))
        for _ in range(40)
    ]
    assert found.value == lower_median(np.concatenate(groups))
    known = len(groups) >= MIN_VALUES
    assert (found.low, found.high) == (percentile_interval(np.array(medians)) if known else (None, None))


def test_no_values_have_no_median() -> None:
    with pytest.raises(ValueError, match="no values"):
        pooled_median([])
