"""One verdict a pair: each of the four, what decides it, and how many items would."""

import numpy as np
import pytest
from numpy.typing import NDArray

from creamtea.stats.paired import CrossedComparison, PairedComparison, compare_paired, crossed_comparisons
from creamtea.stats.power import items_for_equivalence, items_needed
from creamtea.stats.verdict import Outcome, judge


def comparison(mean: float, deviation: float, items: int) -> PairedComparison:
    """Differences of exactly this mean and sample deviation."""
    draws: NDArray[np.float64] = np.random.default_rng(items).normal(0, 1, items)
    draws = (draws - draws.mean()) / draws.std(ddof=1)
    return compare_paired(np.full(items, 3.0), 3.0 + mean + deviation * draws, flips=100)


def test_better_and_worse_and_real_but_smaller_than_delta() -> None:
    better, worse = judge(comparison(0.3, 0.8, 100), 0.2), judge(comparison(-0.3, 0.8, 100), 0.2)
    assert (better.outcome, worse.outcome) == (Outcome.BETTER, Outcome.WORSE)
    assert (better.within_delta, better.items_needed) == (False, None)
    small = judge(comparison(0.1, 0.5, 1000), 0.2)
    assert (small.outcome, small.within_delta) == (Outcome.BETTER, True)
    with pytest.raises(ValueError, match="above 0"):
        judge(comparison(0.1, 1.0, 10), 0.0)


def test_no_difference_larger_than_delta_needs_the_ninety_per_cent_interval_inside() -> None:
    """With sd 1 and 100 items the 90 % half-width is 0.166, the 95 % one 0.198."""
    assert judge(comparison(0.02, 1.0, 100), 0.19).outcome is Outcome.NO_LARGER_DIFFERENCE
    assert judge(comparison(0.02, 1.0, 100), 0.18).outcome is Outcome.UNDECIDED
    assert judge(comparison(-0.02, 1.0, 100), 0.18).outcome is Outcome.UNDECIDED


def test_undecided_says_how_many_items_would_decide() -> None:
    large, small = judge(comparison(0.15, 1.0, 100), 0.2), judge(comparison(0.01, 1.0, 100), 0.1)
    assert large.outcome is small.outcome is Outcome.UNDECIDED
    assert large.items_needed == items_needed(0.15, 1.0) == 351
    assert small.items_needed == items_for_equivalence(0.01, 0.1, 1.0)
    assert small.items_needed > 100
    of_three = judge(comparison(0.15, 1.0, 100), 0.2, comparisons=3)
    assert of_three.items_needed == items_needed(0.15, 1.0, alpha=0.05 / 3)


def test_items_are_planned_in_documents_where_these_are_tested() -> None:
    """Four documents of 25 items: fewer items than were rated cannot be enough."""
    document = np.repeat(np.arange(4), 25)
    gains = 0.266 + np.array([-0.17, -0.06, 0.06, 0.17])[document]
    found = compare_paired(np.full(100, 3.0), 3.0 + gains, clusters=document)
    error = found.estimate.standard_error
    assert error is not None
    verdict = judge(found, 0.2, p_value=0.06)
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.items_needed == 25 * (items_needed(0.266, error * 2) or 0)


def test_a_corrected_p_value_decides() -> None:
    found = comparison(0.2, 0.9, 100)
    assert found.t_test.p_value < 0.05
    assert judge(found, 0.1).outcome is Outcome.BETTER
    corrected = judge(found, 0.1, p_value=0.09, comparisons=3)
    assert corrected.outcome is Outcome.UNDECIDED
    assert corrected.items_needed > 100


def test_equal_nothing_and_one() -> None:
    nothing = judge(compare_paired([], []), 0.1)
    assert (nothing.outcome, nothing.reason, nothing.items_needed) == (Outcome.UNDECIDED, "no items", None)
    one = judge(compare_paired([1.0], [1.0]), 0.1)
    assert (one.outcome, one.reason) == (Outcome.UNDECIDED, "only one item: no spread to judge by")
    same = [1.2, 3.4, 2.2, 5.0, 4.4]
    assert judge(compare_paired(same, same), 0.1).outcome is Outcome.NO_LARGER_DIFFERENCE
    assert judge(compare_paired(same[:4], same[:4]), 0.1).outcome is Outcome.UNDECIDED
    # always one step better: five items could be chance (2/32), six cannot (2/64)
    base = np.array([1.2, 3.4, 2.2, 5.0, 4.4, 3.0])
    assert judge(compare_paired(base[:5], base[:5] + 0.2), 0.1).outcome is Outcome.UNDECIDED
    assert judge(compare_paired(base, base + 0.2), 0.1).outcome is Outcome.BETTER


def test_equal_documents_are_counted_not_their_segments() -> None:
    same, delta = np.full(12, 3.0), 1.0
    of_two, of_six = np.arange(12) % 2, np.arange(12) % 6
    assert judge(compare_paired(same, same, clusters=of_two), delta).outcome is Outcome.UNDECIDED
    assert judge(compare_paired(same, same, clusters=of_six), delta).outcome is Outcome.NO_LARGER_DIFFERENCE


# ---------------------------------------------------------------- several raters


