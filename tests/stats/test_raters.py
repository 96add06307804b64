"""Severity and leave-one-out correlation of single raters, and the outputs they disagree on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats

from creamtea.stats.agreement import RaterAgreement, largest_spread, rater_agreement
from creamtea.stats.estimate import mean_estimate

_ = np.nan


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
    assert severity.high is not None
    assert alone.high is not None
    assert severity.value is not None
    assert alone.value is not None
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
        assert found.low is not None
        assert found.high is not None
        holds += found.low <= truth <= found.high
    assert 0.92 <= holds / 300 <= 0.98


def test_few_groups_have_no_interval() -> None:
    rng = np.random.default_rng(2)
    found = agreement_of(rng.normal(size=(12, 2)), groups=np.repeat([0, 1, 2], 4))[0].correlation
    assert (found.low, found.reason) == (
        None,
        "no interval for outputs of fewer than four items or documents",
    )
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
    assert found[3].severity.high is not None
    assert found[3].severity.high < -1
    assert found[4].correlation.value is not None
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
    with pytest.raises(ValueError, match=r"\(2,\) raters, \(1,\) outputs and \(2,\) scores"):
        rater_agreement([0, 1], [0], [1.0, 2.0], [0], [0, 1])


def test_largest_spread() -> None:
    table = [[1.0, 5.0, _], [3.0, 3.0, 3.0], [_, 2.0, _], [2.0, 6.0, 4.0], [5.0, 1.0, _]]
    found = largest_spread(table, limit=3)
    assert [row.output for row in found] == [0, 4, 3]
    assert (found[0].lowest, found[0].highest, found[0].ratings) == (1.0, 5.0, 2)
    assert found[0].deviation == pytest.approx(8**0.5)
    assert [row.output for row in largest_spread(table)] == [0, 4, 3]  # all gave row 1 the same
    assert largest_spread([[1.0, _], [_, 2.0]]) == []


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
    assert sorted(found, key=lambda row: -round(row.deviation, 9)) == found
    turned = table[:, random.sample(range(table.shape[1]), table.shape[1])]
    assert [row.output for row in largest_spread(turned)] == [row.output for row in found]
