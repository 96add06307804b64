"""Bootstrap and approximate randomisation against sacreBLEU's own, enumeration, and their promises."""

import itertools
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from noisy_texts import Array, as_statistics, bleu, mean_score, noisy, sentences
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result

from creamtea.stats import resampling
from creamtea.stats.resampling import (
    SEED,
    TRIALS,
    ScoreFunction,
    bootstrap_interval,
    bootstrap_pairs,
    paired_bootstrap,
    randomization_of_pairs,
    resampled_sums,
)
from creamtea_workers.metrics.sacrebleu_metrics import chrf_from_sums


def paired_randomization(
    baseline: list[Array], system: list[Array], score: ScoreFunction, trials: int = TRIALS, seed: int = SEED
) -> float:
    return randomization_of_pairs([baseline, system], score, trials, seed)[0, 1]


@pytest.fixture(scope="module")
def references() -> list[str]:
    return sentences(120)


@pytest.mark.slow
@pytest.mark.parametrize(("scorer", "score"), [(BLEU(), bleu), (CHRF(), chrf_from_sums)])
@pytest.mark.parametrize("rate", [0.30, 0.34, 0.36, 0.45])
def test_paired_bootstrap_equals_sacrebleus(
    scorer: BLEU | CHRF, score: resampling.ScoreFunction, rate: float, references: list[str]
) -> None:
    baseline, system = noisy(references, 0.36, 1), noisy(references, rate, 2)
    named = [("base", baseline), ("system", system)]
    test = PairedTest(named, {"metric": scorer}, [references], test_type="bs", n_samples=1000)
    theirs: list[Result] = next(values for key, values in test()[1].items() if key != "System")

    stats = [
        np.array(scorer._extract_corpus_statistics(h, [references]), dtype=float) for h in (baseline, system)
    ]
    ours = paired_bootstrap([stats[0]], [stats[1]], score)
    assert f"{ours.p_value:.4f}" == f"{theirs[1].p_value:.4f}"
    assert f"{ours.baseline:.4f} {ours.system:.4f}" == f"{theirs[0].score:.4f} {theirs[1].score:.4f}"
    for statistics, their in zip(stats, theirs, strict=True):
        interval = bootstrap_interval(statistics, score)
        assert f"{interval.value:.4f}" == f"{their.score:.4f}"
        assert f"{interval.mean:.4f} ± {interval.half_width:.4f}" == f"{their.mean:.4f} ± {their.ci:.4f}"


def test_resamples_are_numpys_draws_whatever_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = np.random.default_rng(3).integers(0, 50, size=(37, 3)).astype(float)
    drawn = np.random.default_rng(5).choice(37, size=(101, 37), replace=True)
    slow = np.stack([statistics[rows].sum(axis=0) for rows in drawn])
    for cells in (1, 37 * 2, 37 * 13 + 1, 10**6):
        monkeypatch.setattr(resampling, "_CHUNK_DRAWS", cells)
        assert np.array_equal(resampled_sums(statistics, 101, 5), slow)


def test_several_seeds_are_the_mean_of_their_scores_on_the_same_resample() -> None:
    rng = np.random.default_rng(0)
    base, first, second = (as_statistics(rng.normal(50, 10, 40)) for _ in range(3))
    result = paired_bootstrap([base], [first, second], mean_score, samples=200, seed=9)
    sums = [resampled_sums(statistics, 200, 9) for statistics in (base, first, second)]
    base_scores, first_scores, second_scores = (mean_score(each) for each in sums)
    differences = np.sort((first_scores + second_scores) / 2 - base_scores)
    assert result.delta == pytest.approx((first + second)[:, 0].mean() / 2 - base[:, 0].mean())
    assert (result.low, result.high) == pytest.approx((differences[5], differences[194]))


values = arrays(float, st.just(12), elements=st.floats(0, 100))


