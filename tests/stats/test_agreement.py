"""Agreement of raters against published examples and slow versions; each rater against the others."""

import itertools
from collections import defaultdict
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray
from scipy import stats

from creamtea.stats.agreement import (
    RaterAgreement,
    intraclass,
    krippendorff_alpha,
    largest_spread,
    one_rating_each,
    rater_agreement,
)
from creamtea.stats.estimate import mean_estimate

Array = NDArray[np.float64]

# Krippendorff 2011, "Computing Krippendorff's alpha-reliability", C: four observers, twelve units
_ = np.nan
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T

# Shrout and Fleiss 1979, table 2: six targets, four judges
SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float
)


def test_alpha_of_krippendorffs_example() -> None:
    found = krippendorff_alpha(KRIPPENDORFF)
    assert round(found.value or 0, 3) == 0.849
    assert (found.units, found.raters, found.ratings) == (11, 4, 40)  # the last unit has one rating


def slow_alpha(matrix: Array) -> float:
    """Pair by pair, as the definition has it."""
    units = [row[~np.isnan(row)] for row in matrix]
    units = [unit for unit in units if len(unit) >= 2]
    pool = np.concatenate(units)

    observed = sum(
        sum((a - b) ** 2 for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / len(pool)
    pairs = list(itertools.permutations(pool, 2))
    return 1 - observed / (sum((a - b) ** 2 for a, b in pairs) / len(pairs))


TABLES = st.lists(
    st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=3, max_size=3), min_size=2, max_size=8
).map(
    lambda rows: np.array([[np.nan if cell is None else cell for cell in row] for row in rows], dtype=float)
)


@given(TABLES)
def test_alpha_is_its_definition(table: Array) -> None:
    found = krippendorff_alpha(table)
    if found.value is None:
        paired = table[(~np.isnan(table)).sum(axis=1) >= 2]
        assert found.reason is not None
        assert len(np.unique(paired[~np.isnan(paired)])) < 2
    else:
        assert found.value == pytest.approx(slow_alpha(table), abs=1e-9)


@given(TABLES, st.randoms(), st.integers(1, 7), st.integers(-50, 50))
def test_names_order_and_unit_change_no_coefficient(
    table: Array, random: Random, unit: int, zero: int
) -> None:
    rows, columns = (random.sample(range(size), size) for size in table.shape)
    moved = (unit * table + zero)[np.ix_(rows, columns)]
    alpha, again = krippendorff_alpha(table), krippendorff_alpha(moved)
    assert (alpha.value is None) == (again.value is None)
    assert alpha.value is None or again.value == pytest.approx(alpha.value, abs=1e-9)
    one, other = intraclass(table), intraclass(moved)
    for name in ("two_1", "two_k", "three_1"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert (ours is None) == (theirs is None)
        assert ours is None or theirs == pytest.approx(ours, rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_alphas_interval_leaves_out_whole_groups() -> None:
    rng = np.random.default_rng(2)
    # four systems an item, hardly differing
    items = rng.normal(0, 1, (15, 1)) + rng.normal(0, 0.7, (15, 2))
    table = np.repeat(items, 4, axis=0) + rng.normal(0, 0.1, (60, 2))
    alone = krippendorff_alpha(table)
    grouped = krippendorff_alpha(table, groups=np.repeat(np.arange(15), 4))
    assert alone.value == grouped.value
    assert alone.low < alone.value < alone.high  # type: ignore[operator]
    assert grouped.high - grouped.low > 1.5 * (alone.high - alone.low)  # type: ignore[operator]
    without = [
        np.log(1 - slow_alpha(np.delete(table, slice(4 * at, 4 * at + 4), axis=0))) for at in range(15)
    ]
    half = scipy.stats.t.ppf(0.975, 14) * np.sqrt(14 * np.var(without))
    ends = [1 - (1 - grouped.value) * np.exp(sign * half) for sign in (1, -1)]  # type: ignore[operator]
    assert (grouped.low, grouped.high) == pytest.approx(ends)


def test_alpha_without_disagreement_to_expect_says_so() -> None:
    assert krippendorff_alpha([[1.0, np.nan], [np.nan, 2.0]]).reason == "no unit has two ratings"
    equal = krippendorff_alpha([[3.4, 3.4], [3.4, 3.4]])
    assert (equal.value, equal.ratings) == (None, 4)
    assert equal.reason == "all 4 ratings are equal: no disagreement to expect by chance"
    assert krippendorff_alpha([[1.0, 1.0], [2.0, 2.0]]).value == 1.0
    few = krippendorff_alpha(np.arange(18.0).reshape(9, 2) ** 2)
    assert (few.low, few.reason) == (None, "no interval for outputs of fewer than 10 items or documents")
    with pytest.raises(ValueError, match="matrix"):
        krippendorff_alpha([1.0, 2.0])


def test_alpha_has_no_interval_where_disagreement_hangs_on_one_group() -> None:
    """Full agreement but for one unit, or everywhere: of units with one score only rounding is left."""
    agreed = np.repeat(np.resize([3.3, 3.3, 5.1], 12)[:, None], 3, axis=1)
    for table in (
        agreed,
        np.concatenate([[[1.0, 2.0, 3.0]], agreed]),
        np.concatenate([agreed[:1] + 1, agreed[[0] * 11]]),
    ):
        found = krippendorff_alpha(table)
        assert found.low is None
        assert found.reason == "no interval: without one item or document there is no disagreement left"


def test_icc_of_shrout_and_fleiss() -> None:
    found = intraclass(SHROUT_FLEISS)
    printed = [round(value or 0, 2) for value in (found.two_1, found.three_1, found.two_k)]
    assert printed == [0.29, 0.71, 0.62]


def mean_squares(table: Array) -> dict[str, float]:
    """Shrout and Fleiss's formulas for a complete table, by sums of squares written out."""
    n, k = table.shape
    grand, units, raters = table.mean(), table.mean(axis=1), table.mean(axis=0)
    between = k * ((units - grand) ** 2).sum() / (n - 1)
    judges = n * ((raters - grand) ** 2).sum() / (k - 1)
    error = ((table - units[:, None] - raters + grand) ** 2).sum() / ((n - 1) * (k - 1))
    return {
        "two_1": (between - error) / (between + (k - 1) * error + k * (judges - error) / n),
        "two_k": (between - error) / (between + (judges - error) / n),
        "three_1": (between - error) / (between + (k - 1) * error),
    }


@pytest.mark.parametrize("seed", range(5))
def test_icc_of_complete_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(5, 40)), int(rng.integers(2, 6))
    table = rng.normal(50, 10, (n, 1)) + rng.normal(0, 5, k) + rng.normal(0, 8, (n, k))
    found = intraclass(table)
    for name, value in mean_squares(table).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-9)


def test_icc_of_an_incomplete_design_finds_the_truth() -> None:
    """Two of twelve raters a unit; variances 9, 4 and 4 of units, raters and residuals."""
    rng = np.random.default_rng(8)
    found = []
    for _round in range(40):
        table = rng.normal(0, 3, (150, 1)) + rng.normal(0, 2, 12) + rng.normal(0, 2, (150, 12))
        kept = np.argsort(rng.random(table.shape), axis=1) < 2
        result = intraclass(np.where(kept, table, np.nan))
        found.append([result.two_1, result.three_1, result.two_k])
    means = np.array(found, dtype=float).mean(axis=0)
    assert means == pytest.approx([9 / 17, 9 / 13, 9 / 13], abs=0.025)


def test_icc_where_it_is_not_defined() -> None:
    assert intraclass([[1.0, 2.0]]).reason == "fewer than two units have two ratings"
    assert (
        intraclass([[2.2, 2.2], [2.2, 2.2]]).reason == "all 4 ratings are equal: nothing to tell units apart"
    )
    # each unit rated by a pair of its own: severity and units are one
    nested = intraclass([[1.0, 2.0, _, _], [_, _, 4.0, 5.0]])
    assert (nested.two_1, nested.three_1) == (None, None)
    assert nested.reason == "too few units are shared between raters to tell the two apart"


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 100)))


