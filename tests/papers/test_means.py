"""The mean of a cell over the studies of a collection, with its interval and its differences."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from creamtea.report.cells import NO_MARK
from creamtea.report.model import Cell, Delta
from creamtea.report.papers import OurValue, Outcome, judge, mean_of
from creamtea.stats.estimate import Spread


def ours(study: str, value: float, half: float, row: str = "entmax", delta: Delta | None = None) -> OurValue:
    cell = Cell("ok", value=value, low=value - half, high=value + half)
    return OurValue(cell, study, "systems/test/systems/accuracy", row, {"softmax": delta} if delta else {})


def delta(value: float, half: float) -> Delta:
    return Delta("ok", value=value, low=value - half, high=value + half)


def test_the_interval_is_that_of_a_mean_of_independent_errors() -> None:
    """Against 200,000 draws of the three studies' errors."""
    values, halves = np.array([50.0, 60.0, 91.0]), np.array([8.0, 3.0, 5.0])
    mean = mean_of([ours(f"s{n}", *pair) for n, pair in enumerate(zip(values, halves, strict=True))], "all")
    draws = np.random.default_rng(1).normal(values, halves / 1.96, (200_000, 3)).mean(1)
    low, high = np.quantile(draws, [0.025, 0.975])
    assert mean.study == "all"
    assert mean.cell.value == pytest.approx(67.0)
    assert mean.cell.low == pytest.approx(low, abs=0.05)
    assert mean.cell.high == pytest.approx(high, abs=0.05)


def test_each_side_of_an_interval_has_its_own_length() -> None:
    lopsided = [replace(ours("s", 10.0, 1.0), cell=Cell("ok", value=10.0, low=9.0, high=13.0))] * 4
    cell = mean_of(lopsided, "all").cell
    assert (cell.value, cell.low, cell.high) == pytest.approx((10.0, 9.5, 11.5))


@pytest.mark.parametrize(
    ("half", "outcome"), [(4.0, Outcome.HOLDS), (9.0, Outcome.UNDECIDED)], ids=["apart", "touching"]
)
def test_a_mean_difference_is_judged_by_its_interval(half: float, outcome: Outcome) -> None:
    """Four differences of 3 ± half: their mean is 3 ± half / 2."""
    own = mean_of([ours(f"s{n}", 63.0, 20.0, delta=delta(3.0, half)) for n in range(4)], "all")
    other = mean_of([ours(f"s{n}", 60.0, 20.0, row="softmax") for n in range(4)], "all")
    judgement = judge(own, other, "higher")
    assert judgement.outcome is outcome
    assert (judgement.low, judgement.high) == pytest.approx((3 - half / 2, 3 + half / 2))


@pytest.mark.parametrize(("square", "outcome"), [(4.0, Outcome.HOLDS), (9.0, Outcome.UNDECIDED)])
def test_a_mean_difference_over_seeds_is_judged_by_that_interval(square: float, outcome: Outcome) -> None:
    """Of two seeds each: t has eight degrees of freedom over four studies, where each has two."""
    wide = replace(delta(3.0, 1.0), spread=Spread(square, 2))
    own = mean_of([ours(f"s{n}", 63.0, 20.0, delta=wide) for n in range(4)], "all")
    other = mean_of([ours(f"s{n}", 60.0, 20.0, row="softmax") for n in range(4)], "all")
    half = math.hypot(0.5, scipy.stats.t.ppf(0.975, 8) * (square / 4) ** 0.5)
    judgement = judge(own, other, "higher")
    assert judgement.outcome is outcome
    assert (judgement.low, judgement.high) == pytest.approx((3 - half, 3 + half))


@pytest.mark.parametrize("deviation", [0.0, 4.0])
def test_values_that_no_study_has_compared_are_judged_with_their_seeds(deviation: float) -> None:
    """Of two seeds each, in four studies: the mean's t has four degrees of freedom, not one."""

    def of(value: float) -> OurValue:
        cells = [replace(ours("s", value, 1.0).cell, deviation=deviation, seeds=2) for _ in range(4)]
        return mean_of([OurValue(cell, f"s{n}", "t", str(value)) for n, cell in enumerate(cells)], "all")

    own, other = of(66.0), of(60.0)
    half = math.hypot(0.5, scipy.stats.t.ppf(0.975, 4) * deviation / 8**0.5)
    assert own.bounds == pytest.approx((66 - half, 66 + half))
    judgement = judge(own, other, "higher")
    assert (judgement.low, judgement.high) == pytest.approx((6 - 2 * half, 6 + 2 * half))


def test_what_is_near_zero_in_a_study_is_not_significant_in_the_mean() -> None:
    marked, unmarked = delta(3.0, 1.0), replace(delta(3.0, 1.0), note=NO_MARK)
    found = mean_of([ours("s1", 1.5, 0.2, delta=marked), ours("s2", 1.6, 0.2, delta=unmarked)], "all")
    assert not found.deltas["softmax"].significant


def test_what_one_study_has_not_compared_has_no_mean_difference() -> None:
    both = replace(ours("s1", 63.0, 20.0), deltas={"softmax": delta(3.0, 1.0), "sparsemax": delta(1.0, 1.0)})
    found = mean_of([both, ours("s2", 63.0, 20.0, delta=delta(3.0, 1.0))], "all")
    assert found.deltas.keys() == {"softmax"}


def test_with_one_seed_in_one_study_the_mean_has_no_interval_over_seeds() -> None:
    wide = replace(delta(3.0, 1.0), seeds_low=-3.0, seeds_high=9.0, spread=Spread(9.0, 2))
    found = mean_of(
        [ours("s1", 63.0, 20.0, delta=wide), ours("s2", 63.0, 20.0, delta=delta(3.0, 1.0))], "all"
    )
    mean = found.deltas["softmax"]
    assert (mean.seeds_low, mean.seeds_high, mean.significant) == (None, None, True)


def test_the_mean_has_the_spread_of_its_seeds() -> None:
    cells = [replace(ours("s", 50.0, 1.0).cell, deviation=spread, seeds=3) for spread in (3.0, 4.0)]
    values = [replace(ours("s", 50.0, 1.0), cell=cell) for cell in cells]
    cell = mean_of(values, "all").cell
    assert (cell.deviation, cell.seeds) == (2.5, 3)
    assert mean_of([values[0], ours("s", 50.0, 1.0)], "all").cell.deviation is None


@pytest.mark.parametrize(
    ("other", "mean"),
    [
        (Cell("unavailable", "the step failed"), Cell("unavailable", "s2: the step failed")),
        (Cell("partial", "1 of 5 seeds", value=60.0), Cell("partial", "s2: 1 of 5 seeds", value=55.0)),
        (Cell("ok", value=40.0), Cell("ok", value=45.0)),  # without an interval
    ],
)
def test_what_one_study_lacks_the_mean_lacks_with_its_reason(other: Cell, mean: Cell) -> None:
    cell = mean_of([ours("s1", 50.0, 1.0), OurValue(other, "s2")], "all").cell
    assert (cell.state, cell.note, cell.value) == (mean.state, mean.note, mean.value)
    assert (cell.low, cell.high) == (None, None)