def rated(
    gains: list[float], items: int = 200, noise: float = 0.3
) -> tuple[PairedComparison, CrossedComparison]:
    """Every rater sees a gain of their own on each item."""
    draw = np.random.default_rng(len(gains))
    item, rater = (grid.ravel() for grid in np.indices((items, len(gains))))
    baseline = draw.normal(3, 1, items)[item]
    system = baseline + np.array(gains)[rater] + draw.normal(0, noise, len(item))
    base, ours = (np.bincount(item, weights=scores) / len(gains) for scores in (baseline, system))
    scores = np.stack([baseline, system], axis=1)
    return compare_paired(base, ours, flips=100), crossed_comparisons(item, rater, scores, [(0, 1)])[0]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_only_some_raters_see_is_undecided(sign: int) -> None:
    paired, crossed = rated([sign * 1.2, 0.0, 0.0, 0.0])
    alone, both = judge(paired, 0.1), judge(paired, 0.1, crossed=crossed)
    assert alone.outcome is (Outcome.BETTER if sign > 0 else Outcome.WORSE)
    assert (both.outcome, both.for_these_raters) == (Outcome.UNDECIDED, alone.outcome)
    assert both.items_needed is None  # more items do not tell more of raters
    agreed, crossed = rated([sign * 0.3] * 4)
    assert judge(agreed, 0.1, crossed=crossed).outcome is alone.outcome


def test_no_larger_difference_holds_for_other_raters_too() -> None:
    """Raters who see opposite differences cancel each other out on every item."""
    paired, crossed = rated([1.0, -1.0, 1.0, -1.0])
    alone, both = judge(paired, 0.2), judge(paired, 0.2, crossed=crossed)
    assert (alone.outcome, alone.within_delta) == (Outcome.NO_LARGER_DIFFERENCE, True)
    assert (both.outcome, both.within_delta) == (Outcome.UNDECIDED, False)
    assert both.for_these_raters is Outcome.NO_LARGER_DIFFERENCE
    alike, crossed = rated([0.0] * 4)
    assert judge(alike, 0.2, crossed=crossed).outcome is Outcome.NO_LARGER_DIFFERENCE


def test_the_ninety_per_cent_interval_over_raters_decides() -> None:
    paired, crossed = rated([0.05, -0.05, 0.1, -0.1])
    low, high = crossed.difference.low_90, crossed.difference.high_90
    assert crossed.difference.low < low < high < crossed.difference.high  # type: ignore[operator]
    widest = max(-low, high)
    outcomes = [judge(paired, widest + step, crossed=crossed).outcome for step in (0.001, -0.001)]
    assert outcomes == [Outcome.NO_LARGER_DIFFERENCE, Outcome.UNDECIDED]


def test_one_rater_speaks_for_no_other_and_two_seldom_do() -> None:
    for gains in ([0.5], [0.3, 0.5]):
        paired, crossed = rated(gains)
        assert crossed.raters == len(gains)
        verdict = judge(paired, 0.1, crossed=crossed)
        assert (verdict.outcome, verdict.for_these_raters) == (Outcome.UNDECIDED, Outcome.BETTER)
        assert verdict.items_needed is None
        assert judge(paired, 0.1).outcome is Outcome.BETTER
    paired, crossed = rated([0.01])
    open_for_all = judge(paired, 0.02, crossed=crossed)
    assert judge(paired, 0.02).items_needed is not None
    assert (open_for_all.items_needed, open_for_all.reason) == (None, crossed.difference.reason)
    paired, crossed = rated([0.5, 0.5])  # unless they agree closely
    assert judge(paired, 0.1, crossed=crossed).outcome is Outcome.BETTER


def test_no_spread_takes_the_paired_verdict() -> None:
    same = np.array([1.2, 3.4, 2.2, 5.0, 4.4, 3.0])
    scores = np.stack([same, same], axis=1)
    drawn = crossed_comparisons([0, 1, 2, 3, 4, 5], [0, 1] * 3, scores, [(0, 1)])[0]
    assert (drawn.difference.low, drawn.difference.standard_error) == (None, 0.0)
    found = judge(compare_paired(same, same), 0.1, crossed=drawn)
    assert found.outcome is Outcome.NO_LARGER_DIFFERENCE


def test_the_corrected_p_value_over_raters_decides() -> None:
    paired, crossed = rated([0.3] * 4)
    held = judge(paired, 0.1, crossed=crossed, crossed_p=0.06)
    assert (held.outcome, held.for_these_raters) == (Outcome.UNDECIDED, Outcome.BETTER)
    assert judge(paired, 0.1, crossed=crossed, crossed_p=0.04).outcome is Outcome.BETTER


def test_without_an_interval_over_raters_nothing_is_said_of_others() -> None:
    """Two raters who see opposite things on alternate items, by as much."""
    item, rater = (grid.ravel() for grid in np.indices((40, 2)))
    gain = 0.5 + np.where((item + rater) % 2 == 0, 0.25, -0.25)
    scores = np.stack([np.full(80, 3.0), 3.0 + gain], axis=1)
    crossed = crossed_comparisons(item, rater, scores, [(0, 1)])[0]
    assert (crossed.difference.low, crossed.difference.standard_error) == (None, None)
    paired = compare_paired(np.full(40, 3.0), np.full(40, 3.5), flips=100)
    verdict = judge(paired, 0.1, crossed=crossed)
    assert (verdict.outcome, verdict.for_these_raters) == (Outcome.UNDECIDED, Outcome.BETTER)
