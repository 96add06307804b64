"""Rater reports: hand-computed checks, missing controls, simulated raters told apart, and stored answers."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import simulated_answers
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulated_answers import RaterAnswer, by_columns
from small_campaigns import add_rater, make_campaign, results_of, work_for

from creamtea.human import quality
from creamtea.human import rating as assignment
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.quality import (
    Check,
    Comparison,
    RaterReport,
    rater_reports,
    read_answers,
    reading_words,
    reports_of,
)
from creamtea.human.rating import raters
from creamtea.stats.agreement import rater_agreement
from creamtea.stats.rater_checks import Reading
from creamtea.store.database import Database
from creamtea.store.tables import ItemKind

DA = find_protocol("da")


def answer(rater: int, item: int, *steps: int, seconds: float | None = 30.0, **more: Any) -> RaterAnswer:
    groups = tuple((system,) for system in range(len(steps)))
    own = RaterAnswer(rater, item, item, groups, steps, words=60.0, seconds=seconds)
    return replace(own, **more)


def reports_on(
    answers: list[RaterAnswer], protocol: Protocol, excluded: Sequence[int] = ()
) -> list[RaterReport]:
    return rater_reports(by_columns(answers), protocol, excluded)


def check(report: RaterReport, name: str) -> Check:
    return next(check for check in report.checks if check.name == name)


def report_of(answers: list[RaterAnswer], rater: int = 1, protocol: str = "contrastive-da") -> RaterReport:
    return next(one for one in reports_on(answers, find_protocol(protocol)) if one.rater_id == rater)


def with_bad_references(drops: list[int]) -> list[RaterAnswer]:
    """Items whose first output's score falls by so many steps where its text was spoilt."""
    rated = [answer(1, i, 20, 3 + i) for i in range(len(drops))]
    bad = [
        answer(1, 100 + i, 20 - drop, 3 + i, kind=ItemKind.BAD_REFERENCE, original=i, degraded=0)
        for i, drop in enumerate(drops)
    ]
    return rated + bad


@pytest.mark.parametrize(
    ("drops", "value", "state", "shown"),
    [
        # five of five lower: one sign pattern of 32
        ([5] * 5, 1 / 32, "ok", "p = 0.031; 5 of 5 recognised, +1.00 points"),
        # sums of ±1 ±1 ±1 ±1 ±1 ±1 points: at least 4 in 7 of 64 patterns, by six pairs
        (
            *([5, 5, 5, 5, 5, -5], None, "unknown"),
            "p = 0.109; 5 of 6 recognised, +0.67 points: too few pairs to tell",
        ),
        ([-5] * 6, 1.0, "flagged", "p = 1.000; 0 of 6 recognised, −1.00 points"),  # a reversed scale
        # sums of at least −2 in 64 − 7 of 64 patterns
        ([5, 5, -5, -5, -5, -5], 57 / 64, "flagged", "p = 0.890; 2 of 6 recognised, −0.33 points"),
        ([0] * 8, 1.0, "flagged", "p = 1.000; 0 of 8 recognised, 0.00 points"),
    ],
)
def test_bad_references_by_the_differences_from_their_originals(
    drops: list[int], value: float | None, state: str, shown: str
) -> None:
    found = check(report_of(with_bad_references(drops)), "bad-references")
    assert (found.state, found.shown) == (state, shown)
    assert found.value == (value if value is None else pytest.approx(value, abs=0.01))


def test_a_bad_reference_counts_by_the_system_whose_text_was_spoilt() -> None:
    # the spoilt output is shown first in the control and second in the original
    answers = [answer(1, i, 3, 20, groups=((1,), (0,))) for i in range(6)]
    answers += [
        answer(1, 10 + i, 5, 3, kind=ItemKind.BAD_REFERENCE, original=i, degraded=0, groups=((0,), (1,)))
        for i in range(6)
    ]
    found = check(report_of(answers), "bad-references")
    assert found.shown.endswith("6 of 6 recognised, +3.00 points")


