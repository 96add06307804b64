"""A rater's answers as numbers. Scores are in points of the protocol's scale, times in seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.protocols import Protocol
from creamtea.human.results.ratings import Array, Integers, Ratings, Words
from creamtea.stats.agreement import RaterAgreement, one_rating_each, rater_agreement
from creamtea.stats.estimate import Estimate
from creamtea.stats.rater_checks import RatersScores, Reading, expected_scores, longest_runs, reading
from creamtea.store.tables import (
    CONTROL_KINDS,
    PLANNED_KINDS,
    SYSTEM_KINDS,
    Assignment,
    Item,
    ItemKind,
    shown_of,
)
from creamtea.words import KANA_OR_HAN, UNSPACED, WORDS_PER_CHARACTER, WORDS_PER_LETTER, split_words

RUN_BY_CHANCE = 0.001  # runs that chance makes more seldom are the rater's
MIN_ITEMS = 10  # for times, equal scores and runs
MIN_CLUES = 10  # pairs of controls, and scores of which others let expect something
NONE = -1  # in a column of numbers


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What raters answered last, in columns: answers in the order of submission, and their scores.

    The scores of an answer are in the order in which its outputs were shown. Systems with the same text share
    a place.
    """

    # (answers,)
    rater: Integers  # numbers of raters
    item: Integers
    segment: Integers  # of the test set
    kind: Words
    original: Integers  # of a control: the item that it was made from; else NONE
    degraded: Integers  # of a bad reference: the position of the system whose text was spoilt; else NONE
    words: Array  # to read, see `reading_words`
    seconds: Array  # NaN where nobody measured
    # (scores,)
    answer: Integers  # rows of the answers' columns, ascending
    place: Integers  # within its answer, ascending
    system: Integers  # positions, ascending within a place
    step: Integers

    @property
    def texts(self) -> Integers:
        """The rows of scores that stand for a text each: those of its first system."""
        changed = (np.diff(self.answer, prepend=NONE) != 0) | (np.diff(self.place, prepend=NONE) != 0)
        return np.flatnonzero(changed)


def reading_words(source: str, context: Sequence[str], outputs: Sequence[str]) -> float:
    """Count the words that a rater has to read at least: context, source, and the words of the outputs.

    A word that outputs share counts as often as it stands in the output that has it most often, because
    whoever compares translations reads what they share once.
    """
    most: Counter[str] = Counter()
    for text in outputs:
        most |= Counter(split_words(text))
    read = [*(piece for text in (*context, source) for piece in split_words(text)), *most.elements()]
    return sum(map(_in_words, read))


def _in_words(piece: str) -> float:
    if not UNSPACED.match(piece):
        return 1.0
    return WORDS_PER_CHARACTER if KANA_OR_HAN.match(piece) else WORDS_PER_LETTER