@given(ROWS)
def test_the_mean_of_each(rows: list[tuple[int, int, int]]) -> None:
    grouped = defaultdict(list)
    for rater, output, value in rows:
        grouped[rater, output].append(value)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    (raters, outputs), means = one_rating_each(columns[0], columns[1], value=columns[2])
    assert list(zip(raters, outputs, strict=True)) == sorted(grouped)
    assert means.tolist() == pytest.approx([np.mean(grouped[key]) for key in sorted(grouped)])


def agreement_of(matrix: Any, items: Any = None, **counting: Any) -> list[RaterAgreement]:
    """Of a matrix (outputs, raters), NaN where missing; its ratings in another order than the table's."""
    table = np.asarray(matrix)
    output, rater = np.nonzero(~np.isnan(table))
    turned = np.random.default_rng(4).permutation(len(output))
    output, rater = output[turned], rater[turned]
    owners = np.arange(len(table)) if items is None else items
    return rater_agreement(rater, output, table[output, rater], owners, range(table.shape[1]), **counting)


def test_severity_and_correlation_by_hand() -> None:
    table = np.array([[1.0, 3.0, 2.0], [4.0, 4.0, _], [5.0, _, 3.0], [2.0, 3.0, 4.0], [_, _, 1.0]])
    first = agreement_of(table)[0]
    own, others = np.array([1.0, 4.0, 5.0, 2.0]), np.array([2.5, 4.0, 3.0, 3.5])
    expected = stats.ttest_1samp(own - others, 0)
    assert (first.rater, first.outputs) == (0, 4)
    assert first.severity.value == pytest.approx((own - others).mean())
    assert (first.severity.low, first.severity.high) == pytest.approx(tuple(expected.confidence_interval()))
    pearson = stats.pearsonr(own, others)
    assert first.correlation.value == pytest.approx(pearson.statistic)
    assert (first.correlation.low, first.correlation.high) == pytest.approx(
        tuple(pearson.confidence_interval())
    )


