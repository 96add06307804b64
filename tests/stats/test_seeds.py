"""The interval of a difference over segments and seeds: its limits by scipy, and how often it is right."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from creamtea.stats.estimate import (
    Bounds,
    Spread,
    one_against_several,
    p_with_seeds,
    spread_of_difference,
    spread_of_mean,
    together,
    widened,
)
from creamtea.stats.paired import holm

Scores = dict[str, float]
RUNS = 500  # of each simulation: the error of a share near 5 % is 1 %


def difference_with_seeds(
    ours: Scores, theirs: Scores, difference: float, low: float, high: float
) -> Bounds | None:
    spread = spread_of_difference(ours, theirs)
    return spread and widened(difference, low, high, spread)


def scores(name: str, *values: float) -> Scores:
    return {f"{name}{seed}": value for seed, value in enumerate(values)}


def two_against_more(ours: list[float], theirs: list[float]) -> bool:
    return min(len(ours), len(theirs)) == 2 < max(len(ours), len(theirs))


several = st.lists(st.floats(0, 100), min_size=2, max_size=6)


@given(several, several)
def test_where_segments_add_nothing_it_is_welchs(ours: list[float], theirs: list[float]) -> None:
    assume(np.ptp(ours) > 1e-3 and np.ptp(theirs) > 1e-3 and not two_against_more(ours, theirs))
    delta = np.mean(ours) - np.mean(theirs)
    found = difference_with_seeds(scores("a", *ours), scores("b", *theirs), delta, delta, delta)
    test = scipy.stats.ttest_ind(ours, theirs, equal_var=False)
    assert found == pytest.approx(tuple(test.confidence_interval(0.95)), rel=1e-6, abs=1e-6)


@given(several)
def test_of_the_same_models_it_is_the_paired_t_interval(differences: list[float]) -> None:
    assume(np.ptp(differences) > 1e-3)
    other = scores("a", *np.linspace(10, 60, len(differences)))
    ours = {model: other[model] + gain for (model, gain) in zip(other, differences, strict=True)}
    mean = float(np.mean(differences))
    found = difference_with_seeds(ours, other, mean, mean, mean)
    interval = scipy.stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert found == pytest.approx(tuple(interval), rel=1e-6, abs=1e-6)


def test_where_seeds_add_nothing_it_is_that_over_segments() -> None:
    found = difference_with_seeds(scores("a", 31, 31), scores("b", 30, 30), 1.0, 0.2, 1.8)
    assert found == pytest.approx((0.2, 1.8))


def test_the_parts_are_added_by_hand() -> None:
    found = difference_with_seeds(scores("a", 30, 32), scores("b", 20, 21), 10.5, 9.0, 12.5)
    seeds = 2 / 2 + 0.5 / 2  # variances 2 and 0.5 of two seeds each
    half = scipy.stats.t.ppf(0.975, seeds**2 / (1**2 + 0.25**2)) * seeds**0.5
    assert found == pytest.approx((10.5 - (1.5**2 + half**2) ** 0.5, 10.5 + (2**2 + half**2) ** 0.5))


def test_models_that_only_one_has_are_not_dropped() -> None:
    """Paired with those in common alone the interval would be that over segments."""
    ours, theirs = [32, 37], [30, 35, 40, 25, 32]
    found = difference_with_seeds(scores("a", *ours), scores("a", *theirs), 2.1, 2.0, 2.2)
    alone = difference_with_seeds(scores("a", *ours), scores("b", *theirs), 2.1, 2.0, 2.2)
    assert found == alone
    assert found[0] < -5


def test_a_value_has_the_t_interval_of_its_seeds() -> None:
    low, high = widened(30.0, 29.0, 32.0, spread_of_mean(0.5, 3))
    half = 4.302653 * 0.5 / 3**0.5
    assert (low, high) == pytest.approx((30 - (1 + half**2) ** 0.5, 30 + (4 + half**2) ** 0.5))


def test_of_two_models_nothing_is_known_of_others() -> None:
    assert difference_with_seeds(scores("a", 30), scores("b", 31), 1, 0, 2) is None
    assert difference_with_seeds(scores("a", 30), scores("a", 31), 1, 0, 2) is None
    assert difference_with_seeds({}, scores("a", 31), 1, 0, 2) is None


@pytest.mark.parametrize("others", [2, 3, 5])
def test_of_one_model_against_several_nothing_is_known(others: int) -> None:
    """Where the single one's recipe varies five times as much, intervals by the others' spread would give
    false alarms in 8 to 55 % of comparisons."""
    single, several = scores("a", 30), scores("b", *np.linspace(30, 30.4, others))
    for pair in ((single, several), (several, single)):
        assert spread_of_difference(*pair) is None
        assert one_against_several(*pair)
    assert not one_against_several(several, scores("c", 30, 31))
    assert not one_against_several(single, scores("b", 31))
    assert not one_against_several(several, {})  # outputs that no seed changes
    assert not one_against_several(single, {})
    assert not one_against_several({}, {})


@pytest.mark.slow
@pytest.mark.parametrize("more", [3, 5, 10])
def test_of_two_seeds_against_more_t_has_one_degree_of_freedom(more: int) -> None:
    """Two that vary five times as much: Welch's t would give a false alarm in 8.6 to 12 % of comparisons."""
    rng, alarms = np.random.default_rng(3), 0
    pairs = [(rng.normal(0, 1, 2), rng.normal(0, 0.2, more)) for _ in range(2 * RUNS)]
    for ours, theirs in pairs:
        spread = spread_of_difference(scores("a", *ours), scores("b", *theirs))
        assert spread.freedom == 1
        alarms += abs(ours.mean() - theirs.mean()) > spread.half
    welch = scipy.stats.ttest_ind(*map(np.array, zip(*pairs, strict=True)), axis=1, equal_var=False).pvalue
    assert alarms / len(pairs) <= 0.065
    assert np.mean(welch < 0.05) > 0.075