def read_answers(session: Session, ratings: Ratings) -> Answers:
    """Read every submitted answer of a campaign, also those of excluded raters.

    Answers to items that the organiser wrote and third ratings are left out.
    """
    campaign, given = Item.campaign_id == ratings.campaign.id, ratings.given
    columns = (Item.id, Item.original_id, Item.degraded, Item.source, Item.context)
    items = {
        item.id: (
            NONE if item.original_id is None else item.original_id,
            NONE if item.degraded is None else item.degraded,
            reading_words(item.source, item.context, shown_of(item.outputs, item.output_drawn)),
        )
        for item in session.execute(select(*columns, Item.outputs, Item.output_drawn).where(campaign))
    }
    orders = session.execute(
        select(Assignment.id, Assignment.order)
        .join(Item, Item.id == Assignment.item_id)
        .where(campaign, Item.kind.in_(PLANNED_KINDS), Assignment.submitted_at.is_not(None))
        .order_by(Assignment.submitted_at, Assignment.id)
    ).all()
    shown = [
        (answer, place, system, assignment)
        for answer, (assignment, order) in enumerate(orders)
        for place, group in enumerate(order)
        for system in sorted(group)
    ]
    answer, place, system, assignment = np.array(shown, dtype=np.int64).reshape(-1, 4).T
    # `given` is in the order of assignments and systems; practice items may have more outputs than those
    systems = 1 + int(given.system.max(initial=0))
    row = np.searchsorted(given.assignment * systems + given.system, assignment * systems + system)
    first = row[np.flatnonzero(np.diff(answer, prepend=NONE))]
    of_item = np.array([items[item] for item in given.item[first].tolist()]).reshape(-1, 3).T
    return Answers(
        rater=ratings.rater_ids[given.rater[first]],
        item=given.item[first],
        segment=given.segment[first],
        kind=given.kind[first],
        original=of_item[0].astype(np.int64),
        degraded=of_item[1].astype(np.int64),
        words=of_item[2],
        seconds=given.seconds[first],
        answer=answer,
        place=place,
        system=system,
        step=given.step[row],
    )


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

    @property
    def strength(self) -> float | None:
        return self.reading.strength if self.clues >= MIN_CLUES else None

    @property
    def repeat_difference(self) -> float | None:
        return float(self.repeat_differences.mean()) if len(self.repeat_differences) else None

    @property
    def speed(self) -> float | None:
        """The median."""
        speeds = self.words_per_minute
        return float(np.median(speeds)) if len(speeds) >= MIN_ITEMS else None

    @property
    def share_equal(self) -> float | None:
        return self.equal / self.several if self.several else None

    @property
    def correlation(self) -> float | None:
        return self.agreement.value


def measure(
    answers: Answers, protocol: Protocol, counting: set[int], only: set[int] | None = None
) -> dict[int, Measures]:
    """Measure every rater with an answer (of `only` these), in the order of their first answers.

    `counting`: the raters whom the others are compared with (those who are not excluded).
    """
    size, each = float(protocol.scale.size), protocol.scores_each  # points per step
    raters = [rater for rater in dict.fromkeys(answers.rater.tolist()) if only is None or rater in only]
    texts = answers.texts
    of_answer = answers.answer[texts]  # (texts,)
    who, step = answers.rater[of_answer], answers.step[texts]
    rated = np.isin(answers.kind, SYSTEM_KINDS)[of_answer]
    judged = who[rated], _numbers(answers.segment[of_answer[rated]]), answers.system[texts[rated]]
    expected = expected_scores(*judged, size * step[rated], raters, counting)
    others = _against_others(answers, texts[rated], size, raters, counting)
    bad, repeats = _controls(answers, texts)
    found = {}
    for rater in raters:
        own = np.flatnonzero(who == rater)
        pairs = [np.searchsorted(own, both[who[both[:, 1]] == rater]) for both in (bad, repeats)]
        known = ~np.isnan(expected[rater])
        scores = RatersScores(
            value=step[own].astype(np.float64),
            answer=_numbers(of_answer[own]),
            bad=pairs[0],
            repeats=pairs[1],
            shared=np.flatnonzero(rated[own])[known],
            expected=expected[rater][known],
        )
        values = size * scores.value[rated[own]]
        timed = (answers.rater == rater) & ~np.isnan(answers.seconds)
        seconds, to_read = answers.seconds[timed], answers.words[timed]
        starts = np.flatnonzero(np.diff(scores.answer, prepend=NONE))
        steps = [tuple(answer.tolist()) for answer in np.split(scores.value, starts[1:])]
        several = [answer for answer in steps if len(answer) > 1]
        kinds = {answer: number for number, answer in enumerate(dict.fromkeys(steps))}
        order = np.array([kinds[answer] for answer in steps])
        run, by_chance = longest_runs(order)
        before, after = scores.value[scores.bad].T, scores.value[scores.repeats].T
        agreed = others[rater]
        found[rater] = Measures(
            answers=len(steps),
            bad_differences=size * (before[0] - before[1]),
            repeat_differences=size * np.abs(after[1] - after[0]),
            repeat_by_chance=_mean_difference(values) if len(values) > 1 else None,
            seconds=seconds,
            # at least a millisecond: a time of 0 is faster than any bound, not missing
            words_per_minute=(60 * to_read / np.maximum(seconds, 1e-3))[to_read > 0],
            several=len(several),
            equal=sum(len(set(answer)) == 1 for answer in several),
            longest_run=run,
            run_by_chance=by_chance,
            commonest=float(np.bincount(order).max()) / len(steps),
            values=values,
            reading=reading(scores, in_runs=by_chance < RUN_BY_CHANCE),
            clues=len(scores.bad) + (len(scores.repeats) + len(scores.shared)) // each,
            # one score for all, where the others tell texts apart, is no agreement at all
            agreement=Estimate(0.0, 0.0, 0.0) if agreed.constant else agreed.correlation,
            severity=agreed.severity.value,
            shared=agreed.outputs // each,
            rated=len(values) // each,
        )
    return found