def test_severity_averages_the_outputs_of_an_item_first() -> None:
    table = np.array([[3.0, 1.0], [3.0, 1.0], [4.0, 4.0], [2.0, 3.0]])
    severity = agreement_of(table, items=["a", "a", "b", "c"])[0].severity
    assert severity.value == pytest.approx((2 + 0 - 1) / 3)


def test_severity_is_over_documents_where_items_belong_to_some() -> None:
    """Items of a document deviate alike: six documents say less than thirty items."""
    rng = np.random.default_rng(3)
    document = np.repeat(np.arange(6), 5)
    other = rng.normal(4, 1, 30)
    own = other + rng.normal(0, 1, 6)[document] + rng.normal(0, 0.1, 30)
    severity = agreement_of(np.column_stack([own, other]), groups=document)[0].severity
    expected = mean_estimate(own - other, clusters=document)
    assert (severity.value, severity.low, severity.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    alone = agreement_of(np.column_stack([own, other]))[0].severity
    assert severity.high - severity.value > 2 * (alone.high - alone.value)


def test_the_interval_of_a_correlation_is_a_jackknife_over_groups() -> None:
    rng = np.random.default_rng(7)
    group = rng.integers(0, 9, 40)
    x = rng.normal(size=40)
    y = x + rng.normal(0, 1, 40)
    found = agreement_of(np.column_stack([x, y]), groups=group)[0].correlation
    left = np.array([np.arctanh(np.corrcoef(x[group != one], y[group != one])[0, 1]) for one in range(9)])
    error = np.sqrt(8 / 9 * ((left - left.mean()) ** 2).sum())
    r = np.corrcoef(x, y)[0, 1]
    half = stats.t.ppf(0.975, 8) * error
    assert found.value == pytest.approx(r)
    assert (found.low, found.high) == pytest.approx(tuple(np.tanh(np.arctanh(r) + np.array([-half, half]))))


def test_both_outputs_of_a_pair_are_one_piece_of_evidence() -> None:
    """A preference gives one output what it takes from the other: 300 pairs, by simulation, in which the
    95 % interval that takes them for 600 outputs holds the true correlation in some 83 %."""
    rng = np.random.default_rng(11)
    truth, holds, pairs = 0.5, 0, 60
    for _trial in range(300):
        x = rng.normal(size=pairs)
        y = truth * x + np.sqrt(1 - truth**2) * rng.normal(size=pairs)
        both = np.column_stack([np.concatenate([x, -x]), np.concatenate([y, -y])])
        found = agreement_of(both, items=np.tile(np.arange(pairs), 2))[0].correlation
        holds += found.low <= truth <= found.high
    assert 0.92 <= holds / 300 <= 0.98


def test_few_groups_have_no_interval() -> None:
    rng = np.random.default_rng(2)
    found = agreement_of(rng.normal(size=(12, 2)), groups=np.repeat([0, 1, 2], 4))[0].correlation
    why = "no interval for outputs of fewer than four items or documents"
    assert (found.low, found.reason) == (None, why)
    x = np.array([1.0, 1.0, 1.0, 1.0, 5.0, 5.0])
    table = np.column_stack([x, x + np.array([0, 0.1, 0, 0.1, 0, 0.1])])
    found = agreement_of(table, items=[0, 1, 2, 3, 4, 4])[0].correlation
    assert found.low is None
    assert found.reason is not None
    assert "no spread left" in found.reason


def test_a_severe_a_reversed_and_a_straight_line_rater_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    quality = rng.normal(4, 1, 80)
    honest = quality[:, None] + rng.normal(0, 0.4, (80, 3))
    table = np.column_stack([honest, quality - 1.5, 8 - quality, np.full(80, 4.0)])
    found = agreement_of(table)
    assert all((row.correlation.value or 0) > 0.7 for row in found[:4])
    assert found[3].severity.high < -1
    assert found[4].correlation.value < -0.8
    assert (found[5].correlation.value, found[5].correlation.reason) == (
        None,
        "the rater gave the same score to all 80 outputs",
    )


def test_few_outputs_say_so() -> None:
    alone, other = agreement_of([[1.0, _], [2.0, _], [_, 3.0]])
    assert (alone.outputs, alone.severity.value, alone.severity.reason) == (0, None, "no items")
    assert other.correlation.reason == "0 outputs rated by this rater and another: a correlation needs three"
    three = agreement_of([[1.0, 2.0], [2.0, 2.5], [3.0, 5.0]])[0]
    assert three.correlation.value is not None
    assert (three.correlation.low, three.correlation.reason) == (None, "no interval for three outputs")
    flat, constant = agreement_of([[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]])
    assert flat.correlation.reason == "the others' mean is the same for all 3 outputs"
    assert (flat.constant, constant.constant) == (False, True)


def test_who_does_not_count_is_compared_with_those_who_do() -> None:
    table = np.random.default_rng(5).integers(0, 26, (12, 3)) * 0.2
    two, all_three = agreement_of(table[:, :2]), agreement_of(table, counting=[0, 1])
    for alone, beside in zip(two, all_three, strict=False):
        assert beside.severity.value == pytest.approx(alone.severity.value)
        assert beside.correlation.value == pytest.approx(alone.correlation.value)
    others = table[:, :2].mean(axis=1)
    assert all_three[2].severity.value == pytest.approx((table[:, 2] - others).mean())
    assert all_three[2].correlation.value == pytest.approx(stats.pearsonr(table[:, 2], others).statistic)


def test_vectors_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="2 keys and 1 ratings"):
        one_rating_each([1, 2], value=[3])
    with pytest.raises(ValueError, match=r"\(2,\) raters, \(1,\) outputs and \(2,\) scores"):
        rater_agreement([0, 1], [0], [1.0, 2.0], [0], [0, 1])