def test_of_outputs_that_no_seed_changes_only_the_others_seeds_matter() -> None:
    found = difference_with_seeds(scores("a", 30, 32), {}, 1.0, 1.0, 1.0)
    assert found == pytest.approx(tuple(scipy.stats.t.interval(0.95, 1, 1.0, 1.0)))


@given(several, several)
def test_where_segments_add_nothing_p_is_welchs(ours: list[float], theirs: list[float]) -> None:
    assume(np.ptp(ours) > 1e-3 and np.ptp(theirs) > 1e-3 and not two_against_more(ours, theirs))
    delta = float(np.mean(ours) - np.mean(theirs))
    spread = spread_of_difference(scores("a", *ours), scores("b", *theirs))
    assert spread is not None
    test = scipy.stats.ttest_ind(ours, theirs, equal_var=False)
    assert p_with_seeds(delta, delta, delta, spread) == pytest.approx(test.pvalue, rel=1e-3, abs=1e-6)


def test_where_seeds_add_nothing_p_is_of_a_normal_error() -> None:
    assert p_with_seeds(1.0, 0.2, 1.7, Spread(0.0, 2)) == pytest.approx(
        2 * scipy.stats.norm.sf(1.0 / (0.8 / 1.959964)), rel=1e-4
    )


@given(st.floats(-3, 3), st.floats(0, 2), st.floats(0, 2), st.floats(0, 2), st.sampled_from([1.0, 1.7, 4.0]))
def test_p_is_below_5_percent_where_the_interval_excludes_0(
    value: float, below: float, above: float, square: float, freedom: float
) -> None:
    spread = Spread(square, freedom)
    low, high = widened(value, value - below, value + above, spread)
    p = p_with_seeds(value, value - below, value + above, spread)
    assume(min(abs(low), abs(high)) > 1e-3)
    assert (p < 0.05) == (low > 0 or high < 0)
    assert p == p_with_seeds(-value, -value - above, -value + below, spread)


