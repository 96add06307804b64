"""A rater's answers as numbers. Scores are in points of the protocol's scale, times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from creamtea.human.protocols import Protocol
from creamtea.human.quality.answers import RaterAnswer
from creamtea.stats.estimate import Estimate
from creamtea.stats.expected import expected_scores
from creamtea.stats.raters import RaterAgreement, rater_agreement
from creamtea.stats.reading import RatersScores, Reading, longest_runs, reading
from creamtea.stats.repeated import one_rating_each
from creamtea.store.item_kinds import ItemKind

Array = NDArray[np.float64]
RUN_BY_CHANCE = 0.001  # runs that chance makes more seldom are the rater's


@dataclass(frozen=True)
class Measures:
    """What the checks judge. None: there is nothing to measure it by."""

    answers: int
    bad_differences: Array  # (pairs,) original − bad reference of the same system by the same rater
    repeat_differences: Array  # (outputs,) |repeat − original|
    repeat_by_chance: float | None  # mean |difference| of two of the rater's scores picked at random
    seconds: Array  # (timed items,)
    words_per_minute: Array  # (timed items with words,)
    several: int  # items with at least two different outputs
    equal: int  # of those, items whose outputs all got one score
    longest_run: int  # items in a row with the same answer, in the order of submission
    run_by_chance: float  # how often the rater's answers in a random order have such a run
    commonest: float  # share of the commonest answer
    values: Array  # (outputs,) scores of rated items, in points
    reading: Reading  # p-values: do the scores depend on the texts?
    clues: int  # controls and scores with an expectation, which the reading is judged by
    agreement: Estimate  # correlation with the mean of the others on the same outputs
    severity: float | None  # mean − mean of the others on the same outputs; below 0: stricter
    shared: int  # outputs (pairs, where scores are relative) that others rated too
    rated: int  # outputs (pairs)

    @property
    def spread(self) -> float | None:
        """The standard deviation of the scores."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None


def measure(
    answers: Sequence[RaterAnswer], protocol: Protocol, counting: set[int], only: set[int] | None = None
) -> dict[int, Measures]:
    """The measures of every rater with an answer (of `only` these). `counting`: the raters whose scores the
    others are compared with (those who are not excluded)."""
    size = float(protocol.scale.size)  # points per step
    by_rater: dict[int, list[RaterAnswer]] = {}
    for answer in answers:
        by_rater.setdefault(answer.rater, []).append(answer)
    if only is not None:
        by_rater = {rater: own for rater, own in by_rater.items() if rater in only}
    others = _against_others(answers, size, list(by_rater), counting)
    expected = _expectations(answers, size, list(by_rater), counting)
    return {
        rater: _measures_of_rater(own, size, others[rater], expected[rater], protocol.scores_each)
        for rater, own in by_rater.items()
    }


def _measures_of_rater(
    own: list[RaterAnswer], size: float, others: RaterAgreement, expected: Array, each: int
) -> Measures:
    rated = [answer for answer in own if answer.kind.rates_systems]
    values = size * np.array([step for answer in rated for step in answer.steps], dtype=np.float64)
    timed = [answer for answer in own if answer.active_ms is not None]
    seconds = np.array([answer.active_ms or 0 for answer in timed], dtype=np.float64) / 1000
    words = np.array([answer.words for answer in timed], dtype=np.float64)
    several = [answer for answer in own if len(answer.steps) > 1]
    kinds = {steps: number for number, steps in enumerate(dict.fromkeys(answer.steps for answer in own))}
    order = np.array([kinds[answer.steps] for answer in own])
    run, by_chance = longest_runs(order)
    bad, repeats = _control_differences(own, size)
    scores = _scores(own, expected)
    return Measures(
        answers=len(own),
        bad_differences=bad,
        repeat_differences=repeats,
        repeat_by_chance=_mean_difference(values) if len(values) > 1 else None,
        seconds=seconds,
        # at least a millisecond: a time of 0 is faster than any bound, not missing
        words_per_minute=(60 * words / np.maximum(seconds, 1e-3))[words > 0],
        several=len(several),
        equal=sum(len(set(answer.steps)) == 1 for answer in several),
        longest_run=run,
        run_by_chance=by_chance,
        commonest=float(np.bincount(order).max()) / len(own),
        values=values,
        reading=reading(scores, in_runs=by_chance < RUN_BY_CHANCE),
        clues=len(scores.bad) + (len(scores.repeats) + len(scores.shared)) // each,
        # one score for all, where the others tell texts apart, is no agreement at all
        agreement=Estimate(0.0, 0.0, 0.0) if others.constant else others.correlation,
        severity=others.severity.value,
        shared=others.outputs // each,
        rated=len(values) // each,
    )