def test_largest_spread() -> None:
    table = [[1.0, 5.0, _], [3.0, 3.0, 3.0], [_, 2.0, _], [2.0, 6.0, 4.0], [5.0, 1.0, _]]
    found = largest_spread(table)
    assert [row.output for row in found] == [0, 4, 3]  # all gave row 1 the same
    assert (found[0].lowest, found[0].highest, found[0].ratings) == (1.0, 5.0, 2)
    assert found[0].deviation == pytest.approx(8**0.5)
    assert largest_spread([[1.0, _], [_, 2.0]]) == []
    first, second = largest_spread([[0.0, 9.0, _, _], [0.0, 10.0, 5.0, 5.0]])  # the two furthest
    assert (first.output, second.output) == (1, 0)
    assert first.deviation < second.deviation


@given(
    npst.arrays(
        np.float64,
        st.tuples(st.integers(1, 8), st.integers(1, 5)),
        elements=st.one_of(st.integers(0, 25).map(lambda step: 1 + 0.2 * step), st.just(np.nan)),
    ),
    st.randoms(),
)
def test_the_largest_spread_is_that_of_each_row_and_names_do_not_matter(table: Any, random: Any) -> None:
    found = largest_spread(table)
    for row in found:
        scores = table[row.output][~np.isnan(table[row.output])]
        assert (row.lowest, row.highest, row.ratings) == (scores.min(), scores.max(), len(scores))
        assert row.deviation == pytest.approx(np.std(scores, ddof=1))
    left = [row for at, row in enumerate(table) if at not in {one.output for one in found}]
    assert all(len(set(row[~np.isnan(row)].tolist())) < 2 for row in left)
    order = [(-round(row.highest - row.lowest, 9), -round(row.deviation, 9)) for row in found]
    assert order == sorted(order)
    turned = table[:, random.sample(range(table.shape[1]), table.shape[1])]
    assert [row.output for row in largest_spread(turned)] == [row.output for row in found]
