"""Rater reports: do a rater's answers look like those of somebody who read and judged?

The answers of a rater become numbers, the measures: scores in points of the protocol's scale, times in
seconds. Each check compares one measure with a bound, and states the bound and its reason.

The bounds were set on simulated raters (tests/human/test_quality.py) and on the annotators of three published
campaigns (bench/rater_reports.py; FLAGGED says how many of them each check flags). A check with too little
data says so; it never passes for lack of data. A report interprets the checks together and makes a
suggestion. No check excludes anybody: a flag is a reason to look, and a person decides whether ratings count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.protocols import Protocol
from creamtea.human.results.ratings import Array, Integers, Ratings, Words, load_ratings
from creamtea.stats.agreement import RaterAgreement, one_rating_each, rater_agreement
from creamtea.stats.estimate import ROUNDING, Estimate, numbered
from creamtea.stats.paired import sign_flip
from creamtea.stats.rater_checks import RatersScores, Reading, expected_scores, longest_runs, reading
from creamtea.store.database import Database
from creamtea.store.tables import (
    CONTROL_KINDS,
    PLANNED_KINDS,
    SYSTEM_KINDS,
    Assignment,
    Campaign,
    Item,
    ItemKind,
    Rater,
    shown_of,
)
from creamtea.wording import counted, percent, with_minus
from creamtea.words import KANA_OR_HAN, UNSPACED, WORDS_PER_CHARACTER, WORDS_PER_LETTER, split_words

# ---------------------------------------------------------------- measures

RUN_BY_CHANCE = 0.001  # a run less probable than this is a habit of the rater
MIN_ITEMS = 10  # for times, equal scores and runs
MIN_CLUES = 10  # pairs of controls, and scores that other raters' scores predict
NONE = -1  # a missing number in a column


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The raters' last answers as columns: answers in the order of submission, and their scores.

    The scores of an answer are in the order in which its outputs were shown. Systems with the same text share
    a place.
    """

    # (answers,)
    rater: Integers  # ids of raters
    item: Integers
    segment: Integers  # of the test set
    kind: Words
    original: Integers  # for a control, the item that it was made from; else NONE
    degraded: Integers  # for a bad reference, the position of the system whose text was spoilt; else NONE
    words: Array  # to read, see `reading_words`
    seconds: Array  # NaN if not measured
    # (scores,)
    answer: Integers  # row in the answers' columns, ascending
    place: Integers  # within the answer, ascending
    system: Integers  # positions, ascending within a place
    step: Integers

    @property
    def texts(self) -> Integers:
        """One row of scores per distinct text: the row of its first system."""
        changed = (np.diff(self.answer, prepend=NONE) != 0) | (np.diff(self.place, prepend=NONE) != 0)
        return np.flatnonzero(changed)


def reading_words(source: str, context: Sequence[str], outputs: Sequence[str]) -> float:
    """Return the minimum number of words that a rater reads: context, source and outputs.

    A word that several outputs share counts once, or as often as one output repeats it: a rater who compares
    translations reads the shared words once.
    """
    distinct: Counter[str] = Counter()
    for text in outputs:
        distinct |= Counter(split_words(text))
    read = [*(piece for text in (*context, source) for piece in split_words(text)), *distinct.elements()]
    return sum(map(_length_in_words, read))


def _length_in_words(piece: str) -> float:
    if not UNSPACED.match(piece):
        return 1.0
    return WORDS_PER_CHARACTER if KANA_OR_HAN.match(piece) else WORDS_PER_LETTER