@pytest.mark.slow
@pytest.mark.parametrize("comparisons", [1, 8])
def test_holms_correction_keeps_false_alarms_rare_where_seeds_differ_most(comparisons: int) -> None:
    """All recipes are equal; without the correction 8 comparisons raise an alarm in 13 % of the studies."""
    rng, seeds, segments = np.random.default_rng(5), 3, 0.1
    alarms = 0
    for _ in range(RUNS):
        base = rng.normal(30, 1, seeds)
        p_values = []
        for _ in range(comparisons):
            own = rng.normal(30, 1, seeds)
            delta = float(own.mean() - base.mean()) + rng.normal(0, segments)
            spread = spread_of_difference(scores("a", *own), scores("b", *base))
            assert spread is not None
            p_values.append(p_with_seeds(delta, delta - 1.96 * segments, delta + 1.96 * segments, spread))
        alarms += min(p or 0.0 for p in holm(p_values)) < 0.05
    assert alarms / RUNS <= 0.06


@given(st.lists(st.tuples(st.floats(0.1, 9), st.integers(1, 8)), min_size=1, max_size=5))
def test_spreads_together_are_satterthwaites(parts: list[tuple[float, int]]) -> None:
    """Satterthwaite 1946, "An approximate distribution of estimates of variance components", equation 17."""
    found = together([Spread(square, freedom) for square, freedom in parts])
    squares, freedoms = np.array(parts, dtype=float).T
    assert found.square == pytest.approx(squares.sum())
    assert found.freedom == pytest.approx(squares.sum() ** 2 / (squares**2 / freedoms).sum())


def test_no_spread_together_is_none() -> None:
    assert together([Spread(0.0, 2), Spread(0.0, 4)]).half == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3])
def test_a_mean_over_studies_covers_the_truth(seeds: int) -> None:
    """Of ten studies whose seeds differ more and less. The sum of their t intervals would be too wide."""
    rng, studies, segments = np.random.default_rng(seeds), 10, 0.3
    deviations = np.linspace(0.5, 3.0, studies)
    covered = covered_by_sum = 0
    for _ in range(RUNS):
        shares, difference = [], 0.0
        for deviation in deviations:
            ours, theirs = rng.normal(1, deviation, seeds), rng.normal(0, deviation, seeds)
            own = spread_of_difference(scores("a", *ours), scores("b", *theirs))
            shares.append(Spread(own.square / studies**2, own.freedom))
            difference += (ours.mean() - theirs.mean()) / studies
        difference += rng.normal(0, segments)
        low, high = difference - 1.96 * segments, difference + 1.96 * segments
        found = widened(difference, low, high, together(shares))
        covered += found[0] <= 1 <= found[1]
        half = np.hypot(1.96 * segments, np.linalg.norm([share.half for share in shares]))
        covered_by_sum += abs(difference - 1) <= half
    assert 0.935 <= covered / RUNS <= 0.98
    assert covered_by_sum / RUNS > 0.985


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 5])
@pytest.mark.parametrize("spreads", [(1.0, 1.0), (2.0, 0.1), None], ids=["alike", "one-varies", "paired"])
def test_it_covers_the_truth_where_that_over_segments_does_not(
    seeds: int, spreads: tuple[float, float] | None
) -> None:
    """Scores of segments have a part of their own, one of the model, and one of both. Paired: the models are
    the same, and what one system does otherwise varies with them by 0.7."""
    rng, segments, gain = np.random.default_rng(seeds), 200, 1.0
    without = covered = 0
    for _ in range(RUNS):
        if spreads is None:
            base = rng.normal(30, 2, seeds)
            models = [base + gain + rng.normal(0, 0.7, seeds), base]
        else:
            models = [rng.normal(30 + gain, spreads[0], seeds), rng.normal(30, spreads[1], seeds)]
        text = rng.normal(0, 15, segments)
        outputs = [own[:, None] + text + rng.normal(0, 5, (seeds, segments)) for own in models]
        pairs = outputs[0].mean(axis=0) - outputs[1].mean(axis=0)
        half = 1.96 * pairs.std(ddof=1) / segments**0.5
        low, high = pairs.mean() - half, pairs.mean() + half
        ours, theirs = (
            scores(name, *own.mean(axis=1))
            for name, own in zip("aa" if spreads is None else "ab", outputs, strict=True)
        )
        found = difference_with_seeds(ours, theirs, pairs.mean(), low, high)
        covered += found[0] <= gain <= found[1]
        without += low <= gain <= high
    assert covered / RUNS >= 0.935
    assert without / RUNS < 0.8