def _control_differences(own: list[RaterAnswer], size: float) -> tuple[Array, Array]:
    """Original − bad reference and |repeat − original|, where the rater answered both."""
    by_item = {answer.item: answer for answer in own}
    bad, repeats = [], []
    for answer in own:
        original = by_item.get(answer.original) if answer.original is not None else None
        if original is None:
            continue
        if answer.kind is ItemKind.BAD_REFERENCE and answer.degraded is not None:
            before, after = original.step_of(answer.degraded), answer.step_of(answer.degraded)
            if before is not None and after is not None:
                bad.append(size * (before - after))
        elif answer.kind is ItemKind.REPEAT:
            for group, step in zip(answer.groups, answer.steps, strict=True):
                before = original.step_of(group[0])
                if before is not None:
                    repeats.append(size * abs(step - before))
    return np.array(bad, dtype=np.float64), np.array(repeats, dtype=np.float64)


def _scores(own: list[RaterAnswer], expected: Array) -> RatersScores:
    """All scores of a rater, with the places of the controls, and what others let expect of rated outputs
    (`expected`, in their order)."""
    first: dict[int, int] = {}  # item → where its scores begin
    at = 0
    for answer in own:
        first[answer.item] = at
        at += len(answer.steps)
    by_item = {answer.item: answer for answer in own}
    bad: list[tuple[int, int]] = []
    repeats: list[tuple[int, int]] = []
    for answer in own:
        original = by_item.get(answer.original) if answer.original is not None else None
        if original is None or answer.kind not in (ItemKind.BAD_REFERENCE, ItemKind.REPEAT):
            continue
        for place, group in enumerate(answer.groups):
            spoilt = answer.kind is ItemKind.BAD_REFERENCE
            system = answer.degraded if spoilt else group[0]
            before = original.place_of(system)
            if system in group and before is not None:
                pair = (first[original.item] + before, first[answer.item] + place)
                (bad if spoilt else repeats).append(pair)
    rated = np.concatenate([np.full(len(answer.steps), answer.kind.rates_systems) for answer in own])
    known = ~np.isnan(expected)
    return RatersScores(
        value=np.array([step for answer in own for step in answer.steps], dtype=np.float64),
        answer=np.repeat(np.arange(len(own)), [len(answer.steps) for answer in own]),
        bad=np.array(bad, dtype=np.int64).reshape(-1, 2),
        repeats=np.array(repeats, dtype=np.int64).reshape(-1, 2),
        shared=np.flatnonzero(rated)[known],
        expected=expected[known],
    )


def _expectations(
    answers: Sequence[RaterAnswer], size: float, raters: Sequence[int], counting: set[int]
) -> dict[int, Array]:
    """By rater, for the scores of rated items in their order."""
    rows = [
        (answer.rater, answer.segment, group[0], step)
        for answer in answers
        if answer.kind.rates_systems
        for group, step in zip(answer.groups, answer.steps, strict=True)
    ]
    who, where, what, steps = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    _, segment = np.unique(where, return_inverse=True)
    return expected_scores(who, segment, what, size * steps, raters, counting)


def _mean_difference(values: Array) -> float:
    """Gini's mean difference: the mean |x − y| over all pairs of values (n,), n > 1."""
    n = len(values)
    weights = 2 * np.arange(1, n + 1) - n - 1
    return float(2 * (weights * np.sort(values)).sum() / (n * (n - 1)))


def _against_others(
    answers: Sequence[RaterAnswer], size: float, asked: Sequence[int], counting: set[int]
) -> dict[int, RaterAgreement]:
    """By rater of those `asked` for. An output is a distinct text of what a segment shows together, on one
    item or on several; controls are left out."""
    shown: dict[tuple[int, ...], int] = {}  # segment and systems
    numbers: dict[tuple[int, int], int] = {}  # of these, the first system of the text
    segments: list[int] = []  # of what is shown
    raters, outputs, steps = [], [], []
    for answer in answers:
        if not answer.kind.rates_systems:
            continue
        together = (answer.segment, *sorted(system for group in answer.groups for system in group))
        where = shown.setdefault(together, len(shown))
        if where == len(segments):
            segments.append(answer.segment)
        for group, step in zip(answer.groups, answer.steps, strict=True):
            raters.append(answer.rater)
            outputs.append(numbers.setdefault((where, min(group)), len(numbers)))
            steps.append(step)
    (who, what), points = one_rating_each(raters, outputs, value=size * np.array(steps, dtype=np.float64))
    owners = [where for where, _ in numbers]
    of_segment = [segments[where] for where in owners]
    agreements = rater_agreement(who, what, points, owners, asked, counting, of_segment)
    return {agreement.rater: agreement for agreement in agreements}