def read_answers(session: Session, ratings: Ratings) -> Answers:
    """Read all submitted answers of a campaign, also from excluded raters.

    Practice items, attention checks and third ratings are left out.
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
    # `given` is in the order of assignments and systems; practice items may have more outputs than systems
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
    """The measures of a rater that the checks judge; None if no answer allows the measure."""

    answers: int
    bad_differences: Array  # (pairs,) original − bad reference of the same system
    repeat_differences: Array  # (outputs,) |repeat − original|
    repeat_by_chance: float | None  # mean |difference| of two of the rater's scores picked at random
    seconds: Array  # (timed items,)
    words_per_minute: Array  # (timed items with words,)
    several: int  # items with at least two different outputs
    equal: int  # items among them whose outputs all got one score
    longest_run: int  # items in a row with the same answer, in the order of submission
    run_by_chance: float  # share of random orders of the rater's answers with such a run
    commonest: float  # share of the commonest answer
    values: Array  # (outputs,) scores of rated items, in points
    reading: Reading  # p-values: do the scores depend on the texts?
    clues: int  # evidence for `reading`: pairs of controls, and scores that others' scores predict
    at_end: bool  # most answers give every output the same end of the scale
    agreement: Estimate  # correlation with the others' mean on the same outputs
    constant: bool  # one score for all of these outputs, which is no agreement
    severity: float | None  # mean − the others' mean on the same outputs; below 0: stricter
    shared: int  # outputs (pairs, if scores are relative) that others rated too
    rated: int  # outputs (pairs)

    @property
    def spread(self) -> float | None:
        """The standard deviation of the scores."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def strength_per_clue(self) -> float | None:
        """The strength of the signs of reading with one clue; it grows with the square root of the clues."""
        strength = self.reading.strength
        return None if strength is None or self.clues < MIN_CLUES else strength / float(np.sqrt(self.clues))

    @property
    def repeat_difference(self) -> float | None:
        return float(self.repeat_differences.mean()) if len(self.repeat_differences) else None

    @property
    def speed(self) -> float | None:
        """The median of `words_per_minute`; None for too few items."""
        speeds = self.words_per_minute
        return float(np.median(speeds)) if len(speeds) >= MIN_ITEMS else None

    @property
    def share_equal(self) -> float | None:
        return self.equal / self.several if self.several else None

    @property
    def correlation(self) -> float | None:
        """The correlation of raters who tell outputs apart: one score for all has none."""
        return None if self.constant else self.agreement.value


def measure(
    answers: Answers, protocol: Protocol, counting: set[int], only: set[int] | None = None
) -> dict[int, Measures]:
    """Measure every rater with an answer, in the order of their first answers.

    `counting`: the raters whom each rater is compared with: all who are not excluded. `only`: the raters to
    measure, by default all.
    """
    size, each = float(protocol.scale.size), protocol.scores_each  # points per step
    raters = [rater for rater in dict.fromkeys(answers.rater.tolist()) if only is None or rater in only]
    texts = answers.texts
    of_answer = answers.answer[texts]  # (texts,)
    who, step = answers.rater[of_answer], answers.step[texts]
    rated = np.isin(answers.kind, SYSTEM_KINDS)[of_answer]
    judged = who[rated], numbered(answers.segment[of_answer[rated]]), answers.system[texts[rated]]
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
            answer=numbered(of_answer[own]),
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
        commonest, times = Counter(steps).most_common(1)[0]
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
            commonest=times / len(steps),
            at_end=2 * times > len(steps) and set(commonest) in ({0}, {protocol.scale.steps - 1}),
            values=values,
            reading=reading(scores, in_runs=by_chance < RUN_BY_CHANCE),
            clues=len(scores.bad) + (len(scores.repeats) + len(scores.shared)) // each,
            constant=agreed.constant,
            agreement=_no_agreement(agreed.outputs) if agreed.constant else agreed.correlation,
            severity=agreed.severity.value,
            shared=agreed.outputs // each,
            rated=len(values) // each,
        )
    return found


def _controls(answers: Answers, texts: Integers) -> tuple[Integers, Integers]:
    """Pair the original texts with their bad references, and with their repeats: (pairs, 2) each.

    A pair has the positions in `texts` of two texts that the same rater scored.
    """
    starts = np.searchsorted(answers.answer, np.arange(len(answers.rater) + 1)).tolist()
    text = np.searchsorted(texts, np.arange(len(answers.step)), side="right") - 1
    answered = {key: index for index, key in enumerate(zip(answers.rater, answers.item, strict=True))}
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


