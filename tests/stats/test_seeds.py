"""The interval of a difference over segments and seeds: its limits by scipy, and how often it is right."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from creamtea.stats.seeds import interval_with_seeds

Scores = dict[str, float]


def scores(name: str, *values: float) -> Scores:
    return {f"{name}{seed}": value for seed, value in enumerate(values)}


several = st.lists(st.floats(0, 100), min_size=2, max_size=6)


@given(several, several)
def test_where_segments_add_nothing_it_is_welchs(ours: list[float], theirs: list[float]) -> None:
    if np.ptp(ours) < 1e-3 or np.ptp(theirs) < 1e-3:
        return
    delta = np.mean(ours) - np.mean(theirs)
    found = interval_with_seeds(scores("a", *ours), scores("b", *theirs), delta, delta, delta)
    test = scipy.stats.ttest_ind(ours, theirs, equal_var=False)
    assert found == pytest.approx(tuple(test.confidence_interval(0.95)), rel=1e-6, abs=1e-6)


@given(several)
def test_of_the_same_models_it_is_the_paired_t_interval(differences: list[float]) -> None:
    if np.ptp(differences) < 1e-3:
        return
    other = scores("a", *np.linspace(10, 60, len(differences)))
    ours = {model: other[model] + gain for (model, gain) in zip(other, differences, strict=True)}
    found = interval_with_seeds(ours, other, np.mean(differences), 0.0, 0.0)
    interval = scipy.stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert found == pytest.approx(tuple(interval), rel=1e-6, abs=1e-6)


def test_where_seeds_add_nothing_it_is_that_over_segments() -> None:
    found = interval_with_seeds(scores("a", 31, 31), scores("b", 30, 30), 1.0, 0.2, 1.8)
    assert found == pytest.approx((0.2, 1.8))


def test_the_parts_are_added_by_hand() -> None:
    found = interval_with_seeds(scores("a", 30, 32), scores("b", 20, 21), 10.5, 9.0, 12.0)
    segments = (3 / 3.919928) ** 2  # 0.5857
    seeds = 2 / 2 + 0.5 / 2  # variances 2 and 0.5 of two seeds each
    df = (segments + seeds) ** 2 / (1**2 + 0.25**2)
    half = scipy.stats.t.ppf(0.975, df) * (segments + seeds) ** 0.5
    assert found == pytest.approx((10.5 - half, 10.5 + half), rel=1e-5)


@pytest.mark.parametrize("other", [scores("b", 30), scores("a", 30)])
def test_one_model_has_no_spread(other: Scores) -> None:
    assert interval_with_seeds(scores("a", 30, 31), other, 0.5, 0, 1) is None
    assert interval_with_seeds(other, scores("a", 30, 31), 0.5, 0, 1) is None


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_it_covers_the_difference_of_two_recipes_where_that_over_segments_does_not(seeds: int) -> None:
    """Scores of segments have a part of their own, one of the model, and one of both; models spread about as
    much as a mean over segments does."""
    rng, runs, segments, gain = np.random.default_rng(seeds), 4000, 200, 1.0
    without = covered = 0
    for _ in range(runs):
        text = rng.normal(0, 15, segments)
        means, outputs = [], []
        for mean in (30.0 + gain, 30.0):
            models = rng.normal(mean, 1.0, seeds)
            output = models[:, None] + text + rng.normal(0, 10, (seeds, segments))
            means.append(dict(enumerate(output.mean(axis=1))))
            outputs.append(output.mean(axis=0))
        pairs = outputs[0] - outputs[1]
        half = 1.96 * pairs.std(ddof=1) / segments**0.5
        low, high = pairs.mean() - half, pairs.mean() + half
        ours, theirs = (
            {f"{name}{seed}": value for seed, value in own.items()}
            for name, own in zip("ab", means, strict=True)
        )
        found = interval_with_seeds(ours, theirs, pairs.mean(), low, high)
        assert found is not None
        covered += found[0] <= gain <= found[1]
        without += low <= gain <= high
    assert 0.94 <= covered / runs <= 0.985
    assert without / runs < 0.9
