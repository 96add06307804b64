"""The permutation test of reading: exact on small cases, right level, blind to habits."""

from dataclasses import replace
from itertools import groupby, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creamtea.stats.rater_checks import (
    OWN_OUTPUT,
    SHRINKAGE,
    RatersScores,
    Reading,
    expected_scores,
    longest_runs,
    reading,
)

ITEMS, PAIRS = 60, 8


def a_rater(rng: np.random.Generator, judges: bool, coarse: bool = False, runs: bool = False) -> RatersScores:
    """60 outputs, the first eight with a bad reference, the next eight with a repeat, at the end."""
    quality = rng.normal(60, 15, ITEMS)
    seen = np.concatenate([quality, quality[:PAIRS] - 25, quality[PAIRS : 2 * PAIRS]])
    value = seen + rng.normal(0, 12, len(seen)) if judges else rng.uniform(0, 100, len(seen))
    if runs:
        value = np.repeat(rng.uniform(0, 100, len(seen)), 12)[: len(seen)]
    if coarse:
        value = np.minimum(100, np.round((value + 40) / 10) * 10)  # tens, most of them at the top
    control = ITEMS + np.arange(2 * PAIRS)
    return RatersScores(
        value=value,
        answer=np.arange(len(seen)),
        bad=np.stack([np.arange(PAIRS), control[:PAIRS]], axis=1),
        repeats=np.stack([PAIRS + np.arange(PAIRS), control[PAIRS:]], axis=1),
        shared=np.arange(ITEMS),
        expected=quality + rng.normal(0, 15, ITEMS),
    )


def test_who_does_not_read_passes_one_time_in_twenty() -> None:
    rng = np.random.default_rng(1)
    p = np.array([reading(a_rater(rng, judges=False), 199).reads or 0.0 for _ in range(400)])
    assert 0.03 <= np.mean(p <= 0.05) <= 0.08
    assert 0.42 <= p.mean() <= 0.58


def test_who_reads_is_seen_to_also_with_coarse_habits_and_a_ceiling() -> None:
    rng = np.random.default_rng(2)
    for coarse in (False, True):
        found = [reading(a_rater(rng, judges=True, coarse=coarse), 199).reads or 1.0 for _ in range(30)]
        assert np.mean(np.array(found) < 0.05) > 0.95


def test_evidence_that_always_cancels_has_no_strength() -> None:
    """One bad reference that others rate above its original: rounding must not pass for a deviation."""
    scores = RatersScores(
        value=np.array([1.0, 2.0]),
        answer=np.arange(2),
        bad=np.array([[0, 1]]),
        repeats=np.zeros((0, 2), dtype=np.int64),
        shared=np.arange(2),
        expected=np.array([0.0, 1.0]),
    )
    assert reading(scores) == Reading(1.0, 1.0, 0.0)


def test_a_reversed_scale_is_significant_the_other_way() -> None:
    rng = np.random.default_rng(3)
    honest = a_rater(rng, judges=True)
    turned = replace(honest, value=-honest.value)
    assert (reading(honest).reversed or 0.0) > 0.9
    assert (reading(turned).reversed or 1.0) < 0.01


def test_long_runs_look_consistent_only_to_the_first_null() -> None:
    """Scores in runs of twelve are near their neighbours' whoever gives them."""
    rng = np.random.default_rng(4)
    drifting = []
    for _ in range(60):
        rater = a_rater(rng, judges=False, runs=True)
        near = np.stack([np.arange(0, 40, 2), np.arange(1, 40, 2)], axis=1)  # repeats right after
        drifting.append(replace(rater, repeats=near))
    by_order = [reading(one, 199).reads or 0.0 for one in drifting]
    by_start = [reading(one, 199, in_runs=True).reads or 0.0 for one in drifting]
    assert np.mean(np.array(by_order) < 0.05) > 0.5
    assert np.mean(np.array(by_start) < 0.05) < 0.15


def test_one_score_for_all_shows_nothing_and_nothing_to_judge_by_is_none() -> None:
    rater = a_rater(np.random.default_rng(5), judges=True)
    assert reading(replace(rater, value=np.full(len(rater.value), 7.0))).reads == 1.0
    none, pairs = np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    nothing = replace(rater, bad=pairs, repeats=pairs, shared=none, expected=none * 1.0)
    assert reading(nothing).reads is None


@given(st.lists(st.integers(0, 2), min_size=2, max_size=6))
@settings(max_examples=20)
def test_runs_by_chance_are_those_of_all_orders(answers: list[int]) -> None:
    def longest(order: tuple[int, ...]) -> int:
        return max(len(list(run)) for _, run in groupby(order))

    run, p = longest_runs(np.array(answers), 4000, seed=6)
    assert run == longest(tuple(answers))
    exact = np.mean([longest(order) >= run for order in permutations(answers)])
    assert p == pytest.approx(exact, abs=0.05)


ONE = st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2), st.integers(0, 100).map(float))


@given(st.lists(ONE, min_size=1, max_size=60), st.sets(st.integers(0, 4)))
def test_expected_scores_by_a_slow_oracle(
    ratings: list[tuple[int, int, int, float]], counting: set[int]
) -> None:
    """Every other rating is looked at for each rating of each rater; raters 0 to 3 are asked for."""
    who, where, what, score = (np.array(column) for column in zip(*ratings, strict=True))
    z = np.zeros(len(score))
    for rater in set(who.tolist()):
        own = who == rater
        if np.ptp(score[own]) > 0:
            z[own] = (score[own] - score[own].mean()) / score[own].std(ddof=1)
    found = expected_scores(who, where, what, score, range(4), counting)
    assert list(found) == [0, 1, 2, 3]
    for rater in range(4):
        others = [i for i in range(len(score)) if who[i] in counting and who[i] != rater]
        usual = {s: np.mean([z[i] for i in others if what[i] == s] or [np.nan]) for s in range(3)}
        rows = np.flatnonzero(who == rater)
        assert len(found[rater]) == len(rows)
        for place, row in enumerate(rows):
            weights = [
                (OWN_OUTPUT if what[i] == what[row] else 1.0) for i in others if where[i] == where[row]
            ]
            above = [z[i] - usual[what[i]] for i in others if where[i] == where[row]]
            wanted = usual[what[row]] + np.dot(weights, above) / (SHRINKAGE + sum(weights))
            assert found[rater][place] == pytest.approx(wanted, abs=1e-8, nan_ok=True)


def test_who_gives_one_score_throughout_lets_one_expect_nothing() -> None:
    """The mean of three times 1.4 is a little less than 1.4."""
    score = [1.4, 1.4, 1.4, 1.0, 5.0]
    found = expected_scores([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0] * 5, score, [1], {0})
    assert found[1].tolist() == [0.0, 0.0]
