"""Items with known answers: practice items, the errors that they expect, and attention checks."""

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_campaigns import (
    add_rater,
    exchanged,
    make_campaign,
    rate,
    rate_all,
    ratings,
    results_of,
    stored,
    work_for,
)

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.storing import collect
from creamtea.human.making.campaigns import summary
from creamtea.human.making.known_answers import (
    MAX_WARNINGS,
    Attention,
    attention_of,
    is_right,
    read_attention,
    read_tutorial,
    written_items,
)
from creamtea.human.making.settings import AttentionItem, TutorialItem
from creamtea.human.protocols import ScoredAnswer, find_protocol
from creamtea.human.protocols.spans import ExpectedSpan, Span, which_are_marked
from creamtea.human.protocols.taxonomy import ESA
from creamtea.human.quality import read_answers
from creamtea.human.rating import RatingRefused, raters
from creamtea.human.rating.page import TryAgain
from creamtea.human.record import ItemContent
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

SYSTEMS = ["a", "b", "c"]
TEXT = "Good mourning"
WORD = {"start": [5, 5], "end": [11, 12], "severity": "major"}
WARNING = "Read <b>both</b>, please"
TWO = [{"text": "good", "accepted": [5, 6], "above": [2]}, {"text": "bad"}]


def practice(protocol: str, *outputs: dict[str, Any]) -> ItemContent:
    """A practice item; an output's text is `TEXT` unless it says otherwise."""
    texts = [{"text": TEXT, **output} for output in outputs]
    item = TutorialItem.model_validate({"source": "s", "outputs": texts, "explanation": "e"})
    return written_items([item], find_protocol(protocol), SYSTEMS)[0]


def check(protocol: str, *outputs: dict[str, Any], **fields: Any) -> ItemContent:
    texts = [{"text": TEXT, **output} for output in outputs]
    item = AttentionItem.model_validate({"source": "s", "outputs": texts, **fields})
    return written_items([item], find_protocol(protocol), SYSTEMS)[0]