def test_repeats_in_points_beside_chance_and_the_others() -> None:
    def one(rater: int, moved: int) -> list[RaterAnswer]:
        rated = [answer(rater, i, 5 * i) for i in range(5)]  # 1, 2, 3, 4, 5 points
        again = [answer(rater, 10 + i, 5 * i + moved, kind=ItemKind.REPEAT, original=i) for i in range(5)]
        return rated + again

    found = check(report_of(one(1, 1) + one(2, 4), 1, "contrastive-da"), "repeats")
    # pairs of 1 … 5: four of 1, three of 2, two of 3, one of 4: 20/10
    assert found.shown == "0.20 points; others 0.80, by chance 2.00"
    assert found.threshold == pytest.approx(2.0)
    assert check(report_of(one(1, 10)), "repeats").state == "flagged"


def test_speed_in_words_a_minute() -> None:
    for seconds, value, state in ((30, 120.0, "ok"), (7.5, 480.0, "flagged"), (0, None, "flagged")):
        found = check(report_of([answer(1, i, 3, 4, seconds=seconds) for i in range(10)]), "speed")
        assert found.state == state
        assert value in (None, found.value)


@pytest.mark.parametrize(
    ("seconds", "states"),
    [
        ((30, 29, 1), ["ok", "ok", "flagged"]),  # one click does not make the times of the readers too short
        ((1, 2, 30), ["flagged", "flagged", "unknown"]),
        ((1, 2, 3), ["unknown"] * 3),
    ],
)
def test_times_say_nothing_if_the_others_cannot_have_read(seconds: Sequence[int], states: list[str]) -> None:
    answers = [answer(who, i, 3, 4, seconds=time) for who, time in enumerate(seconds) for i in range(10)]
    assert [check(report_of(answers, who), "speed").state for who in range(3)] == states


def test_a_shared_word_is_read_once() -> None:
    assert reading_words("a b", ["c d e"], ["x y y", "x y z"]) == 5 + 4
    assert reading_words("你好，世界", [], [""]) == pytest.approx(4 * 0.6 + 1)
    assert reading_words("ที่นี่ tea", [], [""]) == pytest.approx(2 * 0.2 + 1)


def test_equal_scores_runs_and_spread() -> None:
    lively = [answer(2, i, i % 7, 8 + i % 3) for i in range(20)]
    straight = [answer(1, i, 12, 12) for i in range(14)] + [answer(1, 14 + i, 12, 13) for i in range(6)]
    report = report_of(straight + lively)
    assert check(report, "equal-scores").shown == "70 % of 20 items; others 0 %"
    assert check(report, "run").shown.startswith("14 of 20 items; by chance in ")
    assert {one.name for one in report.flagged} >= {"equal-scores", "spread"}
    assert report.signs == ("straight-lining",)
    assert "straight-lining" in report.suggestion


def test_many_ties_of_everybody_are_no_straight_line() -> None:
    tied = [answer(rater, i, 1, 1) for rater in (1, 2, 3) for i in range(18)]
    tied += [answer(rater, 18 + i, 2, 0) for rater in (1, 2, 3) for i in range(2)]
    report = report_of(tied, 1, "preference")
    assert check(report, "equal-scores").state == "ok"
    assert check(report, "spread").state == "ok"
    assert {one.name for one in report.checks} >= {"agreement", "speed"}
    assert all(one.name != "severity" for one in report.checks)  # preferences always add up to the same


def test_the_two_outputs_of_a_pair_are_one_judgement() -> None:
    rng = np.random.default_rng(4)
    first = rng.integers(0, 3, (2, 12))
    answers = [answer(rater, i, first[rater, i], 2 - first[rater, i]) for rater in (0, 1) for i in range(12)]
    report = report_of(answers, 0, "preference")
    assert check(report, "agreement").shown.partition("; ")[0].endswith(" on 12 pairs")
    assert "(12 clues, " in check(report, "reading").shown
    few = report_of([one for one in answers if one.item < 8], 0, "preference")
    assert check(few, "agreement").shown == "only 8 pairs that others rated too, 10 are needed"
    assert check(few, "spread").shown == "only 8 scores, 10 are needed"