def _no_agreement(outputs: int) -> Estimate:
    """Return a correlation of 0 with Fisher's 95 % interval."""
    half = float(np.tanh(1.96 / np.sqrt(outputs - 3))) if outputs > 3 else 1.0
    return Estimate(0.0, -half, half)


def _mean_difference(values: Array) -> float:
    """Return Gini's mean difference: the mean |x − y| over all pairs of values (n,), n > 1."""
    n = len(values)
    weights = 2 * np.arange(1, n + 1) - n - 1
    return float(2 * (weights * np.sort(values)).sum() / (n * (n - 1)))


def _against_others(
    answers: Answers, texts: Integers, size: float, asked: Sequence[int], counting: set[int]
) -> dict[int, RaterAgreement]:
    """Compare each of the raters `asked` for with the others, on the `texts` of items that rate systems.

    An output is a distinct text of a segment, even if several items show it.
    """
    # (segment and systems shown together, first system of the text) → number of the output
    numbers: dict[tuple[tuple[int, ...], int], int] = {}
    starts = np.searchsorted(answers.answer, np.arange(len(answers.rater) + 1)).tolist()
    outputs = []
    for answer, system in zip(answers.answer[texts].tolist(), answers.system[texts].tolist(), strict=True):
        systems = answers.system[starts[answer] : starts[answer + 1]].tolist()
        shown = int(answers.segment[answer]), *sorted(systems)
        outputs.append(numbers.setdefault((shown, system), len(numbers)))
    raters = answers.rater[answers.answer[texts]]
    (who, what), points = one_rating_each(raters, outputs, value=size * answers.step[texts])
    places = {shown: number for number, shown in enumerate(dict.fromkeys(shown for shown, _ in numbers))}
    owners = [places[shown] for shown, _ in numbers]
    of_segment = [shown[0] for shown, _ in numbers]
    agreements = rater_agreement(who, what, points, owners, asked, counting, of_segment)
    return {agreement.rater: agreement for agreement in agreements}


# ---------------------------------------------------------------- bounds

State = Literal["ok", "flagged", "unknown"]

MIN_BAD = 5  # pairs: with 4 even a perfect rater has p = 1/16
MIN_REPEATS = 5  # outputs
MIN_SHARED = 10  # outputs

LEVEL = 0.05
ONE_IN_TWENTY = 1.645  # standard deviations: by chance, one strength of reading in 20 is that much too low
NOT_LOWER = 0.5  # p from which spoilt texts are scored no lower overall
MAX_SPEED = 476.0  # words per minute
EQUAL_SHARE, ABOVE_OTHERS = 0.5, 0.25
ONE_ANSWER, NEARLY_ALL = 0.9, 0.95
MIN_RUN = 10
NARROW = 1 / 3  # of the others' standard deviation
OF_USUAL = 0.5  # of the others' correlation
SEVERE = 0.3  # of the scale's range
AGAINST_OTHERS = ("reading", "agreement", "severity")  # checks that assume that the others are right
# checks that outputs so good, or so bad, that most scores are an end of the scale do not explain
UNEXPLAINED_BY_QUALITY = {"reading", "bad-references", "speed", "run", "agreement", "severity"}
ONE_OTHER = "with one other rater nobody can tell which of the two it is"

TOO_FAST, STRAIGHT, REVERSED, RANDOM = SIGNS = (
    "too fast",
    "straight-lining",
    "scale reversed",
    "at random",
)
IN_WORDS = {STRAIGHT: "like straight-lining", RANDOM: "given at random"}  # after "answers look …"
REVERSED_BY_CHANCE = 0.01  # p-value by random orders of the rater's own answers
BY_CHANCE = 0.1  # likewise, twice the bound of the check: below it, something shows reading

# ---------------------------------------------------------------- false alarms

