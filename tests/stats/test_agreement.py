"""α and the intraclass correlations against their authors' published examples, and slow versions of both."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from creamtea.stats.agreement import intraclass, krippendorff_alpha

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
    items = rng.normal(0, 1, (30, 1)) + rng.normal(0, 0.7, (30, 2))
    table = np.repeat(items, 4, axis=0) + rng.normal(0, 0.1, (120, 2))
    alone = krippendorff_alpha(table)
    grouped = krippendorff_alpha(table, groups=np.repeat(np.arange(30), 4))
    assert alone.value == grouped.value
    assert alone.low < alone.value < alone.high  # type: ignore[operator]
    assert grouped.high - grouped.low > 1.5 * (alone.high - alone.low)  # type: ignore[operator]
    without = [
        np.log(1 - slow_alpha(np.delete(table, slice(4 * at, 4 * at + 4), axis=0))) for at in range(30)
    ]
    half = scipy.stats.t.ppf(0.975, 29) * np.sqrt(29 * np.var(without))
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