@given(values, values)
def test_swapping_the_systems_flips_the_sign_and_keeps_p(one: Array, other: Array) -> None:
    a, b = as_statistics(one), as_statistics(other)
    there, back = (paired_bootstrap([x], [y], mean_score, samples=200) for x, y in ((a, b), (b, a)))
    assert there.delta == -back.delta
    assert (there.low, there.high) == (-back.high, -back.low)
    assert (there.p_value, there.p_two_sided) == (back.p_value, back.p_two_sided)


@given(values)
@settings(max_examples=25)
def test_identical_systems_have_no_difference_and_p_one(one: Array) -> None:
    result = paired_bootstrap([as_statistics(one)], [as_statistics(one)] * 2, mean_score, samples=200)
    assert (result.delta, result.low, result.high) == (0, 0, 0)
    assert (result.p_value, result.p_two_sided) == (1, 1)


def test_equal_systems_are_called_different_in_five_of_a_hundred_comparisons() -> None:
    """Simulated as in WMT data: segments differ more than systems. sacreBLEU's p-value keeps its promise
    only for one direction; in either direction it cries wolf twice as often."""
    rng, runs, segments = np.random.default_rng(1), 1500, 150
    two_sided = one_direction = either_direction = 0
    for _ in range(runs):
        difficulty = rng.normal(50, 15, segments)
        outputs = [as_statistics(difficulty + rng.normal(0, 10, segments)) for _ in range(2)]
        result = paired_bootstrap(outputs[:1], outputs[1:], mean_score, 300, int(rng.integers(2**31)))
        two_sided += result.p_two_sided < 0.05
        either_direction += result.p_value < 0.05
        one_direction += result.p_value < 0.05 and result.delta > 0
    assert 0.03 <= two_sided / runs <= 0.07
    assert 0.03 <= one_direction / runs <= 0.07
    assert 0.08 <= either_direction / runs <= 0.12


def test_a_true_difference_is_found_and_covered() -> None:
    rng, runs = np.random.default_rng(2), 400
    found = covered = 0
    for _ in range(runs):
        difficulty = rng.normal(50, 15, 150)
        base, better = (as_statistics(difficulty + rng.normal(gain, 10, 150)) for gain in (0.0, 2.5))
        result = paired_bootstrap([base], [better], mean_score, 300, int(rng.integers(2**31)))
        found += result.p_two_sided < 0.05
        covered += result.low <= 2.5 <= result.high
    assert found / runs > 0.5  # the paired t-test's power here is about 0.58
    assert 0.92 <= covered / runs <= 0.98


@pytest.mark.parametrize("test", [paired_bootstrap, paired_randomization])
@pytest.mark.parametrize(
    ("baseline", "system", "message"),
    [
        ([], [np.ones((2, 2))], "needs at least one output of the baseline"),
        ([np.ones((3, 2))], [np.ones((2, 2))], "different shapes"),
        ([np.ones((0, 2))], [np.ones((0, 2))], "no segments"),
    ],
)
def test_what_cannot_be_paired_is_refused(
    baseline: list[Array], system: list[Array], message: str, test: Callable[..., object]
) -> None:
    with pytest.raises(ValueError, match=message):
        test(baseline, system, mean_score)


@pytest.mark.parametrize(
    ("segments", "groups", "reason"),
    [
        (1, None, "only one segment: no spread to judge by"),
        (1, ["a"], "only one segment: no spread to judge by"),
        (3, ["a", "b", "c"], "only one segment of each group: no spread to judge by"),
    ],
)
def test_resamples_that_cannot_differ_give_no_interval_and_no_evidence(
    segments: int, groups: list[str] | None, reason: str
) -> None:
    rng = np.random.default_rng(4)
    base, system = (as_statistics(rng.normal(50, 10, segments)) for _ in range(2))
    interval = bootstrap_interval(base, mean_score, groups)
    assert (interval.low, interval.high, interval.half_width) == (None, None, None)
    paired = paired_bootstrap([base], [system], mean_score, groups=groups)
    assert (paired.low, paired.high, paired.p_value, paired.p_two_sided) == (None, None, 1.0, 1.0)
    assert interval.reason == paired.reason == reason