def _numbers(labels: Integers) -> Integers:
    """Return (n,): equal numbers for equal labels, from 0 in their order."""
    numbers: Integers = np.unique(labels, return_inverse=True)[1]
    return numbers


def _controls(answers: Answers, texts: Integers) -> tuple[Integers, Integers]:
    """Return the pairs (pairs, 2) of an original and its bad reference, and of an original and its repeat.

    A pair has the positions in `texts` of two texts that the rater answered.
    """
    starts = np.searchsorted(answers.answer, np.arange(len(answers.rater) + 1)).tolist()
    text = np.searchsorted(texts, np.arange(len(answers.step)), side="right") - 1
    answered = {key: at for at, key in enumerate(zip(answers.rater, answers.item, strict=True))}
    bad: list[tuple[int, int]] = []
    repeats: list[tuple[int, int]] = []
    for control in np.flatnonzero(np.isin(answers.kind, CONTROL_KINDS)).tolist():
        original = answered.get((answers.rater[control], answers.original[control]))
        if original is None:
            continue
        before = slice(starts[original], starts[original + 1])
        place = dict(zip(answers.system[before].tolist(), text[before].tolist(), strict=True))
        spoilt = answers.kind[control] == ItemKind.BAD_REFERENCE
        for row in range(starts[control], starts[control + 1]):
            system = int(answers.system[row])
            judged = system == answers.degraded[control] if spoilt else texts[text[row]] == row
            if judged and system in place:
                (bad if spoilt else repeats).append((place[system], int(text[row])))
    both = [np.array(pairs, dtype=np.int64).reshape(-1, 2) for pairs in (bad, repeats)]
    return both[0], both[1]


def _mean_difference(values: Array) -> float:
    """Return Gini's mean difference: the mean |x − y| over all pairs of values (n,), n > 1."""
    n = len(values)
    weights = 2 * np.arange(1, n + 1) - n - 1
    return float(2 * (weights * np.sort(values)).sum() / (n * (n - 1)))


def _against_others(
    answers: Answers, texts: Integers, size: float, asked: Sequence[int], counting: set[int]
) -> dict[int, RaterAgreement]:
    """Compare each of the raters `asked` for with the others, on the `texts` of items that rate systems.

    An output is a distinct text among those of a segment, on one item or on several.
    """
    shown: dict[tuple[int, ...], int] = {}  # segment and systems
    numbers: dict[tuple[int, int], int] = {}  # of these, the first system of the text
    segments: list[int] = []  # of what is shown
    starts = np.searchsorted(answers.answer, np.arange(len(answers.rater) + 1)).tolist()
    outputs = []
    for answer, system in zip(answers.answer[texts].tolist(), answers.system[texts].tolist(), strict=True):
        systems = answers.system[starts[answer] : starts[answer + 1]]
        segment = int(answers.segment[answer])
        where = shown.setdefault((segment, *sorted(systems.tolist())), len(shown))
        if where == len(segments):
            segments.append(segment)
        outputs.append(numbers.setdefault((where, system), len(numbers)))
    raters = answers.rater[answers.answer[texts]]
    (who, what), points = one_rating_each(raters, outputs, value=size * answers.step[texts])
    owners = [where for where, _ in numbers]
    of_segment = [segments[where] for where in owners]
    agreements = rater_agreement(who, what, points, owners, asked, counting, of_segment)
    return {agreement.rater: agreement for agreement in agreements}