def test_agreement_without_an_interval_flags_nobody() -> None:
    """Twelve outputs of three items: the first rater disagrees, which so few items cannot show."""
    levels = np.random.default_rng(1).integers(3, 22, (3, 4))
    answers = [
        answer(rater, item, *(level if rater else level[::-1]).tolist())
        for rater in range(4)
        for item, level in enumerate(levels)
    ]
    found = check(report_of(answers, 0), "agreement")
    assert found.state == "unknown"
    assert "no interval for outputs of fewer than four items" in found.shown


def test_agreement_and_severity_are_those_of_the_statistics() -> None:
    """Items with one to three outputs; each rater leaves some items out."""
    rng = np.random.default_rng(3)
    matrix, owners, answers = [], [], []
    for item in range(15):
        outputs = 1 + item % 3
        scores = np.where(rng.random(4) < 0.7, rng.integers(0, 26, (outputs, 4)), np.nan)
        matrix.extend(0.2 * scores)
        owners += [item] * outputs
        answers += [
            answer(rater, item, *scores[:, rater].astype(int).tolist())
            for rater in range(4)
            if not np.isnan(scores[0, rater])
        ]
    table = np.array(matrix)
    output, rater = np.nonzero(~np.isnan(table))
    for expected in rater_agreement(rater, output, table[output, rater], owners, range(4)):
        report = report_of(answers, expected.rater)
        assert check(report, "agreement").value == pytest.approx(expected.correlation.value)
        assert check(report, "severity").value == pytest.approx(expected.severity.value)
        assert f"on {expected.outputs} outputs" in check(report, "agreement").shown


def test_excluded_raters_are_judged_and_judge_nobody() -> None:
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 26, (3, 12))
    answers = [answer(rater, i, int(scores[rater, i])) for rater in range(3) for i in range(12)]
    without = {one.rater_id: one for one in reports_on(answers[:24], DA)}
    marked = {one.rater_id: one for one in reports_on(answers, DA, excluded=[2])}
    assert (marked[0], marked[1]) == (without[0], without[1])
    both = 0.5 * (scores[0] + scores[1])
    assert check(marked[2], "agreement").value == pytest.approx(stats.pearsonr(scores[2], both)[0])


def test_speed_describes_nobody_who_shows_signs_of_reading() -> None:
    """Times of clicks are too short for reading, and the scores go with the texts all the same."""

    def scored(rater: int, good: bool, seconds: float) -> list[RaterAnswer]:
        order = range(30) if good else np.random.default_rng(1).permutation(30).tolist()
        return [answer(rater, i, 3 * order[i], seconds=seconds) for i in range(30)]

    others = [*scored(2, True, 60.0), *scored(3, True, 60.0), *scored(4, True, 60.0)]
    reader, clicker = (report_of([*scored(1, good, 1.0), *others], protocol="da") for good in (True, False))
    assert check(reader, "speed").state == check(clicker, "speed").state == "flagged"
    assert (reader.signs, clicker.signs) == ((), ("too fast", "at random"))


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_raters_who_differ_neither_is_accused(turned: bool) -> None:
    """Of the two, either may be the one who scores at random, or has the scale reversed."""
    rng = np.random.default_rng(3)
    one = rng.integers(0, 101, 40)
    other = 100 - one if turned else rng.permutation(one)
    answers = [answer(rater, i, int(own[i])) for rater, own in ((1, one), (2, other)) for i in range(40)]
    for report in reports_on(answers, DA):
        assert report.signs == ()
        assert "flagged" not in {one.state for one in report.checks}
        assert check(report, "reading").state == "unknown"
        assert (
            "one other rater" in check(report, "reading").shown
        ) == turned  # else there is no flag to explain
    more = [answer(rater, i, int(one[i])) for rater in (3, 4) for i in range(40)]
    signs = {report.rater_id: report.signs for report in reports_on([*answers, *more], DA)}
    assert signs == {1: (), 2: ("scale reversed" if turned else "at random",), 3: (), 4: ()}