def test_a_group_of_two_segments_is_enough_for_an_interval() -> None:
    values = as_statistics(np.array([40.0, 50.0, 60.0]))
    interval = bootstrap_interval(values, mean_score, ["a", "b", "b"])
    shown = (interval.low, interval.high, interval.reason)
    assert shown == (pytest.approx(140 / 3), pytest.approx(160 / 3), "")


@pytest.mark.parametrize("segments", [2, 3])
def test_the_interval_of_two_or_three_segments_is_their_range(segments: int) -> None:
    """It holds a median in 1 − 2 · 0.5ⁿ of cases: a half, and three quarters."""
    values = np.random.default_rng(segments).normal(50, 10, segments)
    interval = bootstrap_interval(as_statistics(values), mean_score)
    assert (interval.low, interval.high) == pytest.approx((values.min(), values.max()))


# ---------------------------------------------------------------- approximate randomisation


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


def test_edits_that_tie_count_and_do_not_in_sacrebleu(references: list[str]) -> None:
    lines, scorer, trials = references[:40], TER(), 1000
    systems = [noisy(lines, 0.36, 1), noisy(lines, 0.34, 2)]
    test = PairedTest(
        [("base", systems[0]), ("system", systems[1])], {"ter": scorer}, [lines], "ar", n_samples=trials
    )
    theirs = next(values for key, values in test()[1].items() if key != "System")[1]
    stats = [np.array(scorer._extract_corpus_statistics(text, [lines]), dtype=float) for text in systems]
    edits = (stats[1] - stats[0])[:, 0].astype(int)  # whole numbers: no rounding decides a tie
    drawn = np.random.default_rng(12345).integers(2, size=(trials, len(lines)), dtype=bool)
    trial, observed = np.abs(np.where(drawn, edits, -edits).sum(axis=1)), abs(edits.sum())
    above, tied = int((trial > observed).sum()), int((trial == observed).sum())
    assert tied > 0
    assert theirs.p_value == (above + 1) / (trials + 1)
    ours = paired_randomization([stats[0]], [stats[1]], mean_score, trials=trials)
    assert ours == (above + tied + 1) / (trials + 1)


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


seven_values = arrays(float, st.just(7), elements=st.integers(0, 100).map(float))


@given(st.lists(seven_values, min_size=1, max_size=3), st.lists(seven_values, min_size=1, max_size=3))
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


@given(seven_values, seven_values)
@settings(max_examples=25)
def test_the_order_of_the_two_does_not_matter(one: Array, other: Array) -> None:
    a, b = as_statistics(one), as_statistics(other)
    there, back = (paired_randomization([x], [y], mean_score, 200) for x, y in ((a, b), (b, a)))
    assert there == back


@pytest.mark.parametrize(("base_seeds", "system_seeds"), [(1, 1), (1, 3)])
def test_trials_call_equal_systems_different_in_five_of_a_hundred_comparisons(
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


# ---------------------------------------------------------------- every two systems at once


def test_all_pairs_are_what_each_pair_is_by_itself() -> None:
    rng = np.random.default_rng(0)
    systems = [[as_statistics(rng.normal(50, 10, 40)) for _ in range(seeds)] for seeds in (1, 2, 3, 2)]
    together = bootstrap_pairs(systems, mean_score, samples=200, seed=9)
    swapped = randomization_of_pairs(systems, mean_score, trials=300, seed=9)
    assert sorted(together) == sorted(swapped) == [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for (i, j), result in together.items():
        alone = paired_bootstrap(systems[i], systems[j], mean_score, samples=200, seed=9)
        assert vars(result) == pytest.approx(vars(alone))
        p = paired_randomization(systems[i], systems[j], mean_score, trials=300, seed=9)
        assert swapped[i, j] == p