# Measured by bench/rater_reports.py on annotators whom the organisers of three published campaigns accepted
# (docs/results/data/human-evaluation.yaml has the intervals). Crowd DA: WMT 2022 German-English, workers who
# had passed WMT's own quality control. ESA and MQM: the campaigns of Kocmi et al. 2024 on WMT 2023
# English-German. Some of these annotators may well have scored without reading: the rates are upper limits of
# false alarms.
CAMPAIGNS = ("crowd DA", "ESA", "MQM")
ANNOTATORS = (151, 33, 12)
DESCRIBED = (7, 1, 0)  # annotators with any of SIGNS
# annotators whom each check flags, by campaign; None: the campaign has no data for the check
FLAGGED: dict[str, tuple[int | None, int | None, int | None]] = {
    "reading": (18, 4, 1),
    "bad-references": (13, 0, 0),
    "repeats": (16, None, None),
    "speed": (None, 11, 4),  # with the texts; times that begin with the first click
    "one-answer": (0, 0, 0),
    "run": (7, 0, 0),
    "spread": (5, 0, 0),
    "agreement": (3, None, None),
    "severity": (5, None, None),
}


def described_in_words() -> str:
    """Return the number of accepted annotators with a sign, in total and by campaign, in words."""
    parts = ", ".join(
        f"{campaign} {count} of {of}"
        for campaign, count, of in zip(CAMPAIGNS, DESCRIBED, ANNOTATORS, strict=True)
    )
    share = 100 * sum(DESCRIBED) / sum(ANNOTATORS)
    together = f"{sum(DESCRIBED)} of {sum(ANNOTATORS)}"
    return f"{together} annotators of published campaigns, all accepted there ({share:.0f} %; {parts})"


# ---------------------------------------------------------------- checks


@dataclass(frozen=True)
class Check:
    """One check of a rater. `value` and `threshold` are in the unit that `shown` and `bound` name."""

    name: str
    title: str
    bound: str  # the flagged values, in words
    reason: str  # why this bound
    threshold: float | None = None
    state: State = "unknown"  # until the rater is judged
    value: float | None = None
    shown: str = ""  # the value in words, or why there is none

    def unknown(self, why: str) -> Check:
        return replace(self, shown=why)

    def judged(self, value: float, flagged: bool, shown: str) -> Check:
        return replace(self, state="flagged" if flagged else "ok", value=float(value), shown=shown)

    @property
    def measured(self) -> str:
        """How many accepted annotators of published campaigns it flags; "" if no campaign has data."""
        parts = [
            f"{count} of {of} ({campaign})"
            for campaign, count, of in zip(CAMPAIGNS, FLAGGED.get(self.name, ()), ANNOTATORS, strict=False)
            if count is not None
        ]
        return f"flags {', '.join(parts)} accepted annotators" if parts else ""


@dataclass(frozen=True)
class Comparison:
    """What a rater is compared with: the protocol, and the measures of the raters who count."""

    protocol: Protocol
    measures: Mapping[int, Measures]
    rater: int = NONE  # who is compared with the others
    # a field's values, by rater and sorted: computed once for all raters, so that a report's time is linear
    values: dict[str, tuple[dict[int, float], Array]] = field(default_factory=dict, repr=False)

    def others(self, measure: str) -> Array:
        """Return the values of a field of `Measures` for all others who have it, ascending."""
        if measure not in self.values:
            measures = {other: getattr(own, measure) for other, own in self.measures.items()}
            of_rater = {other: value for other, value in measures.items() if value is not None}
            self.values[measure] = of_rater, np.sort(np.array(list(of_rater.values()), dtype=np.float64))
        of_rater, ascending = self.values[measure]
        if self.rater not in of_rater:
            return ascending
        return np.delete(ascending, np.searchsorted(ascending, of_rater[self.rater]))

    def usual(self, measure: str) -> float | None:
        """Return the median over the others; None if nobody has this measure."""
        values = self.others(measure)
        return float(np.median(values)) if len(values) else None

    @property
    def one_other(self) -> bool:
        """Whether only one other rater counts: if the two differ, either of them may be wrong."""
        return len(self.measures) - (self.rater in self.measures) == 1

    @property
    def points_range(self) -> float:
        scale = self.protocol.scale
        return float(scale.highest - scale.lowest)


