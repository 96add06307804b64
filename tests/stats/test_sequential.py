"""The group-sequential test: published boundaries, a slow oracle, error rates over all looks."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    _Process,
    boundary,
    course,
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
        process.go_on(bound)
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
    assert [len(found.until(n).units) for n in (0, seen)] == [0, len(found.units)]


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
    values = SHAPES[shape](rng, (1500, 80))
    found = [course(one, np.ones(80), 80) for one in values]
    alarms = np.mean([one.p_value[-1] < 0.05 for one in found])
    covered = np.mean([(np.abs(one.mean) <= one.half_width()).all() for one in found])
    assert alarms <= most
    assert covered == pytest.approx(1 - alarms)
    naive = np.mean([(stats.norm.sf(one.z[4:]) < 0.025).any() for one in found])
    assert naive > 0.15
    if shape == "normal":
        assert alarms > 0.035
