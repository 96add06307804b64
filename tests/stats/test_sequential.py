"""The group-sequential test: boundaries, slow oracles, error rates of all looks."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from creamtea.stats.estimate import mean_estimate
from creamtea.stats.sequential import (
    BURN_IN,
    LOOKS,
    Course,
    State,
    _Process,
    boundary,
    course,
    look,
    looked_at,
    p_of,
    spent,
)


def crossing(z: Sequence[float]) -> NDArray[np.float64]:
    """The chance (looks,) that |Z| has crossed z at or before each of equally spaced looks, no difference
    given."""
    process, exits = _Process(), []
    for bound in z:
        exits.append(process.exit(bound))
        process.advance(bound)
    return np.cumsum(exits)


@pytest.mark.parametrize(
    ("looks", "pocock", "o_brien_fleming"), [(2, 2.178, 1.977), (5, 2.413, 2.040), (10, 2.555, 2.087)]
)
def test_classical_boundaries_cross_at_five_per_cent(
    looks: int, pocock: float, o_brien_fleming: float
) -> None:
    """Jennison and Turnbull 2000, tables 2.1 and 2.3, which have three decimals."""
    assert crossing([pocock] * looks)[-1] == pytest.approx(0.05, abs=1e-4)
    falling = [o_brien_fleming * math.sqrt(looks / look) for look in range(1, looks + 1)]
    assert crossing(falling)[-1] == pytest.approx(0.05, abs=1e-4)


def test_boundaries_of_published_spending_functions() -> None:
    """Lan and DeMets' functions of O'Brien and Fleming's and of Pocock's kind, five looks, 5 % two-sided."""
    t = np.arange(1, 6) / 5
    careful = (4 - 4 * stats.norm.cdf(stats.norm.ppf(1 - 0.05 / 4) / np.sqrt(t))) / 0.05
    even = np.minimum(np.log(1 + (math.e - 1) * t), 1.0)
    np.testing.assert_allclose(boundary(0.05, tuple(careful)), [4.877, 3.357, 2.680, 2.290, 2.031], atol=6e-4)
    np.testing.assert_allclose(boundary(0.05, tuple(even)), [2.438, 2.427, 2.410, 2.397, 2.386], atol=6e-4)


@given(st.floats(1e-7, 0.9), st.integers(1, LOOKS))
@settings(max_examples=15)
def test_a_boundary_spends_what_it_should_and_a_smaller_alpha_lies_outside(alpha: float, looks: int) -> None:
    shares = spent(looks)
    bounds = boundary(alpha, shares)
    np.testing.assert_allclose(crossing(bounds), alpha * np.array(shares), rtol=1e-6)
    assert (boundary(alpha / 3, shares) > bounds).all()


def test_a_boundary_against_simulated_sums() -> None:
    rng = np.random.default_rng(1)
    bounds = boundary(0.3, spent(LOOKS))
    z = rng.normal(size=(20_000, LOOKS)).cumsum(axis=1) / np.sqrt(np.arange(1, LOOKS + 1))
    crossed = np.logical_or.accumulate(np.abs(z) > bounds, axis=1).mean(axis=0)
    np.testing.assert_allclose(crossed, 0.3 * np.array(spent(LOOKS)), atol=4 * math.sqrt(0.21 / 20_000))


def test_shares_that_no_boundary_can_spend_are_refused() -> None:
    for alpha, shares in ((0.0, (0.5, 1.0)), (0.05, (0.5, 0.5)), (0.05, (0.5, 1.1))):
        with pytest.raises(ValueError, match="no boundary spends"):
            boundary(alpha, shares)


def test_p_is_the_smallest_alpha_whose_boundary_was_reached() -> None:
    for alpha in (0.5, 0.05, 0.05 / 12, 1e-5):
        p = p_of(boundary(alpha, spent(LOOKS)), LOOKS)
        assert (p >= alpha * (1 - 1e-9)).all()
        np.testing.assert_allclose(p, alpha, rtol=0.02)
    assert p_of(np.zeros(LOOKS), LOOKS).tolist() == [1.0] * LOOKS
    assert p_of(np.full(LOOKS, math.inf), LOOKS).max() <= 1e-8


@given(st.integers(0, 2**32 - 1), st.integers(12, 70), st.booleans())
@settings(max_examples=20)
def test_a_course_by_a_slow_oracle(seed: int, planned: int, even: bool) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.ones(planned) if even else rng.integers(1, 9, planned).astype(float)
    values = 1000 + rng.normal(0.4, 1.5, planned)
    seen = int(rng.integers(1, planned + 1))
    found = course((values * sizes)[:seen], sizes[:seen], planned)
    bounds = boundary(0.05, spent(min(LOOKS, planned)))
    smallest = 1.0
    assert found.units.tolist() == [n for n in looked_at(planned) if n <= seen]
    for at, n in enumerate(found.units.tolist()):
        if n < min(BURN_IN, planned):
            assert math.isinf(found.half_width()[at])
            continue
        expected = mean_estimate(values[:n], sizes[:n])
        assert found.mean[at] == pytest.approx(expected.value)
        assert found.error[at] == pytest.approx(expected.standard_error, rel=1e-6)
        assert found.df[at] == pytest.approx(expected.df)
        level = 1 - 2 * stats.norm.sf(bounds[at])
        low, high = expected.interval(level) or (0.0, 0.0)
        assert found.half_width()[at] == pytest.approx((high - low) / 2, rel=1e-5)
        z = stats.norm.isf((expected.t_test() or 0.0) / 2)
        smallest = min(smallest, p_of(np.full(at + 1, z), min(LOOKS, planned))[at])
        assert found.p_value[at] == pytest.approx(smallest)
    assert [len(until(found, n).units) for n in (0, seen)] == [0, len(found.units)]


def test_what_has_no_spread_or_few_units_decides_nothing() -> None:
    same = course(np.full(30, 7.3), np.ones(30), 30)
    assert same.p_value.tolist() == [1.0] * LOOKS
    assert np.isinf(same.half_width()).all()
    assert course(np.zeros(0), np.zeros(0), 30).p_value.size == 0
    with pytest.raises(ValueError, match="are not those of a campaign of 3"):
        course(np.ones(4), np.ones(4), 3)


SHAPES = {
    "normal": lambda rng, shape: rng.normal(0, 1, shape),
    "t of three degrees": lambda rng, shape: rng.standard_t(3, shape),
    "few values": lambda rng, shape: rng.choice([-1.0, 0.0, 0.0, 0.0, 1.0], shape),
    "one-sided": lambda rng, shape: rng.exponential(1, shape) - 1,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "most"), [*((name, 0.06) for name in list(SHAPES)[:3]), ("one-sided", 0.10)]
)
def test_five_per_cent_are_for_all_looks_together(shape: str, most: float) -> None:
    """A fixed-sample test looked at as often cries wolf in more than 20 % of campaigns of equal systems."""
    rng = np.random.default_rng(3)
    values = SHAPES[shape](rng, (500, 80))
    found = [course(one, np.ones(80), 80) for one in values]
    alarms = np.mean([one.p_value[-1] < 0.05 for one in found])
    covered = np.mean([(np.abs(one.mean) <= one.half_width()).all() for one in found])
    assert alarms <= most
    assert covered == pytest.approx(1 - alarms)
    naive = np.mean([(stats.norm.sf(one.z[4:]) < 0.025).any() for one in found])
    assert naive > 0.15
    if shape == "normal":
        assert alarms > 0.035


UNITS = 120


def plain(values: np.ndarray, planned: int) -> Course:
    return course(values, np.ones(len(values)), planned)


def until(one: Course, units: int) -> Course:
    """The course as it was when only so many units had been seen."""
    n = int(np.searchsorted(one.units, units, side="right"))
    looks = {name: getattr(one, name)[:n] for name in ("units", "mean", "error", "df", "z", "p_value")}
    return replace(one, seen=min(units, one.seen), **looks)


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (0.0, State.NO_LARGER_DIFFERENCE),
        (0.3, State.BETTER),  # by the signs, as at the end: real, if smaller than δ
        (2.0, State.BETTER),
        (-2.0, State.WORSE),
    ],
)
def test_units_that_all_differ_alike_are_settled_by_their_signs(value: float, state: State) -> None:
    other = plain(np.random.default_rng(1).normal(0, 3, 30), 60)
    few, enough = (plain(np.full(count, value), 60) for count in (18, 30))
    assert look([few, other], delta=1.0)[0].state is State.OPEN
    found = look([enough, other], delta=1.0)[0]
    assert (found.state, found.mean, found.low) == (state, value, None)
    assert found.p_value == (pytest.approx(4 * 0.5**30) if value else 1.0)  # two comparisons


@pytest.mark.parametrize(("units", "state"), [(4, State.HOPELESS), (5, State.NO_LARGER_DIFFERENCE)])
def test_a_few_equal_units_within_delta_show_nothing(units: int, state: State) -> None:
    """Four on one side of δ have a chance of 6 % under a median of δ."""
    (found,) = look([plain(np.full(units, 0.05), units)], delta=0.1)
    assert found.state is state


def test_each_comparison_gets_its_state() -> None:
    rng = np.random.default_rng(5)
    courses = [
        plain(rng.normal(3, 5, 200), 400),
        plain(rng.normal(-3, 5, 200), 400),
        plain(rng.normal(0, 1, 200) / 4, 400),
        plain(20 * np.sin(np.arange(200)), 400),
        plain(rng.normal(1.1, 5, 60), 400),
        plain(np.zeros(0), 400),
    ]
    found = look(courses, delta=1.0)
    wanted = [State.BETTER, State.WORSE, State.NO_LARGER_DIFFERENCE, State.HOPELESS, State.OPEN, State.OPEN]
    assert [one.state for one in found] == wanted
    assert found[0].low > 0
    assert found[5].units == 0
    with pytest.raises(ValueError, match="δ must be above 0"):
        look(courses, delta=0.0)


def test_at_the_end_nothing_is_open_and_most_of_the_five_per_cent_are_left() -> None:
    values = np.random.default_rng(6).normal(0, 5, 100)
    values += 2.3 * values.std(ddof=1) / 10 - values.mean()  # t = 2.3, p = 0.024
    (found,) = look([plain(values, 100)], delta=0.5)
    assert found.state is State.BETTER
    assert 0.024 < (found.p_value or 0) < 0.05
    assert look([plain(values, 100), plain(values / 1.3, 100)], delta=0.5)[1].state is State.HOPELESS


def test_a_comparison_without_a_look_counts_in_the_correction() -> None:
    one, none = plain(np.random.default_rng(6).normal(0.5, 1, 40), UNITS), plain(np.zeros(0), UNITS)
    alone, beside = look([one], 1.0)[0].p_value, look([one, none], 1.0)[0].p_value
    assert alone < 0.5
    assert beside == pytest.approx(2 * alone)


def test_a_verdict_stands_even_if_later_units_say_otherwise() -> None:
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(2, 1, 60), rng.normal(-2.5, 1, 60)])
    found = look([plain(values[:end], UNITS) for end in (60, UNITS)], delta=0.1)
    assert {one.state for one in found} == {State.BETTER}
    assert (found[1].mean or 0) < 0


def test_hopeless_is_a_chance_of_a_verdict_by_simulation() -> None:
    """The rule's prediction, t of N units seen: the mean at the end, were the rest like these."""
    rng = np.random.default_rng(9)
    planned, seen, delta = 200, 100, 0.12
    needed = float(boundary(0.05, spent(20))[-1])
    inside = float(boundary(0.10, spent(20))[-1])
    states = []
    for mean in np.linspace(0, 0.25, 12):
        values = rng.normal(0, 1, seen)
        values += mean - values.mean()
        values /= values.std(ddof=1)
        (found,) = look([plain(values, planned)], delta)
        if found.state not in (State.OPEN, State.HOPELESS):
            continue
        # flat prior: the true mean scatters about the seen one, the rest about the true one
        true = rng.normal(values.mean(), 1 / math.sqrt(seen), 200_000)
        end = (seen * values.mean() + rng.normal(0, math.sqrt(seen), 200_000) + seen * true) / planned
        error = 1 / math.sqrt(planned)
        chance = np.mean((np.abs(end) > needed * error) | (np.abs(end) < delta - inside * error))
        limit = 0.5 * (1 - seen / planned) ** 2
        if abs(chance - limit) > 0.01:
            assert (found.state is State.HOPELESS) == (chance < limit), (mean, chance)
            states.append(found.state)
    assert set(states) == {State.HOPELESS, State.OPEN}


@pytest.mark.slow
def test_a_campaign_that_looks_often_cries_wolf_in_five_per_cent() -> None:
    """Three equal systems beside the baseline, every look taken, the end included."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(150):
        units = rng.normal(0, 1, (4, UNITS))
        wrong += look_at_all(list(units[1:] - units[0]))
    assert wrong <= 0.07 * 150


def look_at_all(values: list[np.ndarray]) -> bool:
    whole = [plain(one, UNITS) for one in values]
    stopped: list[int | None] = [None] * len(whole)
    found = []
    for end in looked_at(UNITS).tolist():
        seen = [until(one, end if at is None else at) for one, at in zip(whole, stopped, strict=True)]
        found = look(seen, 0.01)
        stopped = [
            end if at is None and one.state is not State.OPEN else at
            for at, one in zip(stopped, found, strict=True)
        ]
    return any(one.state in (State.BETTER, State.WORSE) for one in found)
