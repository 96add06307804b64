"""Comparisons with raters drawn too, against a slow count, mean squares, scipy and the paired comparison."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from creamtea.stats.estimate import baseline_ratio
from creamtea.stats.paired import CrossedComparison, CrossedEstimate, compare_paired, crossed_comparisons

Array = NDArray[np.float64]
Rows = list[tuple[int, int, float, float]]  # item, rater, baseline, system


def campaign(items: int, raters: int, each: int, seed: int) -> Rows:
    """`each` raters an item, every ninth score of a system missing."""
    random = Random(seed)
    rows = []
    for item in range(items):
        for rater in random.sample(range(raters), each):
            baseline, system = 1 + 0.2 * random.randint(0, 25), 1 + 0.2 * random.randint(5, 25)
            hole = random.randint(0, 8)
            rows.append((item, rater, np.nan if hole == 0 else baseline, np.nan if hole == 1 else system))
    return rows


def of_rows(rows: Rows, weights: Array | None = None) -> CrossedComparison:
    item, rater, *scores = np.array(rows).T
    return crossed_comparisons(item, rater, np.array(scores).T, [(0, 1)], weights)[0]


def of_table(baseline: Array, system: Array) -> CrossedComparison:
    """Of complete scores (items, raters)."""
    item, rater = (grid.ravel() for grid in np.indices(baseline.shape))
    return crossed_comparisons(item, rater, np.stack([baseline.ravel(), system.ravel()], axis=1), [(0, 1)])[0]


def bounds(found: CrossedEstimate) -> list[float]:
    values = [found.value, found.low, found.high, found.low_90, found.high_90]
    assert None not in values
    return [float(value) for value in values if value is not None]


# ---------------------------------------------------------------- against slower and older ways


def slow(rows: Rows, weight_of: dict[int, float], percent: bool) -> tuple[float, float, float]:
    """The value, its standard error and its critical value at 5 %, counting ratings one by one."""
    count = {
        (i, s): sum(1 for r in rows if r[0] == i and not np.isnan(r[s])) for i in weight_of for s in (2, 3)
    }
    items = [i for i in weight_of if count[i, 2] and count[i, 3]]
    total = sum(weight_of[i] for i in items)
    counts = {
        (i, r, s): weight_of[i] / count[i, s] / total
        for i, r, *x in rows
        for s in (2, 3)
        if i in items and not np.isnan(x[s - 2])
    }
    score = {(row[0], row[1], s): row[s] for row in rows for s in (2, 3)}
    mean = {s: sum(c * score[key] for key, c in counts.items() if key[2] == s) for s in (2, 3)}
    factor = {2: -mean[3] / mean[2], 3: 1.0} if percent else {2: -1.0, 3: 1.0}
    part: dict[tuple[int, int], float] = {}
    share: dict[tuple[int, int], float] = {}
    for (i, r, s), c in counts.items():
        unit = 100 / mean[2] if percent else 1.0
        part[i, r] = part.get((i, r), 0.0) + unit * factor[s] * c * (score[i, r, s] - mean[s])
        share[i, r] = share.get((i, r), 0.0) + c / 2

    def variance(of: int) -> tuple[float, float, Array]:
        labels = sorted({cell[of] for cell in part})
        e = np.array([sum(v for cell, v in part.items() if cell[of] == label) for label in labels])
        q = np.array([sum(v for cell, v in share.items() if cell[of] == label) for label in labels])
        centre = np.eye(len(q)) - np.outer(np.ones(len(q)), q)
        form = centre.T @ np.diag(q**2) @ centre
        x = e / q
        unbiased = (x @ form @ x) * (q**2).sum() / np.trace(form)
        return unbiased, np.trace(form) ** 2 / np.trace(form @ form), e

    v_items, df_items, by_item = variance(0)
    v_raters, df_raters, _ = variance(1)
    loads = [sum(v for cell, v in share.items() if cell[1] == r) for r in {cell[1] for cell in part}]
    pairs = (by_item**2).sum() - sum(v**2 for v in part.values())
    common = max(0.0, v_items * pairs / (by_item**2).sum() / (1 - sum(q**2 for q in loads)))
    whole = v_raters + common
    critical = (v_raters * stats.t.ppf(0.975, df_raters) + common * stats.t.ppf(0.975, df_items)) / whole
    return (100 * mean[3] / mean[2] if percent else mean[3] - mean[2]), math.sqrt(whole), critical


@pytest.mark.parametrize("seed", range(4))
def test_equals_counting_one_by_one(seed: int) -> None:
    rows = campaign(12, 4, 1 + seed % 4, seed)
    weights = {item: 1.0 + item % 3 for item in range(12)}
    found = of_rows(rows, np.array([weights[row[0]] for row in rows]))
    for estimate, percent in ((found.difference, False), (found.ratio, True)):
        value, error, critical = slow(rows, weights, percent)
        assert (estimate.value, estimate.standard_error) == pytest.approx((value, error), rel=1e-10)
        assert estimate.high == pytest.approx(value + critical * error, rel=1e-10)
        assert estimate.low == pytest.approx(value - critical * error, rel=1e-10)


def test_a_complete_design_has_the_mean_squares_of_hillis() -> None:
    rng = np.random.default_rng(5)
    n, raters = 30, 5
    baseline = rng.normal(3, 1, (n, raters))
    d = rng.normal(0.3, 0.6, (n, 1)) + rng.normal(0, 0.4, raters) + rng.normal(0, 0.5, (n, raters))
    found = of_table(baseline, baseline + d).difference
    of_items, of_raters, mean = d.mean(axis=1), d.mean(axis=0), d.mean()
    ms_raters = n * ((of_raters - mean) ** 2).sum() / (raters - 1)
    ms_items = raters * ((of_items - mean) ** 2).sum() / (n - 1)
    rest = d - of_items[:, None] - of_raters + mean
    ms_rest = (rest**2).sum() / ((n - 1) * (raters - 1))
    v_raters = ms_raters / (n * raters)
    common = (ms_items - ms_rest) / (n * raters) - v_raters / (n - 1)
    assert common > 0
    assert found.standard_error == pytest.approx(math.sqrt(v_raters + common), rel=1e-10)


def test_an_item_of_one_rater_is_an_item_within_a_rater() -> None:
    """Then raters are the only draws: scipy's t-test of their means."""
    rng = np.random.default_rng(2)
    item, rater = np.arange(60), np.arange(60) % 5
    baseline = rng.normal(3, 1, 60)
    system = baseline + rng.normal(0.2, 0.5, 60) + rng.normal(0, 0.3, 5)[rater]
    found = crossed_comparisons(item, rater, np.stack([baseline, system], axis=1), [(0, 1)])[0].difference
    gains = [float((system - baseline)[rater == r].mean()) for r in range(5)]
    test = stats.ttest_1samp(gains, 0.0)
    for level, low, high in ((0.95, found.low, found.high), (0.90, found.low_90, found.high_90)):
        assert (low, high) == pytest.approx(tuple(test.confidence_interval(level)), rel=1e-9)
    assert found.p_value == pytest.approx(test.pvalue, rel=1e-9)


