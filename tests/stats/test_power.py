"""Power by simulation, by published values and by its own inverse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from creamtea.human.protocols.scores import Preference
from creamtea.stats.power import (
    default_deviation,
    equivalence_power,
    items_for_equivalence,
    items_needed,
    power_of,
)


@pytest.mark.parametrize("effect, items", [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_items_of_cohens_effects(effect: float, items: int) -> None:
    """Small, medium and large effects at power 0.8, two-sided 5 %, as G*Power has them for paired means."""
    assert items_needed(effect, 1.0) == items
    assert power_of(items, effect, 1.0) >= 0.8 > power_of(items - 1, effect, 1.0)


def test_power_of_g_powers_manual() -> None:
    """Its example of a difference from a constant: d 0.625, 30 items, one-sided 5 %; the other side of a
    two-sided test at 10 % is out of reach."""
    assert power_of(30, 0.625, 1.0, alpha=0.1) == pytest.approx(0.955144, abs=1e-6)


@pytest.mark.parametrize("n, difference", [(20, 0.4), (150, 2.5 / 14.14), (6, 1.0)])
def test_power_is_how_often_scipy_finds_the_difference(n: int, difference: float) -> None:
    samples = np.random.default_rng(n).normal(difference, 1, (20_000, n))
    found = float(np.mean(stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05))
    assert power_of(n, difference, 1.0) == pytest.approx(found, abs=0.01)


@pytest.mark.parametrize("n, difference", [(40, 0.0), (60, 0.1)])
def test_equivalence_power_is_how_often_both_tests_reject(n: int, difference: float) -> None:
    samples = np.random.default_rng(n).normal(difference, 1, (20_000, n))
    half = stats.t.ppf(0.95, n - 1) * samples.std(axis=1, ddof=1) / np.sqrt(n)
    found = float(np.mean(np.abs(samples.mean(axis=1)) + half < 0.5))
    assert equivalence_power(n, difference, 0.5, 1.0) == pytest.approx(found, abs=0.015)


@given(st.floats(0.05, 3), st.floats(0.5, 2), st.sampled_from([0.5, 0.8, 0.95]))
@settings(max_examples=25)
def test_the_items_needed_are_the_fewest(difference: float, deviation: float, power: float) -> None:
    items = items_needed(difference, deviation, power)
    assert power_of(items, difference, deviation) >= power
    assert items == 2 or power_of(items - 1, difference, deviation) < power
    assert items_needed(-difference, deviation, power) == items
    assert items_needed(3 * difference, 3 * deviation, power) in {items - 1, items, items + 1}


def test_limits() -> None:
    assert power_of(1, 5.0, 1.0) == power_of(0, 5.0, 1.0) == 0.0
    assert power_of(100_000, 5.0, 1.0) == 1.0
    assert power_of(50, 0.0, 1.0) == pytest.approx(0.05)
    assert items_needed(0.0, 1.0) is None
    assert items_needed(1e-9, 1.0) is None
    assert items_for_equivalence(0.5, 0.5, 1.0) is None
    assert items_for_equivalence(0.0, 0.5, 1.0) == 36
    with pytest.raises(ValueError, match="above 0"):
        power_of(10, 1.0, 0.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        items_needed(1.0, 1.0, power=1.0)


def test_deviations_to_plan_with() -> None:
    assert default_deviation(1, 6) == pytest.approx(0.8)
    assert Preference().usual_deviation() == pytest.approx(np.std([-2, 0, 0, 2]))
    # Domhan et al. 2022, 350 items: 1.7 to 2.0 % of a baseline of about 4.5 points
    half_width = stats.t.ppf(0.975, 349) * default_deviation(1, 6) / np.sqrt(350)
    assert 1.7 < 100 * half_width / 4.5 < 2.0