def test_missing_controls_and_lonely_raters_say_so_and_never_pass() -> None:
    report = report_of([answer(1, i, i % 5, 9, seconds=None) for i in range(30)])
    unknown = {one.name: one.shown for one in report.checks if one.state == "unknown"}
    assert unknown == {
        "reading": "no controls, and nobody else's scores",
        "bad-references": "no controls",
        "repeats": "no controls",
        "speed": "no times",
        "agreement": "nobody else rated the same items",
        "severity": "nobody else rated the same items",
    }
    assert report.suggestion == "nothing flagged; 6 of 10 checks have too little to judge by"
    bad = [answer(1, i, 5, 9, kind=ItemKind.BAD_REFERENCE, original=50 + i, degraded=0) for i in range(8)]
    assert check(report_of(bad), "bad-references").shown == "no controls"  # without their originals
    report = report_of([answer(1, 1, 3, 4)])
    assert {one.state for one in report.checks} == {"unknown"}
    assert report.suggestion == "too little to judge yet"
    assert check(report, "speed").shown == "only 1 timed item, 10 are needed"
    assert reports_on([], DA) == []


@pytest.mark.parametrize(
    ("strength", "reads", "reversed", "others", "threshold", "state"),
    [
        # 16 clues: 4 times the others' strength per clue, less 1.645
        (0.70, 0.24, 0.76, (0.5, 0.6, 0.7), 0.755, "flagged"),
        (0.80, 0.21, 0.79, (0.5, 0.6, 0.7), 0.755, "unknown"),
        (1.70, 0.04, 0.96, (0.5, 0.6, 0.7), 0.755, "ok"),
        (-1.0, 0.84, 0.16, (0.1, 0.3, 0.4), None, "unknown"),  # the others show 1.2, as chance may
        (-1.0, 0.84, 0.16, (), None, "unknown"),
        (-2.9, 0.998, 0.002, (0.1, 0.3, 0.4), None, "flagged"),
    ],
)
def test_reading_is_missed_only_if_the_others_show_it(
    strength: float,
    reads: float,
    reversed: float,
    others: Sequence[float],
    threshold: float | None,
    state: str,
) -> None:
    own = cast(Any, SimpleNamespace(reading=Reading(reads, reversed, strength), clues=16))
    measures = {at: cast(Any, SimpleNamespace(strength_per_clue=value)) for at, value in enumerate(others)}
    found = quality.signs_of_reading(own, Comparison(DA, measures))
    assert found.threshold == (threshold if threshold is None else pytest.approx(threshold))
    assert found.state == state


def mostly(value: int, rater: int, seconds: float = 60.0, bad: int | None = None) -> list[RaterAnswer]:
    """40 outputs with one score, and eight spoilt texts with the score `bad`."""
    own = [answer(rater, i, value, seconds=seconds) for i in range(40)]
    if bad is not None:
        spoilt = {"kind": ItemKind.BAD_REFERENCE, "degraded": 0, "seconds": seconds}
        own += [replace(answer(rater, 100 + i, bad), original=i, **spoilt) for i in range(8)]
    return own


@pytest.mark.parametrize(
    ("own", "signs"),
    [
        (mostly(100, 1), ()),
        (mostly(90, 1), ("straight-lining",)),
        (mostly(100, 1, bad=70), ()),
        (mostly(100, 1, bad=100), ("straight-lining",)),
        (mostly(100, 1, seconds=1.0), ("too fast", "straight-lining")),
        (mostly(0, 1), ("straight-lining",)),  # 98 points from the others
    ],
)
def test_a_repeated_end_of_the_scale_needs_another_flag(
    own: list[RaterAnswer], signs: tuple[str, ...]
) -> None:
    """Each of the others gives 100 to all but four outputs, and all give other outputs less."""
    others = [
        answer(rater, i, 80 if i % 10 == rater else 100, seconds=60.0)
        for rater in range(2, 8)
        for i in range(40)
    ]
    assert report_of([*own, *others], protocol="da").signs == signs