def judge(own: Measures, comparison: Comparison) -> list[Check]:
    """Make every check that applies to the protocol, in the order in which a report shows them."""
    checks = [signs_of_reading(own, comparison), bad_references(own), repeats(own, comparison)]
    checks.append(speed(own, comparison))
    if comparison.protocol.max_outputs > 1:
        checks.append(equal_scores(own, comparison))
    checks += [one_answer(own, comparison), longest_run(own), spread(own, comparison)]
    checks += [agreement(own, comparison)]
    if not comparison.protocol.relative:
        checks.append(severity(own, comparison))
    if comparison.one_other:  # each of the two would be flagged for being unlike the other
        checks = [
            replace(check, state="unknown", shown=f"{check.shown}; {ONE_OTHER}")
            if check.name in AGAINST_OTHERS and check.state == "flagged"
            else check
            for check in checks
        ]
    return checks


def signs_of_reading(own: Measures, comparison: Comparison) -> Check:
    """Test by permutation whether the scores depend on the texts (stats/rater_checks.py)."""
    per_clue = comparison.usual("strength_per_clue")
    usual = None if per_clue is None else per_clue * float(np.sqrt(own.clues))
    bound = (usual or 0.0) - ONE_IN_TWENTY
    turned = f"p < {REVERSED_BY_CHANCE:g} the wrong way round"
    low = f"p ≥ {LEVEL:g}, and less than {bound:.1f} standard deviations above chance"
    check = Check(
        "reading",
        "signs of reading",
        f"{low}; or {turned}" if bound > 0 else turned,
        "bad references, repeats and the others' scores together, compared with the rater's own answers in "
        "random order: habits such as round numbers, or many top scores, do not matter. Of raters who do not "
        f"read, one in twenty reaches p < {LEVEL:g}; of raters who read as the others do, one in twenty is "
        "below the bound. If the others show no reading, no rater can be compared with them",
        bound if bound > 0 else None,
    )
    if few := _few(own.clues, MIN_CLUES, "clue", "no controls, and nobody else's scores"):
        return check.unknown(few)
    p, strength = own.reading.reads or 1.0, own.reading.strength or 0.0
    above = with_minus(f"{strength:+.1f}")
    shown = f"{above} standard deviations above chance ({own.clues} clues, {_p_value(p)})"
    shown += _others(usual, "+.1f")
    unlike_others = bound > 0 and strength < bound
    if p >= LEVEL and not unlike_others and not _reversed(own.reading):
        return check.unknown(f"{shown}: too little to tell")
    return check.judged(strength, p >= LEVEL, shown)


def _reversed(found: Reading) -> bool:
    return found.reversed is not None and found.reversed < REVERSED_BY_CHANCE


def bad_references(own: Measures) -> Check:
    """Test whether spoilt texts are scored below their originals: one-sided paired sign-flip test."""
    check = Check(
        "bad-references",
        "bad references",
        f"p ≥ {NOT_LOWER:g}, original above bad reference",
        f"raters who read notice a spoilt text. Of raters who score at random, one in twenty reaches "
        f"p < {LEVEL:g}; with ten pairs, many raters who read do not reach it. Flagged if spoilt texts score "
        "no lower overall",
        NOT_LOWER,
    )
    differences = own.bad_differences
    if few := _few(len(differences), MIN_BAD, "pair", "no controls"):
        return check.unknown(few)
    p = sign_flip(differences, one_sided=True).p_value
    p = 1.0 if p is None else p  # no pair differs
    recognised = int((differences > 0).sum())
    lower = with_minus(f"{differences.mean():+.2f}")
    shown = f"{_p_value(p)}; {recognised} of {len(differences)} recognised, {lower} points"
    if LEVEL <= p < NOT_LOWER:
        return check.unknown(f"{shown}: too few pairs to tell")
    return check.judged(p, p >= NOT_LOWER, shown)