@pytest.mark.parametrize("raters", [2, 3, 7])
def test_raters_who_say_the_same_leave_the_items(raters: int) -> None:
    """Copies of one rater are no news of other raters that differ: the interval is the paired one."""
    rng = np.random.default_rng(raters)
    baseline, system = rng.normal(3, 1, (2, 40, 1))
    found = of_table(np.repeat(baseline, raters, axis=1), np.repeat(system, raters, axis=1))
    paired = compare_paired(baseline[:, 0], system[:, 0])
    assert bounds(found.difference)[:3] == pytest.approx(
        [paired.estimate.value, paired.estimate.low, paired.estimate.high]
    )
    assert found.difference.p_value == pytest.approx(paired.t_test.p_value)
    ratio = baseline_ratio(baseline[:, 0], system[:, 0])
    assert bounds(found.ratio)[:3] == pytest.approx([ratio.delta.value, ratio.delta.low, ratio.delta.high])


def test_the_compared_means_are_those_of_the_paired_comparison() -> None:
    rows = campaign(30, 8, 2, 3)
    found = of_rows(rows, weights=np.array([1.0 + row[0] % 3 for row in rows]))
    table = np.full((2, 30, 8), np.nan)
    for item, rater, *scores in rows:
        table[:, item, rater] = scores
    baseline, system = (
        np.array([np.nan if np.isnan(row).all() else np.nanmean(row) for row in one]) for one in table
    )
    paired = compare_paired(baseline, system, [1.0 + item % 3 for item in range(30)])
    assert found.difference.value == pytest.approx(paired.estimate.value, rel=1e-12)
    assert found.ratio.value == pytest.approx(
        baseline_ratio(baseline, system, [1.0 + item % 3 for item in range(30)]).delta.value
    )
    assert found.items == paired.items


