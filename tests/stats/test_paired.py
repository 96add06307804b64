"""Paired comparisons against scipy, enumeration and slow counts; Holm's correction."""

import itertools
import math
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from creamtea.stats.estimate import mean_estimate, without_rounding
from creamtea.stats.paired import compare_paired, holm, sign_flip, signed_rank

Array = NDArray[np.float64]
STEPS = st.integers(0, 25)
PAIRS = st.lists(st.tuples(STEPS, STEPS), min_size=2, max_size=40)


def contrastive(steps: NDArray[Any]) -> Array:
    """Steps of the scale 1–6 as the floats that item means are: many are not exact."""
    return 1 + 0.2 * steps


def drawn(n: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    level = rng.integers(6, 20, n)
    return contrastive(level + rng.integers(-4, 5, n)), contrastive(level + rng.integers(-3, 6, n))


@pytest.mark.parametrize("n", [2, 5, 13, 14, 30, 200])
def test_equals_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    baseline, system = rng.normal(3, 1, n), rng.normal(3.2, 1, n)
    found = compare_paired(baseline, system)
    expected = stats.ttest_rel(system, baseline)
    interval = expected.confidence_interval()
    assert found.t_test.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.t_test.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert (found.estimate.low, found.estimate.high) == pytest.approx(
        (interval.low, interval.high), rel=1e-12
    )
    assert found.estimate.value == pytest.approx((system - baseline).mean(), rel=1e-12)
    rank = stats.wilcoxon(system, baseline, zero_method="pratt")
    assert (found.signed_rank.p_value, found.signed_rank.statistic) == (rank.pvalue, rank.statistic)


@pytest.mark.parametrize("n", [6, 8, 14, 200])
def test_signed_rank_sees_ties_and_zeros_through_rounding(n: int) -> None:
    """3.4 − 3.2 and 2.4 − 2.2 are one difference: the p-value is that of whole steps."""
    steps = np.random.default_rng(n).integers(0, 26, (2, n)).astype(float)
    steps[1, : n // 4] = steps[0, : n // 4]
    found = compare_paired(contrastive(steps[0]), contrastive(steps[1])).signed_rank
    expected = stats.wilcoxon(steps[1] - steps[0], zero_method="pratt")
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.statistic == expected.statistic


def test_signed_rank_of_a_textbook() -> None:
    """Darwin's cross- against self-fertilised maize (eighths of an inch), scipy's own example."""
    differences = np.array([6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75], dtype=float)
    found = signed_rank(differences)
    assert found.statistic == 24
    assert found.p_value == pytest.approx(0.041259765625, rel=1e-12)  # exact: 1352 of 2^15


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_exact_sign_flip_looks_at_every_pattern(steps: list[int]) -> None:
    differences = np.array(steps, dtype=float)
    patterns = itertools.product([1, -1], repeat=len(steps))
    sums = [sum(s * d for s, d in zip(signs, steps, strict=True)) for signs in patterns]
    expected = np.mean([abs(total) >= abs(sum(steps)) for total in sums])
    found = sign_flip(differences * 0.2)
    if any(steps):
        assert found.p_value == pytest.approx(expected, abs=1e-15)
        above = np.mean([total >= sum(steps) for total in sums])
        assert sign_flip(differences * 0.2, one_sided=True).p_value == pytest.approx(above, abs=1e-15)
    else:
        assert found.p_value is None
        assert found.reason is not None


def test_exact_sign_flip_is_scipys_permutation_test() -> None:
    differences = np.random.default_rng(5).normal(0.4, 1, 12)
    expected = stats.permutation_test(
        (differences,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip(differences).p_value == pytest.approx(expected.pvalue, abs=1e-15)


def test_random_sign_flips_come_near_the_exact_value() -> None:
    differences = without_rounding(np.random.default_rng(3).normal(0.3, 1, 16), 3.0)
    exact = sign_flip(differences)
    more = np.concatenate([differences, [1e-9]])  # a 17th item that changes nothing but the method
    drawn_flips = sign_flip(more, flips=20_000)
    assert exact.p_value is not None
    assert drawn_flips.p_value == pytest.approx(exact.p_value, abs=0.01)
    assert drawn_flips == sign_flip(more, flips=20_000)
    assert sign_flip(more, flips=20_000, seed=1).p_value != drawn_flips.p_value
    clear = sign_flip(np.ones(40), flips=999)
    assert clear.p_value == 1 / 1000  # never 0
    for sign in (1, -1):  # a sum above 0, and one below
        exact, drawn_flips = (sign_flip(sign * values, one_sided=True) for values in (differences, more))
        assert drawn_flips.p_value == pytest.approx(exact.p_value, abs=0.01)
    assert sign_flip(-np.ones(40), one_sided=True).p_value == 1.0


@given(PAIRS, st.randoms())
def test_order_of_items_changes_nothing_and_swapping_turns_the_sign(
    pairs: list[tuple[int, int]], random: Random
) -> None:
    baseline, system = contrastive(np.array(pairs, dtype=float)).T
    order = np.array(random.sample(range(len(pairs)), len(pairs)))
    found = compare_paired(baseline, system, flips=200)
    moved = compare_paired(baseline[order], system[order], flips=200)
    turned = compare_paired(system, baseline, flips=200)
    for other, sign in ((moved, 1), (turned, -1)):
        assert other.estimate.value == pytest.approx(sign * found.estimate.value, abs=1e-12)  # type: ignore[operator]
        for name in ("t_test", "signed_rank"):
            ours, theirs = getattr(found, name), getattr(other, name)
            assert ours.reason == theirs.reason
            if ours.p_value is not None:
                assert theirs.p_value == pytest.approx(ours.p_value, rel=1e-6, abs=1e-12)
    assert turned.sign_flip.p_value == found.sign_flip.p_value
    if len(pairs) <= 16:  # every pattern, in whatever order
        assert moved.sign_flip.p_value == found.sign_flip.p_value


@given(PAIRS, st.lists(st.integers(0, 2), min_size=40, max_size=40))
def test_missing_cells_are_left_out(pairs: list[tuple[int, int]], holes: list[int]) -> None:
    baseline, system = contrastive(np.array(pairs, dtype=float)).T.copy()
    hole = np.array(holes[: len(pairs)])
    baseline[hole == 1], system[hole == 2] = np.nan, np.nan
    found = compare_paired(baseline, system, flips=100)
    kept = hole == 0
    alone = compare_paired(baseline[kept], system[kept], flips=100)
    assert found.items == int(kept.sum())
    assert found == alone


def test_nothing_one_and_equal_items_say_so() -> None:
    nothing = compare_paired([np.nan, 2.0], [1.0, np.nan])
    assert (nothing.items, nothing.estimate.value) == (0, None)
    assert {nothing.t_test.reason, nothing.signed_rank.reason, nothing.sign_flip.reason} == {"no items"}

    one = compare_paired([2.0], [3.0])
    assert (one.estimate.value, one.estimate.low) == (1.0, None)
    assert one.t_test.p_value is None
    assert one.t_test.reason == "only one item: no spread to judge by"
    assert one.sign_flip.p_value == 1.0  # both signs are as far from 0

    same = compare_paired([1.2, 3.4, 5.6], [1.2, 3.4, 5.6])
    assert (same.estimate.value, same.all_equal, same.estimate.high) == (0.0, True, None)
    assert same.signed_rank.reason == same.sign_flip.reason == "no difference on any of the 3 items"
    assert same.t_test.reason == "the same value on all 3 items: no spread to judge by"

    # 3.4 - 3.2, 2.4 - 2.2, …: rounding in the last digit is no spread (its t would be 1e15)
    shifted = compare_paired([3.2, 2.2, 1.2, 5.2], [3.4, 2.4, 1.4, 5.4])
    assert shifted.estimate.value == pytest.approx(0.2)
    assert (shifted.all_equal, shifted.t_test.p_value, shifted.estimate.low) == (True, None, None)
    assert shifted.sign_flip.p_value == 2 / 16


def test_weights() -> None:
    baseline, system = drawn(30, 1)
    plain, weighted = compare_paired(baseline, system), compare_paired(baseline, system, np.full(30, 7.0))
    assert (plain.estimate, plain.t_test) == (weighted.estimate, weighted.t_test)
    assert plain.signed_rank == weighted.signed_rank
    baseline, system = drawn(12, 2)
    weights = np.array([0.0, *[1.0] * 8, 3.0, 3.0, 2.0])
    found = compare_paired(baseline, system, weights)
    d, w = (system - baseline)[1:], weights[1:]
    assert found.estimate.value == pytest.approx((w * d).sum() / w.sum(), rel=1e-12)
    assert found.items == 11
    assert found.signed_rank.p_value is None
    assert "weigh" in str(found.signed_rank.reason)
    signs = 1 - 2.0 * np.array(list(itertools.product([0, 1], repeat=11)))
    expected = np.mean(np.abs(signs @ (w * d)) >= abs((w * d).sum()) - 1e-9)
    assert found.sign_flip.p_value == pytest.approx(expected, abs=1e-15)
    assert found.estimate.df < 10  # fewer than of 11 items that weigh alike


def test_weighted_error_is_unbiased_where_items_spread_alike() -> None:
    """The mean of se² over samples is the variance of the weighted mean, σ²Σw²/(Σw)²."""
    rng = np.random.default_rng(4)
    weights = rng.uniform(0.2, 3, 12)
    errors = [mean_estimate(row, weights).standard_error for row in rng.normal(0, 2, (3000, 12))]
    variance = 4 * (weights**2).sum() / weights.sum() ** 2
    assert np.mean(np.square(np.array(errors, dtype=float))) == pytest.approx(variance, rel=0.03)


@given(st.lists(st.integers(-12, 12), min_size=1, max_size=30), st.sampled_from([1.0, 2.0, 3.0]))
def test_differences_without_rounding_are_those_of_whole_steps(steps: list[int], start: float) -> None:
    """Equal ones become one value and zeros 0, but none moves further than rounding had."""
    whole = np.array(steps)
    level = start + 0.2 * np.arange(len(steps))
    differences = (level + 0.2 * whole) - level
    merged = without_rounding(differences, 12.0)
    assert merged == pytest.approx(differences, abs=1e-13)
    assert len(np.unique(np.abs(merged))) == len(np.unique(np.abs(whole)))
    assert list(np.sign(merged)) == list(np.sign(whole))
    holes = without_rounding(np.array([[np.nan, 0.2], [1e-15, np.nan]]), 1.0)
    assert np.array_equal(holes, [[np.nan, 0.2], [0.0, np.nan]], equal_nan=True)


def test_one_item_outweighing_all_others_gives_no_interval() -> None:
    found = compare_paired([1.0, 2.0, 3.0], [2.0, 2.0, 5.0], [1e-9, 1e-9, 1.0])
    assert found.estimate.value == pytest.approx(2.0)
    assert "weighs more than all others together" in str(found.t_test.reason)


@pytest.mark.parametrize(
    "arguments",
    [
        ([1.0, 2.0], [1.0]),
        ([1.0, np.inf], [1.0, 2.0]),
        ([1.0, 2.0], [1.0, 2.0], [1.0]),
        ([1.0, 2.0], [1.0, 2.0], [1.0, -1.0]),
        ([1.0, 2.0], [1.0, 2.0], [1.0, np.nan]),
    ],
)
def test_what_cannot_be_aligned_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):
        compare_paired(*arguments)


p_values = st.lists(st.floats(0, 1), max_size=8)


def test_holm_on_a_worked_example_and_without_p_values() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([None, 0.04, None, 0.03]) == [None, 0.06, None, 0.06]
    assert holm([]) == []
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="not a p-value"):
            holm([0.5, wrong])


@given(p_values)
def test_holm_rejects_what_the_step_down_procedure_rejects(ps: list[float]) -> None:
    rejected = set()
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        if not ps[index] * (len(ps) - rank) < 0.05:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(holm(ps)) if p is not None and p < 0.05} == rejected


@given(p_values)
def test_holm_lies_between_the_p_value_and_bonferronis(ps: list[float]) -> None:
    for p, adjusted in zip(ps, holm(ps), strict=True):
        assert p <= adjusted <= min(1.0, p * len(ps)) or math.isclose(adjusted, p * len(ps))
