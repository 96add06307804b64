"""Approximate randomisation against sacreBLEU's own, enumeration, and its promise under equal systems."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from noisy_texts import Array, as_statistics, bleu, mean_score, noisy, sentences
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from creamtea.stats import resampling
from creamtea.stats.resampling import ScoreFunction, paired_randomization
from creamtea_workers.metrics.chrf import chrf_from_sums


@pytest.fixture(scope="module")
def references() -> list[str]:
    return sentences(90)


@pytest.mark.parametrize(("scorer", "score"), [(BLEU(), bleu), (CHRF(), chrf_from_sums)])
@pytest.mark.parametrize("rate", [0.30, 0.34, 0.45])
def test_the_p_value_is_sacrebleus_to_the_last_digit(
    scorer: BLEU | CHRF, score: ScoreFunction, rate: float, references: list[str]
) -> None:
    baseline, system = noisy(references, 0.36, 1), noisy(references, rate, 2)
    named = [("base", baseline), ("system", system)]
    test = PairedTest(named, {"metric": scorer}, [references], test_type="ar", n_samples=1000)
    theirs = next(values for key, values in test()[1].items() if key != "System")[1]
    stats = [
        np.array(scorer._extract_corpus_statistics(lines, [references]), dtype=float)
        for lines in (baseline, system)
    ]
    assert paired_randomization([stats[0]], [stats[1]], score, trials=1000) == theirs.p_value


def test_swaps_are_numpys_draws_whatever_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(5).integers(2, size=(101, 37), dtype=bool)
    for cells in (1, 37 * 32, 37 * 64 + 1, 10**6):
        monkeypatch.setattr(resampling, "_CHUNK_SWAPS", cells)
        assert np.array_equal(np.concatenate(list(resampling.swaps(37, 101, 5))), drawn)


def exact_p_value(baseline: list[Array], system: list[Array]) -> float:
    """Of all the ways of swapping, the share that is at least as far apart: means of values (n,)."""
    base, ours = np.mean(baseline, axis=0), np.mean(system, axis=0)
    signs = np.array(list(itertools.product([1, -1], repeat=len(base))))
    differences = np.abs(signs @ (ours - base))
    return float(np.mean(differences >= abs((ours - base).sum()) - 1e-6))


values = arrays(float, st.just(7), elements=st.integers(0, 100).map(float))


@given(st.lists(values, min_size=1, max_size=3), st.lists(values, min_size=1, max_size=3))
def test_trials_estimate_what_enumeration_gives_for_any_numbers_of_seeds(
    baseline: list[Array], system: list[Array]
) -> None:
    drawn = paired_randomization(
        [as_statistics(one) for one in baseline],
        [as_statistics(one) for one in system],
        mean_score,
        trials=4000,
    )
    assert drawn == pytest.approx(exact_p_value(baseline, system), abs=0.04)


def test_a_difference_in_one_segment_is_what_every_trial_gives() -> None:
    """Where sacreBLEU, which counts no ties, says p = 1 / (trials + 1)."""
    base = np.random.default_rng(0).normal(0.8, 0.1, 200)
    system = base.copy()
    system[17] += 0.05
    assert paired_randomization([as_statistics(base)], [as_statistics(system)], mean_score, 500) == 1


@given(values, values)
@settings(max_examples=25)
def test_the_order_of_the_two_does_not_matter(one: Array, other: Array) -> None:
    a, b = as_statistics(one), as_statistics(other)
    there, back = (paired_randomization([x], [y], mean_score, 200) for x, y in ((a, b), (b, a)))
    assert there == back


@pytest.mark.parametrize(("base_seeds", "system_seeds"), [(1, 1), (1, 3)])
def test_equal_systems_are_called_different_in_five_of_a_hundred_comparisons(
    base_seeds: int, system_seeds: int
) -> None:
    rng, runs, segments, alarms = np.random.default_rng(1), 1000, 100, 0
    for _ in range(runs):
        difficulty = rng.normal(50, 15, segments)
        base, system = (
            [as_statistics(difficulty + rng.normal(0, 10, segments)) for _ in range(count)]
            for count in (base_seeds, system_seeds)
        )
        seed = int(rng.integers(2**31))
        alarms += paired_randomization(base, system, mean_score, 300, seed) < 0.05
    assert 0.03 <= alarms / runs <= 0.07


def test_ten_thousand_trials_over_a_thousand_segments_take_a_few_seconds() -> None:
    rng = np.random.default_rng(0)
    possible = rng.integers(5, 30, size=(1000, 1)) - np.arange(4)
    base, system = (
        np.column_stack([possible[:, :1], possible[:, :1], rng.binomial(possible, 0.5), possible])
        for _ in range(2)
    )
    started = time.process_time()
    assert 0 < paired_randomization([base], [system], bleu) <= 1
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("baseline", "system", "message"),
    [
        ([], [np.ones((2, 2))], "needs at least one output of the baseline"),
        ([np.ones((3, 2))], [np.ones((2, 2))], "different shapes"),
        ([np.ones((0, 2))], [np.ones((0, 2))], "no segments"),
    ],
)
def test_what_cannot_be_paired_is_refused(baseline: list[Array], system: list[Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paired_randomization(baseline, system, mean_score)
