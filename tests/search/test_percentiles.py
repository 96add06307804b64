from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from creamtea.stats.percentiles import median_interval, repetition_percentiles


@pytest.mark.parametrize("percent", [50, 90, 99])
def test_percentiles_are_taken_over_the_sentences_of_a_repetition(percent: float) -> None:
    seconds = np.random.default_rng(1).gamma(2.0, size=(30, 21))
    found = repetition_percentiles(seconds, percent)
    expected = [stats.scoreatpercentile(row, percent) for row in seconds]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


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


def test_no_repetitions_are_refused() -> None:
    with pytest.raises(ValueError, match="no repetitions"):
        median_interval(np.array([]))
