"""People against metrics: scipy's coefficients, slow versions by loops, and what renaming must not change."""

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from creamtea.stats.human_metric import (
    Kind,
    pairwise_accuracy,
    segment_correlation,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)

Array = NDArray[np.float64]
SCIPY = {"kendall": stats.kendalltau, "pearson": stats.pearsonr}
KINDS = pytest.mark.parametrize("kind", ["kendall", "pearson"])


def scores(seed: int, items: int = 30, systems: int = 4, holes: float = 0.2) -> tuple[Array, Array]:
    """People on 1–6 by 0.2 (many ties) and a metric that follows them, with holes on both sides."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(15, 4, (items, systems)) + np.arange(systems)
    human = 1 + 0.2 * np.clip(np.round(quality + rng.normal(0, 2, quality.shape)), 0, 25)
    metric = 100 * np.round(0.02 * quality + rng.normal(0, 0.03, quality.shape), 2)
    human[rng.random(human.shape) < holes] = np.nan
    metric[rng.random(human.shape) < holes / 2] = np.nan
    return human, metric


@KINDS
@pytest.mark.parametrize("seed", range(3))
def test_segment_correlations_are_scipys(kind: Kind, seed: int) -> None:
    human, metric = scores(seed)
    both = ~np.isnan(human) & ~np.isnan(metric)
    flat = segment_correlation(human, metric, kind, by_item=False)
    # steps as whole numbers: scipy sees the ties that floats hide
    steps = np.round((human - 1) / 0.2)
    assert flat.value == pytest.approx(SCIPY[kind](steps[both], metric[both]).statistic, rel=1e-12)

    found = segment_correlation(human, metric, kind, by_item=True)
    values = []
    for item in range(len(human)):
        x, y = steps[item, both[item]], metric[item, both[item]]
        if len(x) >= 2 and np.ptp(x) > 0 and np.ptp(y) > 0:
            values.append(SCIPY[kind](x, y).statistic)
    assert found.value == pytest.approx(np.mean(values), rel=1e-9)


@KINDS
def test_scores_that_differ_by_rounding_are_equal(kind: Kind) -> None:
    """Means over raters: (5.2 + 1.6) / 2 is a little more than 3.4."""
    human = np.array([[3.4, (5.2 + 1.6) / 2], [3.4, 5.0]])
    metric = np.array([[2.0, 1.0], [3.0, 4.0]])
    assert human[0, 1] > 3.4
    exact = np.where(human < 4, 3.4, human)
    assert segment_correlation(human, metric, kind, by_item=False) == segment_correlation(
        exact, metric, kind, by_item=False
    )
    flat = segment_correlation(human[:1], metric[:1], kind, by_item=False)
    assert flat.reason == "all human scores are equal"


def test_grouping_leaves_out_how_hard_an_item_is() -> None:
    """The metric knows hard items and nothing of the systems."""
    rng = np.random.default_rng(0)
    level = rng.normal(0, 5, (200, 1))
    human, metric = level + rng.normal(0, 1, (200, 4)), level + rng.normal(0, 1, (200, 4))
    for kind in ("kendall", "pearson"):
        assert segment_correlation(human, metric, kind, by_item=False).value > 0.7  # type: ignore[operator]
        grouped = segment_correlation(human, metric, kind, by_item=True)
        assert abs(grouped.value or 0) < 0.1


@KINDS
def test_correlations_that_are_not_defined_say_why(kind: Kind) -> None:
    equal, rising = np.full((3, 2), 3.4), np.arange(6.0).reshape(3, 2)
    assert segment_correlation(equal, rising, kind, by_item=False).reason == "all human scores are equal"
    assert segment_correlation(rising, equal, kind, by_item=False).reason == "all metric scores are equal"
    grouped = segment_correlation(equal, rising, kind, by_item=True)
    assert grouped.value is None
    assert grouped.reason == "no item has two systems that both sides tell apart"
    empty = np.full((2, 2), np.nan)
    assert segment_correlation(empty, empty, kind, by_item=False).value is None
    assert segment_correlation(empty, empty, kind, by_item=True).value is None
    assert segment_correlation([[1.0]], [[2.0]], kind, by_item=False).value is None


def slow_pairwise(human: Array, metric: Array) -> list[bool]:
    agree = []
    for a, b in itertools.combinations(range(human.shape[1]), 2):
        kept = ~np.isnan(human[:, a] + human[:, b] + metric[:, a] + metric[:, b])
        if kept.any():
            people = round(float((human[kept, a] - human[kept, b]).sum()), 9)
            theirs = round(float((metric[kept, a] - metric[kept, b]).sum()), 9)
            agree.append(np.sign(people) == np.sign(theirs))
    return agree


@pytest.mark.parametrize("seed", range(5))
def test_pairwise_accuracy_pair_by_pair(seed: int) -> None:
    human, metric = scores(seed, items=6, systems=7, holes=0.4)
    agree = slow_pairwise(human, metric)
    found = pairwise_accuracy(human, metric)
    assert found.value == pytest.approx(np.mean(agree))


def test_pairwise_accuracy_by_hand() -> None:
    human = np.array([[1.0, 2.0, 3.0, 3.0], [2.0, 3.0, 3.0, 3.0]])
    metric = np.array([[10.0, 30.0, 20.0, 20.0], [10.0, 30.0, 20.0, 20.0]])
    # people: 0 < 1 < 2 = 3, metric: 0 < 2 = 3 < 1; the pairs (1, 2) and (1, 3) disagree
    assert pairwise_accuracy(human, metric).value == pytest.approx(4 / 6)
    assert pairwise_accuracy(human, -metric).value == pytest.approx(3 / 6)
    assert pairwise_accuracy([[1.0]], [[1.0]]).reason == "no two systems share an item with all scores"


@pytest.mark.parametrize("seed", range(3))
def test_soft_pairwise_accuracy_by_loops(seed: int) -> None:
    human, metric = scores(seed, items=12, systems=4)
    turned = np.random.default_rng(5).integers(2, size=(300, 12), dtype=bool)
    errors = []
    for a, b in itertools.combinations(range(4), 2):
        kept = ~np.isnan(human[:, a] + human[:, b] + metric[:, a] + metric[:, b])
        if not kept.any():
            continue
        p = []
        for matrix in (human, metric):
            difference = matrix[kept, a] - matrix[kept, b]
            beyond = np.where(turned[:, kept], -difference, difference).sum(axis=1) - difference.sum()
            p.append(np.mean(beyond > 1e-6) + np.mean(np.abs(beyond) <= 1e-6) / 2)
        errors.append(abs(p[0] - p[1]))
    found = soft_pairwise_accuracy(human, metric, permutations=300, seed=5)
    assert found.value == pytest.approx(1 - np.mean(errors), abs=1e-12)


def test_soft_pairwise_accuracy_of_sure_agreement_and_sure_disagreement() -> None:
    rng = np.random.default_rng(1)
    human = rng.normal(0, 1, (200, 3)) + np.array([0, 3, 6])
    assert soft_pairwise_accuracy(human, human).value == 1.0
    assert soft_pairwise_accuracy(human, 10 * human + 5).value == 1.0
    assert soft_pairwise_accuracy(human, -human).value == pytest.approx(0.0, abs=0.01)
    # a metric that is unsure of what people are sure of loses half a point a pair
    blind = np.zeros((200, 3))
    assert soft_pairwise_accuracy(human, blind).value == pytest.approx(0.5, abs=0.01)
    assert soft_pairwise_accuracy(np.full((2, 2), np.nan), np.zeros((2, 2))).value is None


@given(st.integers(0, 10_000), st.randoms())
@settings(max_examples=30)
def test_names_and_order_change_nothing(seed: int, random: Random) -> None:
    human, metric = scores(seed, items=10)
    names, order = random.sample(range(4), 4), random.sample(range(10), 10)
    renamed = human[:, names], metric[:, names]
    moved = human[order], metric[order]
    for function in (
        pairwise_accuracy,
        tie_calibrated_accuracy,
        lambda h, m: segment_correlation(h, m, "kendall", by_item=True),
        lambda h, m: segment_correlation(h, m, "pearson", by_item=True),
    ):
        before = function(human, metric).value
        for other in (renamed, moved):
            after = function(*other).value
            assert (before is None) == (after is None)
            assert before is None or after == pytest.approx(before, abs=1e-9)
    soft, again = soft_pairwise_accuracy(human, metric, 100), soft_pairwise_accuracy(*renamed, 100)
    assert again.value == pytest.approx(soft.value, abs=1e-12)


def slow_tie_calibrated(human: Array, metric: Array) -> float:
    """Every threshold, item by item and pair by pair."""
    pairs: list[list[tuple[float, float]]] = []
    for x, y in zip(human, metric, strict=True):
        kept = ~np.isnan(x) & ~np.isnan(y)
        cells = list(zip(x[kept], y[kept], strict=True))
        pairs.append(
            [(round(a - c, 9), round(b - d, 9)) for (a, b), (c, d) in itertools.combinations(cells, 2)]
        )
    pairs = [item for item in pairs if item]
    best = 0.0
    for threshold in {0.0} | {abs(m) for item in pairs for _, m in item}:
        accuracies = [
            np.mean([np.sign(h) == (0 if abs(m) <= threshold else np.sign(m)) for h, m in item])
            for item in pairs
        ]
        best = max(best, float(np.mean(accuracies)))
    return best


@pytest.mark.parametrize("seed", range(5))
def test_tie_calibrated_accuracy_tries_every_threshold(seed: int) -> None:
    human, metric = scores(seed, items=15)
    found = tie_calibrated_accuracy(human, metric)
    assert found.value == pytest.approx(slow_tie_calibrated(human, metric), abs=1e-12)


def test_tie_calibration_by_hand() -> None:
    human, metric = np.array([[1.0, 1.0, 2.0]]), np.array([[0.1, 0.2, 0.9]])
    assert tie_calibrated_accuracy(human, metric).value == 1.0
    assert tie_calibrated_accuracy([[1.0, 2.0, 3.0]], [[0.1, 0.2, 0.9]]).value == 1.0


# Inputs and results in the tests of mt-metrics-eval (github.com/google-research/mt-metrics-eval, folder
# mt_metrics_eval): stats_test.py, and tau_optimization_test.py for the last three.


def test_googles_examples_of_correlations() -> None:
    people, metric = np.array([[1, 4], [2, 5], [3, 6]]), np.array([[2, 3], [1, 3], [4, 7]])
    flats: dict[Kind, float] = {"pearson": 0.776, "kendall": 0.552}
    for kind, flat in flats.items():
        assert segment_correlation(people, metric, kind, by_item=False).value == pytest.approx(flat, abs=5e-4)
        assert segment_correlation(people, metric, kind, by_item=True).value == pytest.approx(1.0)
    one_item = [[1, 2, 2, 3, 4]], [[2, 1, 1.5, 5, 3]]
    for by_item in (False, True):
        found = segment_correlation(*one_item, "kendall", by_item)
        assert found.value == pytest.approx(0.316227766)
    assert pairwise_accuracy([[1, 2, 3, 3, 4]], [[1, 1, 2, 1, 2]]).value == 5 / 10


NONE = np.nan


@pytest.mark.parametrize(
    ("people", "metric", "value"),
    [
        ([[1, 2, 2, 3, 4]], [[2, 1, 1.5, 5, 3]], 0.7),
        ([[1, 2, 3, 4]], [[0, 2, 6, 8]], 1.0),
        ([[1, 1, 1, 4]], [[0, 2, 6, 8]], 4 / 6),
        (
            [[1, 5, 2, 1, 1], [4, 2, 2, 1, 4], [5, 9, 2, 8, 7], [7, 6, NONE, 3, 2], [NONE] * 5],
            [[0, 5, 2, 3, 2], [NONE, 2, 1, 5, 3], [9, 1, 5, 3, 8], [9, 3, 4, 4, 1], [NONE] * 5],
            0.4916666666666668,
        ),
    ],
)
def test_googles_examples_of_tie_calibration(
    people: list[list[float]], metric: list[list[float]], value: float
) -> None:
    found = tie_calibrated_accuracy(people, metric)
    assert found.value == pytest.approx(value, abs=1e-12)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="matrices"):
        pairwise_accuracy(np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="finite"):
        soft_pairwise_accuracy([[np.inf, 1.0]], [[1.0, 2.0]])