def test_files_become_items_with_steps_of_the_scale(tmp_path: Path) -> None:
    text = (
        '{"items": [{"source": "مرحبا", "context": ["<b>"], '
        '"outputs": [{"text": "Hi", "accepted": [50, 100]}], "explanation": "*so*"}]}'
    )
    for name in ("t.yaml", "t.json"):
        (tmp_path / name).write_text(text)
        (made,) = written_items(read_tutorial(tmp_path / name), find_protocol("da"), SYSTEMS)
        assert (made.source, made.context, made.outputs) == ("مرحبا", ("<b>",), ("Hi",))
        assert made.guidance == {"steps": {"0": [50, 100]}, "explanation": "*so*"}
        assert (made.kind, made.segment, made.weight) == ("tutorial", -1, 0.0)
    path = tmp_path / "checks.yaml"
    path.write_text(json.dumps({"checks": [{"source": "s", "outputs": TWO, "warning": WARNING}]}))
    (made,) = written_items(read_attention(path), find_protocol("contrastive-da"), SYSTEMS)
    assert (made.kind, made.segment, made.outputs) == ("attention-check", -1, ("good", "bad"))
    assert made.guidance == {"steps": {"0": [20, 25]}, "spans": {}, "above": [[0, 1]], "warning": WARNING}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("items: []", "t.yaml:1: items: found a list of 0"),
        ("items:\n  - source: s\n    outputs: [{text: a, accepted: [1, 2]}]", "explanation: required key is"),
        ("items:\n  - {source: '', outputs: [], explanation: e}", 'items\\[0\\].source: found ""'),
        (
            "items:\n  - {source: s, source: t, outputs: [{text: a, accepted: [1, 2]}], explanation: e}",
            "source",  # written twice: which one is meant?
        ),
        ("a: [", "valid YAML"),
        ("", "an empty file"),
        (None, r"no such file; give the path of a tutorial \(YAML or JSON\)"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "t.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_tutorial(path)


def outputs(*accepted: list[float], texts: str = "abc") -> list[dict[str, Any]]:
    return [{"text": text, "accepted": values} for text, values in zip(texts, accepted, strict=False)]


def pair(first: dict[str, Any], second: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [{"text": "a", **first}, {"text": "b", **(second or {})}]


CONTRASTIVE = "contrastive-da"


@pytest.mark.parametrize(
    ("make", "protocol", "given", "message"),
    [
        (practice, "da", outputs([0, 1], [0, 1]), "practice item 1: 2 outputs; an item of da has 1"),
        (practice, CONTRASTIVE, outputs([1, 2]), "1 output; an item of contrastive-da has 2 to 8"),
        (practice, CONTRASTIVE, outputs([1, 2], [3, 4], texts="aa"), "two of its outputs are the same text"),
        (practice, CONTRASTIVE, outputs([1.1, 2], [3, 4]), "output 1: accepted: '1.1' is not a value of"),
        (practice, "da", outputs([20, 10]), "output 1: accepted: the lowest value comes first"),
        (practice, "preference", outputs([2, 2], [2, 2]), "one output's answer decides the other's"),
        (practice, "da", [{"spans": [WORD]}], "item 1, output 1: spans: raters mark no errors in da"),
        (practice, "da", [{}], "accepted: required key is missing"),
        (practice, "esa", [{}], "any answer would be accepted: give `accepted`, `spans` or both"),
        (practice, "mqm", [{"accepted": [-1.0, 0.0]}], "raters give no value in mqm: use `spans`"),
        (practice, "esa", [{"spans": [WORD | {"end": [11, 13]}]}], r"end: \[11, 13\]: .*characters 0 to 12"),
        (practice, "esa", [{"spans": [WORD | {"start": [6, 5]}]}], r"start: \[6, 5\]: lowest first"),
        (practice, "esa", [{"spans": [{"start": [9, 9], "end": [3, 4]}]}], "ends at 4, before it begins"),
        (practice, "esa", [{"spans": [{"start": [9, 9]}]}], "only one of start and end"),
        (practice, "esa", [{"spans": [WORD | {"severity": "critical"}]}], "minor or major, not critical"),
        (practice, "mqm", [{"spans": [{"category": ["Taste"]}]}], "the campaign has no category Taste"),
        (check, CONTRASTIVE, pair({}), "attention check 1: any answer would pass"),
        (check, CONTRASTIVE, pair({"above": [3]}), "output 1: above: this item has no other output 3"),
        (check, CONTRASTIVE, pair({"above": [1]}), "output 1: above: this item has no other output 1"),
        (check, CONTRASTIVE, pair({"above": [2]}, {"above": [1]}), "`above` form a circle"),
        (
            check,
            CONTRASTIVE,
            pair({"accepted": [1, 2], "above": [2]}, {"accepted": [2, 3]}),
            "output 1 cannot",
        ),
        (check, "preference", outputs([2, 2], [2, 2]), "one output's answer decides"),
    ],
)
def test_answers_that_cannot_be_are_refused(
    make: Callable[..., ItemContent], protocol: str, given: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(protocol, *given)


def test_expected_errors_stand_beside_values_or_in_their_place() -> None:
    omission = {"category": ["Accuracy"]}
    both = practice("esa", {"spans": [WORD], "accepted": [0.0, 60.0]})
    assert both.guidance == {"steps": {"0": [0, 60]}, "spans": {"0": [WORD]}, "explanation": "e"}
    assert practice("mqm", {"spans": [WORD, omission]}).guidance["spans"] == {"0": [WORD, omission]}
    assert practice("esa", {"spans": []}).guidance["spans"] == {"0": []}
    assert "spans" not in practice("esa", {"accepted": [0.0, 60.0]}).guidance


spans = st.builds(
    lambda start, length, severity: Span(start=start, end=start + length, severity=severity),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(["minor", "major"]),
) | st.builds(Span, severity=st.sampled_from(["minor", "major"]))
ranges = st.lists(st.integers(0, 5), min_size=2, max_size=2).map(sorted)
expectations = st.builds(
    ExpectedSpan, start=ranges, end=ranges, severity=st.sampled_from([None, "minor", "major"])
) | st.builds(ExpectedSpan, severity=st.sampled_from([None, "minor"]))


@given(st.lists(expectations, max_size=4), st.lists(spans, max_size=4))
def test_as_many_are_found_as_can_be_at_once(expected: list[ExpectedSpan], marked: list[Span]) -> None:
    """By enumeration of all ways to give each expected error a mark of its own."""
    slots = [*range(len(marked)), *[None] * len(expected)]
    most = max(
        sum(mark is not None and one.fits(marked[mark]) for one, mark in zip(expected, way, strict=False))
        for way in permutations(slots, len(expected))
    )
    assert sum(which_are_marked(expected, marked)) == most


def test_a_rater_is_told_what_was_expected_and_found(database: Database) -> None:
    both = practice("esa", {"spans": [WORD, {}], "accepted": [0.0, 60.0]})
    none = practice("esa", {"spans": []})
    fields = {"kind": "tutorial", "outputs": [TEXT], "systems": [0]}
    items = [{**fields, "guidance": dict(one.guidance)} for one in (both, none, none)]
    make_campaign(database, items, protocol="esa", taxonomy=ESA.model_dump(mode="json"))
    anna = add_rater(database)

    def told(*marked: dict[str, Any]) -> assignment.Guidance:
        answer, work = {"spans": list(marked), "score": 50}, work_for(database, anna)
        return assignment.submit(database, anna, work.assignment_id, [answer]).guidance

    mark = {"start": 5, "end": 12, "severity": "major"}
    first = told(mark, {"start": 0, "end": 3, "severity": "minor"})
    assert (first.right, first.found, first.marked) == ([True], [[True, False]], [False])
    assert first.spans == [[WORD, {}]]
    assert (told(mark).marked, told().marked) == ([False], [True])


# ---------------------------------------------------------------- attention checks


def campaign(
    database: Database, checks: int, *, items: int = 6, warning: str | None = None, **settings: Any
) -> int:
    """A rater of a campaign with a check after every two answers."""
    specs: list[dict[str, Any]] = [{} for _ in range(items)]
    for number in range(checks):
        made = check("contrastive-da", *TWO, source=f"check {number}", warning=warning)
        own = {name: getattr(made, name) for name in ("kind", "source", "outputs", "weight", "guidance")}
        specs.append({**own, "segment_index": made.segment})
    make_campaign(database, specs, systems=2, attention_every=2, **settings)
    return add_rater(database)


def answer(work: assignment.Work, good: int, bad: int) -> list[int]:
    return [{"good": good, "bad": bad}.get(text, 3) for text in work.outputs]


def go(database: Database, rater: int, good: int = 25, bad: int = 0) -> list[str]:
    """The sources until nothing is left; checks get these steps."""
    return rate_all(database, rater, lambda work: answer(work, good, bad))


@pytest.mark.parametrize(
    ("steps", "right"), [((20, 0), True), ((19, 0), False), ((25, 25), False), ((25, 24), True)]
)
def test_a_range_and_an_order_are_both_needed(steps: tuple[int, int], right: bool) -> None:
    answers = {at: ScoredAnswer(step) for at, step in enumerate(steps)}
    assert is_right(check("contrastive-da", *TWO).guidance, answers) is right


@pytest.mark.parametrize(
    ("spans", "right"),
    [
        ([{"start": 5, "end": 12, "severity": "major"}], True),
        ([{"start": 5, "end": 12, "severity": "minor"}], False),
        ([{"start": 0, "end": 3, "severity": "major"}], False),
        ([], False),
    ],
)
def test_marked_errors_can_be_checked(spans: list[dict[str, Any]], right: bool) -> None:
    answer = {0: find_protocol("esa").read_answer({"score": 10, "spans": spans}, TEXT)}
    wrong = {"spans": [WORD], "accepted": [0, 50]}
    assert is_right(check("esa", wrong).guidance, answer) is right
    assert is_right(check("esa", {"spans": []}).guidance, answer) is (not spans)


def test_a_check_comes_after_every_so_many_answers(database: Database) -> None:
    """A silent one, which stores any answer and tells nothing."""
    rater = campaign(database, checks=4)
    assert work_for(database, rater).total == raters.workload(database, rater).items == 9
    sources = go(database, rater, good=0, bad=25)
    assert ["check" in source for source in sources] == [False, False, True] * 3
    assert len(set(sources)) == 9  # the fourth check is not reached
    (progress,) = raters.overview(database, 1)
    assert (progress.attention, progress.submitted) == (Attention(answered=3, passed=0), 6)
    found = summary(database, "c")  # without them
    assert (found.items, found.ratings, found.wanted) == (6, 6, 6)
    with database.session() as session:
        assert len(read_answers(session, results_of(database)).item) == 6


def test_raters_begin_at_different_checks(database: Database) -> None:
    anna = campaign(database, checks=3, items=4, k=2)
    own = [
        [source for source in go(database, rater) if "check" in source]
        for rater in (anna, add_rater(database, "ben"))
    ]
    assert [len(checks) for checks in own] == [2, 2]
    assert own[0][0] != own[1][0]


@pytest.mark.parametrize("last", [(25, 0), (0, 25)])  # after the last warning any answer is taken
def test_a_loud_check_may_be_tried_again_but_counts_as_failed(
    database: Database, last: tuple[int, int]
) -> None:
    rater = campaign(database, checks=1, warning=WARNING)
    for _ in range(2):
        rate(database, rater, work_for(database, rater))
    work = work_for(database, rater)
    assert work.source == "check 0"
    before = len(ratings(database))
    with pytest.raises(RatingRefused, match="an output has no score yet"):
        assignment.submit(database, rater, work.assignment_id, [None, 3])
    assert stored(database, work.assignment_id).warned == 0
    for warned in range(1, MAX_WARNINGS + 1):
        with pytest.raises(TryAgain, match=WARNING):
            assignment.submit(database, rater, work.assignment_id, answer(work, 0, 25))
        assert stored(database, work.assignment_id).warned == warned
        assert work_for(database, rater).assignment_id == work.assignment_id
    assert len(ratings(database)) == before
    assignment.submit(database, rater, work.assignment_id, answer(work, *last))
    assert raters.overview(database, 1)[0].attention == Attention(answered=1, passed=0)


def test_a_revision_of_a_check_changes_no_verdict(database: Database) -> None:
    rater = campaign(database, checks=1, items=2, warning=WARNING)
    go(database, rater)
    check = next(one for one in assignment.earlier(database, rater) if one.source == "check 0")
    again = assignment.reopen(database, rater, check.assignment_id)
    assignment.submit(database, rater, check.assignment_id, answer(again, 0, 25), revision=2)
    assert raters.overview(database, 1)[0].attention == Attention(answered=1, passed=1)


def test_who_fails_gets_the_other_code(database: Database) -> None:
    """The address is not given where it would say that somebody who failed had passed."""
    passed, failed = campaign(database, checks=3, items=6, k=2), add_rater(database, "ben")
    go(database, passed)
    go(database, failed, good=0, bad=10)
    with_code, of_all = "https://example.org/complete?cc={code}", "https://example.org/PASS"
    for rater, failing, address, code, leads_to in (
        (passed, "FAIL", with_code, "PASS 1", "https://example.org/complete?cc=PASS%201"),
        (failed, "FAIL", with_code, "FAIL", "https://example.org/complete?cc=FAIL"),
        (passed, "FAIL", of_all, "PASS 1", of_all),
        (failed, "FAIL", of_all, "FAIL", ""),
        (failed, "", of_all, "PASS 1", of_all),  # everybody gets the same
    ):
        with database.transaction() as session:
            row = session.get_one(Campaign, 1)
            codes = {"completion_code": "PASS 1", "failing_code": failing, "completion_url": address}
            row.settings = {**row.settings, **codes}
        found = raters.welcome(database, rater)
        assert (found.completion_code, found.completion_url) == (code, leads_to)


def test_a_check_of_an_import_may_not_say_what_is_right(database: Database) -> None:
    check = {"kind": "attention-check", "guidance": None}
    make_campaign(database, [{}, check], systems=2, attention_every=1)
    rater = add_rater(database)
    rate_all(database, rater)
    with database.session() as session:
        assert attention_of(session, 1) == {}


@given(st.integers(0, 200), st.integers(1, 100))
def test_the_share_to_pass_is_met_exactly(answered: int, hundredths: int) -> None:
    """Against whole numbers: 0.28 · 25 is 7.000000000000001 in floating point."""
    for passed in range(answered + 1):
        enough = 100 * passed >= hundredths * answered
        assert Attention(answered, passed).suffices(hundredths / 100) == enough


def test_a_practice_item_may_have_more_outputs_than_there_are_systems(
    database: Database, tmp_path: Path
) -> None:
    made = {"kind": "tutorial", "systems": [0, 1, 2], "outputs": ["x", "y", "z"], "weight": 0.0}
    made |= {"segment_index": -1, "guidance": {"steps": {}, "explanation": "e"}}
    make_campaign(database, [made, {}, {}], systems=2)
    rater = add_rater(database)
    for steps in ([1, 2, 3], [10, 11], [20, 21]):
        assignment.submit(database, rater, work_for(database, rater).assignment_id, steps)
    with database.session() as session:
        answers = read_answers(session, results_of(database))
    assert sorted(answers.step.tolist()) == [10, 11, 20, 21]  # practice is not reported
    before, after = collect(database, "c"), exchanged(database, tmp_path)
    assert before.items[0].systems == ("plain", "beam", "output 3")
    assert (after.items, after.answers) == (before.items, before.answers)