# ---------------------------------------------------------------- what must hold for any campaign


@given(st.integers(0, 10_000), st.integers(1, 4), st.randoms())
@settings(max_examples=30)
def test_names_order_and_a_constant_change_nothing(seed: int, each: int, random: Random) -> None:
    rows = campaign(9, 4, each, seed)
    found = of_rows(rows)
    names = random.sample(range(100), 9)
    moved = [
        (names[item], 50 - rater, base + 3, ours + 3)
        for item, rater, base, ours in random.sample(rows, len(rows))
    ]
    other = of_rows(moved)
    assert other.difference.reason == found.difference.reason
    if found.difference.reason is None:
        assert bounds(other.difference) == pytest.approx(bounds(found.difference), abs=1e-9)
    turned = of_rows([(item, rater, ours, base) for item, rater, base, ours in rows]).difference
    if found.difference.reason is None:
        low, high = (-value for value in bounds(turned)[2:0:-1])
        assert (low, high) == pytest.approx((found.difference.low, found.difference.high), abs=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_p_values_and_intervals_agree(seed: int, each: int) -> None:
    found = of_rows(campaign(10, 4, each, seed))
    for estimate, null in ((found.difference, 0.0), (found.ratio, 100.0)):
        if estimate.reason is not None:
            continue
        value, low, high, low_90, high_90 = bounds(estimate)
        assert low < low_90 < value < high_90 < high
        assert (estimate.p_value < 0.05) == (not low <= null <= high)
        assert (estimate.p_value < 0.10) == (not low_90 <= null <= high_90)


def test_raters_who_differ_widen_the_interval() -> None:
    """Two of eight raters see a gain of 2 points, the others none: more items do not settle that."""
    rng = np.random.default_rng(0)
    baseline = rng.normal(3, 0.3, (200, 8))
    system = baseline + np.where(np.arange(8) < 2, 2.0, 0.0) + rng.normal(0, 0.3, (200, 8))
    both = of_table(baseline, system).difference
    assert both.high - both.low > 1  # type: ignore[operator]
    paired = compare_paired(baseline.mean(axis=1), system.mean(axis=1))
    assert paired.estimate.high - paired.estimate.low < 0.2  # type: ignore[operator]


def test_raters_who_do_not_differ_widen_it_little() -> None:
    """150 items, three raters without views of their own: the median interval is 1.4 times the paired one."""
    rng = np.random.default_rng(1)
    widths = []
    for _ in range(60):
        baseline = rng.normal(3, 0.3, (150, 3))
        system = baseline + rng.normal(0, 0.6, (150, 1)) + rng.normal(0, 0.8, (150, 3))
        found = of_table(baseline, system).difference
        paired = compare_paired(baseline.mean(axis=1), system.mean(axis=1), flips=1)
        widths.append((found.high - found.low) / (paired.estimate.high - paired.estimate.low))  # type: ignore[operator]
    assert 1.2 < np.median(widths) < 1.6


def test_several_pairs_are_each_as_by_themselves() -> None:
    """The third system was rated on fewer items, the fourth on none."""
    item, rater, *scores = np.array(campaign(25, 6, 3, 2)).T
    third = np.where(item < 20, scores[0] + 0.4 + 0.2 * (item % 3), np.nan)
    columns = np.stack([*scores, third, np.full(len(item), np.nan)], axis=1)
    pairs = [(0, 1), (0, 2), (2, 1), (0, 3), (1, 0)]
    together = crossed_comparisons(item, rater, columns, pairs)
    assert together == [crossed_comparisons(item, rater, columns[:, [a, b]], [(0, 1)])[0] for a, b in pairs]
    assert [one.items for one in together] == [25, 20, 20, 0, 25]


# ---------------------------------------------------------------- where nothing can be said


def reason(*arguments: object) -> tuple[float | None, float | None, str | None]:
    found = of_rows(*arguments).difference  # type: ignore[arg-type]
    assert (found.low, found.high, found.low_90, found.high_90, found.p_value) == (None,) * 5
    return found.value, found.standard_error, found.reason


def test_one_rater_has_no_interval_over_raters() -> None:
    rows: Rows = [(0, 7, 1.0, 2.0), (1, 7, 1.0, 3.0), (2, 7, 2.0, 2.0)]
    value, error, why = reason(rows)
    assert value == pytest.approx(1.0)
    assert (error, why) == (None, "one rater: unknown how others would judge")
    of_others = of_rows([*rows, (3, 8, np.nan, 1.0)])  # the second rated nothing that can be compared
    assert of_others.raters == 1
    many: Rows = [(i, 0, 1.0, 1.0 + 0.2 * (i % 3)) for i in range(300)]
    assert "nearly all" in str(reason([*many, (300, 1, 1.0, 2.0), (301, 1, 1.0, 2.2)])[2])
    assert of_rows([*many, *((300 + i, 1, 1.0, 2.0) for i in range(5))]).difference.low is not None


def test_what_cannot_be_judged_says_so() -> None:
    nothing = of_rows([(0, 0, np.nan, 2.0), (1, 0, 1.0, np.nan)])
    assert (nothing.difference.value, nothing.items) == (None, 0)
    assert nothing.difference.reason == "no item was rated for both systems"
    empty = crossed_comparisons([], [], np.zeros((0, 2)), [(0, 1)])[0]
    assert empty.items == 0
    one_item = reason([(0, 0, 1.0, 2.0), (0, 1, 2.0, 2.0)])
    assert one_item == (0.5, None, "only one item or document: no spread to judge by")
    heavy = np.array([1e6, 1e6, 1.0, 1.0])
    rows: Rows = [(0, 0, 1.0, 2.0), (0, 1, 2.0, 2.0), (1, 0, 1.0, 1.0), (1, 1, 2.0, 2.0)]
    assert "weighs more than all others" in str(reason(rows, heavy)[2])
    opposite: Rows = [(0, 0, 1.0, 2.0), (0, 1, 2.0, 1.0), (1, 0, 2.0, 1.0), (1, 1, 1.0, 2.0)]
    assert reason(opposite) == (0.0, None, "differences between raters cancel out: no spread to judge by")
    zero = of_rows([(0, 0, 0.0, 1.0), (1, 1, 0.0, 2.0)])
    assert zero.ratio.reason == "the baseline's mean is not above 0: no ratio to it"


@pytest.mark.parametrize("gain", [0.0, 0.2])
def test_ratings_without_any_spread_have_an_error_of_nothing(gain: float) -> None:
    """Also where 3.4 - 3.2 and 2.4 - 2.2 differ in the last digit."""
    rows: Rows = [(i, r, 1.2 + i, 1.2 + i + gain) for i in range(4) for r in range(2)]
    value, error, why = reason(rows)
    assert value == pytest.approx(gain)
    assert (error, why) == (0.0, "the same on all items by all raters: no spread to judge by")


def test_what_does_not_fit_together_is_refused() -> None:
    for item, rater, weights, message in (
        ([0, 1], [0], None, "one length"),
        ([0, 0], [0, 1], [1.0, 2.0], "repeat one weight"),
        ([0, 0], [0, 0], None, "one row"),
        ([0, 1], [0, 0], [1.0, -1.0], "not negative"),
    ):
        with pytest.raises(ValueError, match=message):
            crossed_comparisons(item, rater, [[1.0, 2.0], [2.0, 3.0]], [(0, 1)], weights)