@pytest.mark.parametrize(
    ("p", "states", "signs"),
    [
        (0.3, {"reading": "unknown", "spread": "flagged"}, ("straight-lining",)),
        (0.02, {"reading": "ok", "spread": "flagged"}, ()),
        (0.3, {"reading": "unknown", "bad-references": "flagged"}, ()),  # more reading than chance gives
        (0.6, {"reading": "unknown", "bad-references": "flagged"}, ("at random",)),
        (0.3, {"reading": "flagged", "bad-references": "unknown"}, ("at random",)),
        (0.6, {"reading": "unknown", "bad-references": "unknown"}, ()),
        (0.3, {"reading": "flagged", "bad-references": "ok"}, ()),
    ],
)
def test_signs_by_the_evidence_of_reading(p: float, states: dict[str, Any], signs: tuple[str, ...]) -> None:
    own = cast(Any, SimpleNamespace(reading=Reading(p, 1 - p, 0.0), at_end=False))
    checks = [
        Check(name, "", "", "", state=state)
        for name, state in ({"bad-references": "unknown"} | states).items()
    ]
    assert quality.signs_of(own, checks) == signs


def test_one_score_for_all_outputs_has_fishers_interval_of_no_correlation() -> None:
    answers = [answer(rater, i, 100 if rater == 1 else 5 * i) for rater in (1, 2, 3) for i in range(12)]
    found = check(report_of(answers, protocol="da"), "agreement")
    assert "r = 0.00 [−0.57, +0.57] on 12 outputs" in found.shown  # tanh(1.96/√9)
    assert found.state == "ok"  # half of r = 1.0 is below 0.57


def test_who_gives_one_score_for_all_does_not_lower_the_usual_agreement() -> None:
    def scores(rater: int) -> list[int]:
        return [100] * 12 if rater > 3 else [5 * item for item in range(12)]

    answers = [answer(rater, i, score) for rater in range(1, 8) for i, score in enumerate(scores(rater))]
    found = check(report_of(answers, 1, protocol="da"), "agreement")
    assert found.threshold == pytest.approx(0.5), "half of r = 1.0, though four of the six others have none"


# ---------------------------------------------------------------- told apart

CAMPAIGNS = 25  # of 16 honest raters and one of each other kind


@pytest.mark.slow
def test_simulated_raters_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a quarter of the permutations: no bound on signs of reading is below 0.01."""
    monkeypatch.setattr(quality, "reading", partial(quality.reading, permutations=499))
    rng = np.random.default_rng(20)
    kinds = ["honest"] * 16 + list(simulated_answers.KINDS[1:])
    raters, flagged, signs = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for _ in range(CAMPAIGNS):
        for report in rater_reports(simulated_answers.campaign(rng, kinds), find_protocol("contrastive-da")):
            kind = kinds[report.rater_id]
            raters[kind] += 1
            flagged[kind] += bool(report.flagged)
            signs.update((kind, sign) for sign in report.signs)
    assert raters == {"honest": 16 * CAMPAIGNS, **dict.fromkeys(simulated_answers.KINDS[1:], CAMPAIGNS)}
    for kind in simulated_answers.KINDS[1:]:
        assert flagged[kind] >= 0.95 * raters[kind]
        if kind != "fast reader":  # who shows signs of reading
            # at random: p ≥ 0.1 of a test that one in ten passes by chance
            assert signs[kind, kind] >= (0.75 if kind in ("at random", "too fast") else 0.95) * raters[kind]
        for other in {*simulated_answers.KINDS[1:]} - {kind, "at random" if kind == "too fast" else kind}:
            assert signs[kind, other] <= 0.05 * raters[kind], (kind, other)
    assert sum(signs["honest", sign] for sign in simulated_answers.KINDS[1:]) <= 0.02 * raters["honest"]
    assert flagged["honest"] <= 0.03 * raters["honest"]


def one_output_each(
    rng: np.random.Generator, worth: np.ndarray, at_random: int, raters: int
) -> list[RaterAnswer]:
    """Make DA of two systems by all raters; the first `at_random` raters do not read."""
    return [
        answer(rater, at, int(step), groups=((at % 2,),), segment=at // 2, seconds=None)
        for rater in range(raters)
        for at, step in enumerate(
            rng.integers(0, 101, len(worth))
            if rater < at_random
            else np.clip(worth + rng.normal(0, 12) + rng.normal(0, 20, len(worth)), 0, 100)
        )
    ]


@pytest.mark.parametrize(("at_random", "outputs", "found"), [(5, 20, 0), (2, 60, 9)])
def test_raters_who_read_are_not_called_random_because_others_do_not(
    monkeypatch: pytest.MonkeyPatch, at_random: int, outputs: int, found: int
) -> None:
    """Six campaigns of ten raters, without controls: raters at random are found if most others read."""
    monkeypatch.setattr(quality, "reading", partial(quality.reading, permutations=499))
    rng, called = np.random.default_rng(8), Counter[bool]()
    for _ in range(6):
        worth = rng.normal(65, 15, outputs)
        for report in reports_on(one_output_each(rng, worth, at_random, 10), DA):
            called[report.rater_id < at_random] += "at random" in report.signs
    assert called[False] == 0
    assert called[True] >= found


RATERS = st.integers(0, 9)


@given(st.dictionaries(RATERS, st.none() | st.integers(0, 3).map(float), max_size=10), RATERS)
def test_the_others_figures_are_those_of_a_list(figures: dict[int, float | None], rater: int) -> None:
    """Each of the others looked at anew, with the library's median; with one figure each."""
    measures = {rater: cast(Any, SimpleNamespace(spread=value)) for rater, value in figures.items()}
    others = [value for other, value in figures.items() if other != rater and value is not None]
    comparison = Comparison(DA, measures, rater)
    for _ in range(2):  # the second time from what is known
        assert comparison.others("spread").tolist() == sorted(others)
        assert comparison.usual("spread") == (median(others) if others else None)