def repeats(own: Measures, comparison: Comparison) -> Check:
    """Judge the mean absolute difference between an item and its repeat."""
    check = Check(
        "repeats",
        "repeat consistency",
        "at least the difference of two of the rater's scores picked at random",
        "a rater who reads scores a repeated text more consistently than that",
    )
    mean, chance = own.repeat_difference, own.repeat_by_chance
    few = _few(len(own.repeat_differences), MIN_REPEATS, "repeated output", "no controls")
    if few or mean is None:
        return check.unknown(few)
    shown = f"{mean:.2f} points" + _others(comparison.usual("repeat_difference"), ".2f")
    if not chance:
        return check.unknown(f"{shown}; all scores are equal, so that repeats say nothing")
    return replace(check, threshold=chance).judged(mean, mean >= chance, f"{shown}, by chance {chance:.2f}")


def speed(own: Measures, comparison: Comparison) -> Check:
    """Judge the median reading speed over the items with a time.

    If the others are usually faster than anybody can read, the times measure something else (Appraise's begin
    with the first click), and nobody is judged by them.
    """
    check = Check(
        "speed",
        "time",
        f"median above {MAX_SPEED:.0f} words per minute",
        "twice the mean speed of silent reading of English prose, 238 words per minute (Brysbaert 2019)",
        MAX_SPEED,
    )
    speeds, value = own.words_per_minute, own.speed
    if value is None:
        return check.unknown(_few(len(speeds), MIN_ITEMS, "timed item", "no times"))
    others = comparison.others("speed")
    usual = others[(len(others) - 1) // 2] if len(others) else 0.0  # half of the others are at least as fast
    if usual > MAX_SPEED:
        short = f"the others' times are too short for reading ({usual:.0f} words per minute)"
        return check.unknown(f"{short}, so times are not judged")
    above = int((speeds > MAX_SPEED).sum())
    shown = f"{np.median(own.seconds):.1f} s per item, {value:.0f} words per minute; {above} of "
    return check.judged(
        value, value > MAX_SPEED, f"{shown}{counted(len(speeds), 'item')} faster than the bound"
    )


def equal_scores(own: Measures, comparison: Comparison) -> Check:
    """Judge the share of items whose different outputs all got the same score."""
    usual = comparison.usual("share_equal")
    threshold = max(EQUAL_SHARE, (usual or 0.0) + ABOVE_OTHERS)
    check = Check(
        "equal-scores",
        "equal scores",
        f"more than {percent(threshold)} of the items",
        f"half of the items, or {ABOVE_OTHERS * 100:.0f} percentage points above the others if that is more",
        threshold,
    )
    if few := _few(own.several, MIN_ITEMS, "item", "no such items", " with different outputs"):
        return check.unknown(few)
    share = own.equal / own.several
    return check.judged(share, share > threshold, _share(share, own.several, usual))


def one_answer(own: Measures, comparison: Comparison) -> Check:
    """Judge the share of the commonest answer."""
    usual = comparison.usual("commonest")
    threshold = max(ONE_ANSWER, min((usual or 0.0) + ABOVE_OTHERS, NEARLY_ALL))
    check = Check(
        "one-answer",
        "one answer",
        f"at least {percent(threshold)} of the items",
        f"nine of ten, or {ABOVE_OTHERS * 100:.0f} percentage points above the others if that is more: "
        "where most outputs are good, raters who read score three of four alike",
        threshold,
    )
    if few := _few(own.answers, MIN_ITEMS, "item", "no items"):
        return check.unknown(few)
    return check.judged(own.commonest, own.commonest >= threshold, _share(own.commonest, own.answers, usual))


def longest_run(own: Measures) -> Check:
    """Judge the longest run of items with the same scores at the same places."""
    check = Check(
        "run",
        "longest run",
        f"at least {MIN_RUN} items in a row, by chance less often than {RUN_BY_CHANCE:g}",
        "by chance: in random orders of the rater's own answers, so many equal answers alone raise no flag",
        RUN_BY_CHANCE,
    )
    if few := _few(own.answers, MIN_ITEMS, "item", "no items"):
        return check.unknown(few)
    run, p = own.longest_run, own.run_by_chance
    chance = f"{100 * p:.0f}" if p >= 0.1 else f"{100 * p:.2g}"
    shown = f"{run} of {own.answers} items; by chance in {chance} %"
    return check.judged(p, run >= MIN_RUN and p < RUN_BY_CHANCE, shown)


def spread(own: Measures, comparison: Comparison) -> Check:
    """Compare the standard deviation of the scores with the others'."""
    # without others, or with a single other, who may not be typical: a twentieth of the scale
    usual = None if comparison.one_other else comparison.usual("spread")
    threshold = 0.05 * comparison.points_range if usual is None else NARROW * usual
    check = Check(
        "spread",
        "use of the scale",
        f"standard deviation below {threshold:.2f} points",
        "a twentieth of the scale's range" if usual is None else "a third of the others' median",
        threshold,
    )
    if few := _few(own.rated, MIN_ITEMS, "score", "no scores"):
        return check.unknown(few)
    value = own.spread or 0.0
    shown = f"standard deviation {value:.2f} points" + _others(usual, ".2f")
    return check.judged(value, value < threshold, shown)


def agreement(own: Measures, comparison: Comparison) -> Check:
    """Judge the correlation with the mean of the others on the same outputs."""
    usual = comparison.usual("correlation")
    threshold = OF_USUAL * max(usual or 0.0, 0.0)
    check = Check(
        "agreement",
        "agreement",
        f"95 % interval of the correlation with the others below {threshold:.2f}",
        "half of the campaign's usual correlation; few shared outputs prove nothing",
        threshold,
    )
    few = _few_shared(own, comparison)
    value, low, high = own.agreement.value, own.agreement.low, own.agreement.high
    if few or value is None:
        return check.unknown(few or "the others always agree")
    if high is None:
        return check.unknown(own.agreement.reason or "no interval")
    r, *bounds = (with_minus(f"{bound:+.2f}") for bound in (value, low, high))
    interval = "" if low == high else f" [{', '.join(bounds)}]"
    shown = f"r = {r}{interval} on {own.shared} {comparison.protocol.judged}" + _others(usual, "+.2f")
    return check.judged(value, high < threshold, shown)


def severity(own: Measures, comparison: Comparison) -> Check:
    """Judge the distance of the rater's mean from the others' mean on the same outputs."""
    threshold = SEVERE * comparison.points_range
    check = Check(
        "severity",
        "severity",
        f"more than {counted(threshold, 'point')} from the others",
        "three tenths of the scale; severity cancels out when systems are compared side by side, but this "
        "much suggests that the scale was misunderstood",
        threshold,
    )
    few, value = _few_shared(own, comparison), own.severity
    if few or value is None:
        return check.unknown(few or "nothing shared")
    shown = f"{with_minus(f'{value:+.2f}')} points ({'milder' if value > 0 else 'stricter'} than the others)"
    return check.judged(value, abs(value) > threshold, shown)


def _p_value(p: float) -> str:
    """Write a p-value, rounded down, so that none looks as if it reached a bound."""
    return "p < 0.001" if p < 0.001 else f"p = {np.floor(1000 * p + ROUNDING) / 1000:.3f}"


def _share(share: float, items: int, usual: float | None) -> str:
    return f"{percent(share)} of {items} items" + ("" if usual is None else f"; others {percent(usual)}")


def _others(usual: float | None, digits: str) -> str:
    return "" if usual is None else f"; others {with_minus(f'{usual:{digits}}')}"


def _few(count: int, needed: int, noun: str, none: str, which: str = "") -> str:
    """Return why there is too little to judge by; "" if there is enough."""
    if count == 0:
        return none
    return f"only {counted(count, noun)}{which}, {needed} are needed" if count < needed else ""


def _few_shared(own: Measures, comparison: Comparison) -> str:
    noun = "pair" if comparison.protocol.relative else "output"
    nobody = "nobody else rated the same items"
    return _few(own.shared, MIN_SHARED, noun, nobody, " that others rated too")


# ---------------------------------------------------------------- reports


@dataclass(frozen=True)
class RaterReport:
    """The checks of a rater's answers. `seconds` and `values` (points) are for plots."""

    rater_id: int
    answers: int  # submitted items without practice items
    checks: tuple[Check, ...]
    signs: tuple[str, ...]  # from SIGNS
    seconds: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def flagged(self) -> list[Check]:
        return [check for check in self.checks if check.state == "flagged"]

    @property
    def suggestion(self) -> str:
        """What the organiser might look at, in words."""
        if not self.flagged:
            unknown = sum(check.state == "unknown" for check in self.checks)
            if unknown == len(self.checks):
                return "too little to judge yet"
            too_little = f"; {unknown} of {counted(len(self.checks), 'check')} have too little to judge by"
            return "nothing flagged" + (too_little if unknown else "")
        looks = ", ".join(IN_WORDS.get(sign, sign) for sign in self.signs)
        at = f"look at {', '.join(check.title for check in self.flagged)}"
        return f"{at} (answers look {looks})" if looks else at


def rater_reports(answers: Answers, protocol: Protocol, excluded: Collection[int] = ()) -> list[RaterReport]:
    """Report on every rater with an answer, in the order of their first answers.

    Each rater is compared with the others who are not excluded. Excluded raters have a report, too.
    """
    counting = set(answers.rater.tolist()) - set(excluded)
    measures = measure(answers, protocol, counting)
    others = Comparison(protocol, {rater: own for rater, own in measures.items() if rater in counting})
    return [report_of(rater, own, others) for rater, own in measures.items()]


def report_of(rater: int, own: Measures, others: Comparison) -> RaterReport:
    """Report on one rater, compared with others whose measures are known."""
    checks = judge(own, replace(others, rater=rater))
    lowest = float(others.protocol.scale.lowest)
    signs, values = signs_of(own, checks), (lowest + own.values).tolist()
    return RaterReport(rater, own.answers, tuple(checks), signs, tuple(own.seconds.tolist()), tuple(values))


def signs_of(own: Measures, checks: Sequence[Check]) -> tuple[str, ...]:
    """Return the signs that the flagged checks show together; none if something shows reading.

    Too fast: by the time. Scale reversed: scores significantly follow the texts the wrong way round.
    Straight-lining: nearly always one answer, equal scores, a long run, or a narrow use of the scale; if most
    scores are an end of the scale, only beside a flag that good or bad outputs do not explain. At
    random: none of these, but another order of the answers fits as well, and bad references are not
    recognised or the others show more reading.
    """
    flagged = {check.name for check in checks if check.state == "flagged"}
    state = {check.name: check.state for check in checks}
    p = 1.0 if own.reading.reads is None else own.reading.reads
    signs = [TOO_FAST] if "speed" in flagged and p >= BY_CHANCE else []
    # beside a single other rater "reading" is not flagged: the other's scale may be the reversed one
    if flagged & {"reading", "bad-references"} and _reversed(own.reading):
        return (*signs, REVERSED)
    if own.at_end and not flagged & UNEXPLAINED_BY_QUALITY:
        return ()
    if "one-answer" in flagged:
        return (*signs, STRAIGHT)
    if state["reading"] != "ok" and flagged & {"equal-scores", "run", "spread"}:
        return (*signs, STRAIGHT)
    # bad references tell without the others, if nothing else speaks for reading either
    unlike_readers = "reading" in flagged or ("bad-references" in flagged and p >= NOT_LOWER)
    if p >= BY_CHANCE and state["bad-references"] != "ok" and unlike_readers:
        signs.append(RANDOM)
    return tuple(signs)


def reports_of(database: Database, campaign_id: int) -> list[RaterReport]:
    """Report on a campaign's raters from the database. KeyError if there is no such campaign."""
    with database.session() as session:
        campaign = session.get(Campaign, campaign_id)
        if campaign is None:
            raise KeyError(campaign_id)
        excluded = session.scalars(
            select(Rater.id).where(Rater.campaign_id == campaign_id, Rater.excluded_at.is_not(None))
        ).all()
        ratings = load_ratings(session, campaign)
        return rater_reports(read_answers(session, ratings), ratings.campaign.protocol, excluded)