# ---------------------------------------------------------------- from what is stored

RATED, CONTROLS = 8, 5


@pytest.mark.slow
def test_reports_come_from_what_is_stored_and_excluding_can_be_undone(database: Database) -> None:
    """Items of two systems, bad references and repeats; three raters answer all of them."""
    controls = [{"original": at, "segment_index": at} for at in range(CONTROLS)]
    items: list[dict[str, Any]] = [{} for _ in range(RATED)]
    items += [{"kind": "bad-reference", "degraded": at % 2, **one} for at, one in enumerate(controls)]
    items += [
        {"kind": "repeat", "outputs": [f"o{at}-0", f"o{at}-1"], **one} for at, one in enumerate(controls)
    ]
    campaign_id = make_campaign(database, items, k=3, systems=2)
    draw = random.Random(7)
    people = [add_rater(database, name) for name in ("anna", "ben", "cleo")]
    for rater_id in people:
        for _ in items:
            work = work_for(database, rater_id)
            steps = [draw.randrange(26) for _ in work.outputs]
            assignment.submit(database, rater_id, work.assignment_id, steps, active_ms=draw.randrange(60_000))
    before = reports_of(database, campaign_id)
    assert [one.rater_id for one in before] == people
    for report in before:
        checks = {check.name: check.shown for check in report.checks}
        assert "of 5 recognised" in checks["bad-references"]
        assert "on 16 outputs" in checks["agreement"]
        assert "words per minute" in checks["speed"]
        assert " clues, " in checks["reading"]
        assert (report.answers, len(report.values)) == (RATED + 2 * CONTROLS, 2 * RATED)
    raters.exclude(database, people[1], "test", "answers look given at random")
    during = reports_of(database, campaign_id)
    assert {one.rater_id for one in during} == set(people)  # the excluded one has a report too
    assert during[0] != before[0]  # and is no longer among the others
    raters.include(database, people[1], "test", "they had misread the instructions, and did so for all")
    assert reports_of(database, campaign_id) == before


def test_the_last_revision_counts_and_is_read_in_the_order_shown(database: Database) -> None:
    make_campaign(database, 1, systems=2)
    rater = add_rater(database)
    work = work_for(database, rater)
    assignment.submit(database, rater, work.assignment_id, [3, 25], active_ms=1)
    assignment.submit(database, rater, work.assignment_id, [9, 1], revision=2)
    with database.session() as session:
        answers = read_answers(session, results_of(database))
    shown = [int(text[-1]) for text in work.outputs]  # "o0-1" is the output of system 1
    assert answers.system.tolist() == shown
    assert answers.step.tolist() == [9, 1]
    assert answers.seconds.tolist() == [0.001]
    assert answers.words.tolist() == [2 + 2]  # "source 0", and one word of each output
