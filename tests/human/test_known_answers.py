"""Items with known answers: practice items, the errors that they expect, and attention checks."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_campaigns import add_rater, make_campaign, rate, rate_all, ratings, stored, work_for

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
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
from creamtea.human.protocols.taxonomy import ESA, read_taxonomy
from creamtea.human.quality import read_answers
from creamtea.human.rating import RatingRefused, raters
from creamtea.human.rating.page import TryAgain
from creamtea.human.record import ItemContent
from creamtea.human.results.ratings import load_ratings
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

# ---------------------------------------------------------------- practice items

SYSTEMS = ["a", "b", "c"]


def item(*outputs: tuple[str, list[float]]) -> TutorialItem:
    return TutorialItem.model_validate(
        {
            "source": "s",
            "outputs": [{"text": text, "accepted": accepted} for text, accepted in outputs],
            "explanation": "e",
        }
    )


def practice_fields(protocol: str, *outputs: tuple[str, list[float]]) -> ItemContent:
    return written_items([item(*outputs)], find_protocol(protocol), SYSTEMS)[0]


@pytest.mark.parametrize("name", ["t.yaml", "t.json"])
def test_yaml_and_json_are_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        '{"items": [{"source": "مرحبا", "context": ["<b>"], '
        '"outputs": [{"text": "Hi", "accepted": [50, 100]}], "explanation": "*so*"}]}'
    )
    (found,) = read_tutorial(path)
    made = written_items([found], find_protocol("da"), SYSTEMS)[0]
    assert (made.source, made.context, made.outputs) == ("مرحبا", ("<b>",), ("Hi",))
    assert made.guidance == {"steps": {"0": [50, 100]}, "explanation": "*so*"}
    assert (made.kind, made.segment, made.weight) == ("tutorial", -1, 0.0)


@pytest.mark.parametrize(
    ("read", "kind"), [(read_tutorial, "tutorial"), (read_attention, "checks"), (read_taxonomy, "taxonomy")]
)
def test_a_missing_file_is_not_told_to_be_a_study(
    tmp_path: Path, read: Callable[[Path], object], kind: str
) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path / "t.yaml")
    assert (kind in str(error.value), "study" in str(error.value)) == (True, False)


def test_values_of_every_scale_become_steps() -> None:
    assert practice_fields("contrastive-da", ("a", [1, 2.4]), ("b", [5.8, 6])).guidance["steps"] == {
        "0": [0, 7],
        "1": [24, 25],
    }
    assert practice_fields("preference", ("a", [1, 2]), ("b", [0, 1])).guidance["steps"] == {
        "0": [1, 2],
        "1": [0, 1],
    }


@pytest.mark.parametrize(
    ("protocol", "outputs", "message"),
    [
        ("da", [("a", [0, 1]), ("b", [0, 1])], "practice item 1: 2 outputs; an item of da has 1"),
        ("contrastive-da", [("a", [1, 2])], "1 output; an item of contrastive-da has 2 to 8"),
        ("contrastive-da", [("a", [1, 2]), ("a", [3, 4])], "two of its outputs are the same text"),
        ("contrastive-da", [("a", [1.1, 2]), ("b", [3, 4])], "output 1: accepted: '1.1' is not a value of"),
        ("da", [("a", [20, 10])], "output 1: accepted: the lowest value comes first"),
        ("preference", [("a", [2, 2]), ("b", [2, 2])], "one output's answer decides the other's"),
    ],
)
def test_answers_that_cannot_be_are_refused(protocol: str, outputs: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        practice_fields(protocol, *outputs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("items: []", "t.yaml:1: items: found a list of 0, allowed at least 1 entry"),
        ("items:\n  - source: s\n    outputs: [{text: a, accepted: [1, 2]}]", "explanation: required key is"),
        ("items:\n  - {source: '', outputs: [], explanation: e}", 'items\\[0\\].source: found ""'),
        (
            "items:\n  - {source: s, source: t, outputs: [{text: a, accepted: [1, 2]}], explanation: e}",
            "source",  # written twice: which one is meant?
        ),
        ("a: [", "valid YAML"),
        ("", "an empty file"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_tutorial(path)


# ---------------------------------------------------------------- expected errors


TEXT = "Good mourning"
WORD = {"start": [5, 5], "end": [11, 12], "severity": "major"}


def guidance(protocol: str, **output: Any) -> dict[str, Any]:
    item = {"source": "s", "outputs": [{"text": TEXT, **output}], "explanation": "e"}
    made = written_items([TutorialItem.model_validate(item)], find_protocol(protocol), SYSTEMS)[0]
    return dict(made.guidance)


def test_expected_errors_stand_beside_values_or_in_their_place() -> None:
    omission = {"category": ["Accuracy"]}
    shown = guidance("esa", spans=[WORD], accepted=[0.0, 60.0])
    assert shown == {"steps": {"0": [0, 60]}, "spans": {"0": [WORD]}, "explanation": "e"}
    assert guidance("mqm", spans=[WORD, omission])["spans"] == {"0": [WORD, omission]}
    assert guidance("esa", spans=[])["spans"] == {"0": []}
    assert "spans" not in guidance("esa", accepted=[0.0, 60.0])


@pytest.mark.parametrize(
    ("protocol", "output", "message"),
    [
        ("da", {"spans": [WORD]}, "practice item 1, output 1: spans: raters mark no errors in da"),
        ("da", {}, "accepted: required key is missing"),
        ("esa", {}, "any answer would be right: give `accepted`, `spans` or both"),
        ("mqm", {"accepted": [-1.0, 0.0]}, "raters give no value in mqm: say `spans`"),
        ("esa", {"spans": [WORD | {"end": [11, 13]}]}, r"end: \[11, 13\]: .*characters 0 to 12"),
        ("esa", {"spans": [WORD | {"start": [6, 5]}]}, r"start: \[6, 5\]: lowest first"),
        ("esa", {"spans": [{"start": [9, 9], "end": [3, 4]}]}, "ends at 4, before it begins"),
        ("esa", {"spans": [{"start": [9, 9]}]}, "a start without an end"),
        ("esa", {"spans": [WORD | {"severity": "critical"}]}, "minor or major, not critical"),
        ("mqm", {"spans": [{"category": ["Taste"]}]}, "the campaign has no category Taste"),
    ],
)
def test_what_nobody_can_mark_is_refused(protocol: str, output: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        guidance(protocol, **output)


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
    outputs = {"outputs": [TEXT], "systems": [0]}
    teach = {"kind": "tutorial", "guidance": guidance("esa", spans=[WORD, {}], accepted=[0.0, 60.0])}
    none = {"kind": "tutorial", "guidance": guidance("esa", spans=[])}
    items = [{**outputs, **teach}, {**outputs, **none}, {**outputs, **none}]
    make_campaign(database, items, protocol="esa", taxonomy=ESA.model_dump(mode="json"))
    anna = add_rater(database)

    def told(*marked: dict[str, Any], score: int = 50) -> assignment.Guidance:
        answer = {"spans": list(marked), "score": score}
        stored = assignment.submit(database, anna, work_for(database, anna).assignment_id, [answer])
        assert stored.guidance is not None
        return stored.guidance

    mark = {"start": 5, "end": 12, "severity": "major"}
    first = told(mark, {"start": 0, "end": 3, "severity": "minor"})
    assert (first.right, first.found, first.marked) == ([True], [[True, False]], [False])
    assert first.spans == [[WORD, {}]]
    assert (told(mark).marked, told().marked) == ([False], [True])


# ---------------------------------------------------------------- attention checks


TWO = {"source": "s", "outputs": [{"text": "good", "accepted": [5, 6], "above": [2]}, {"text": "bad"}]}
WARNING = "Read <b>both</b>, please"


def check_fields(check: dict[str, Any], protocol: str = "contrastive-da") -> ItemContent:
    return written_items([AttentionItem.model_validate(check)], find_protocol(protocol), SYSTEMS)[0]


def campaign(
    database: Database, checks: int, *, items: int = 6, warning: str | None = None, **settings: Any
) -> int:
    """A rater of a campaign with a check after every two answers."""
    specs: list[dict[str, Any]] = [{} for _ in range(items)]
    for number in range(checks):
        check = check_fields({**TWO, "source": f"check {number}", "warning": warning})
        own = {name: getattr(check, name) for name in ("kind", "source", "outputs", "weight", "guidance")}
        specs.append({**own, "segment_index": check.segment})
    make_campaign(database, specs, systems=2, attention_every=2, **settings)
    return add_rater(database)


def answer(work: assignment.Work, good: int, bad: int) -> list[int]:
    return [{"good": good, "bad": bad}.get(text, 3) for text in work.outputs]


def go(database: Database, rater: int, good: int = 25, bad: int = 0) -> list[str]:
    """The sources until nothing is left; checks get these steps."""
    sources = []
    while (work := assignment.next_item(database, rater)) is not None:
        sources.append(work.source)
        assignment.submit(database, rater, work.assignment_id, answer(work, good, bad))
    return sources


# ------------------------------ the file


def test_a_file_becomes_items(tmp_path: Path) -> None:
    path = tmp_path / "checks.yaml"
    path.write_text(
        "checks:\n  - source: s\n    outputs:\n      - {text: good, accepted: [5, 6], above: [2]}\n"
        f"      - {{text: bad}}\n    warning: {WARNING}\n"
    )
    (made,) = written_items(read_attention(path), find_protocol("contrastive-da"), SYSTEMS)
    assert (made.kind, made.segment, made.outputs) == ("attention-check", -1, ("good", "bad"))
    assert made.guidance == {"steps": {"0": [20, 25]}, "spans": {}, "above": [[0, 1]], "warning": WARNING}


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([{"text": "a"}, {"text": "b"}], "attention check 1: any answer would pass"),
        ([{"text": "a", "above": [3]}, {"text": "b"}], "output 1: above: this item has no other output 3"),
        ([{"text": "a", "above": [1]}, {"text": "b"}], "output 1: above: this item has no other output 1"),
        ([{"text": "a", "above": [2]}, {"text": "b", "above": [1]}], "above each other in a circle"),
        (
            [{"text": "a", "accepted": [1, 2], "above": [2]}, {"text": "b", "accepted": [2, 3]}],
            "output 1 cannot",
        ),
        (
            [{"text": text, "accepted": [2, 2]} for text in "ab"],
            "one output's answer decides",
        ),  # of preference
    ],
)
def test_checks_that_cannot_be_are_refused(outputs: list[Any], message: str) -> None:
    protocol = "preference" if "decides" in message else "contrastive-da"
    with pytest.raises(InputError, match=message):
        check_fields({"source": "s", "outputs": outputs}, protocol)


@pytest.mark.parametrize(
    ("steps", "right"), [((20, 0), True), ((19, 0), False), ((25, 25), False), ((25, 24), True)]
)
def test_a_range_and_an_order_are_both_needed(steps: tuple[int, int], right: bool) -> None:
    answers = {at: ScoredAnswer(step) for at, step in enumerate(steps)}
    assert is_right(check_fields(TWO).guidance, answers) is right


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
    wrong = {"text": "Good mourning", "spans": [{"start": [5, 5], "end": [11, 12], "severity": "major"}]}
    check = {"source": "Guten Morgen", "outputs": [wrong | {"accepted": [0, 50]}]}
    guidance = check_fields(check, "esa").guidance
    answer = find_protocol("esa").read_answer({"score": 10, "spans": spans}, "Good mourning")
    assert is_right(guidance, {0: answer}) is right
    clean = check_fields({"source": "s", "outputs": [{"text": "Good mourning", "spans": []}]}, "esa").guidance
    assert is_right(clean, {0: answer}) is (not spans)


# ------------------------------ when, and what is stored


def test_a_check_comes_after_every_so_many_answers(database: Database) -> None:
    rater = campaign(database, checks=4)
    assert work_for(database, rater).total == raters.workload(database, rater).items == 9
    sources = go(database, rater)
    kinds = ["check" in source for source in sources]
    assert kinds == [False, False, True, False, False, True, False, False, True]
    assert len(set(sources)) == 9  # the fourth check is not reached
    found = summary(database, "c")  # without them
    assert (found.items, found.ratings, found.wanted) == (6, 6, 6)
    with database.session() as session:
        ratings = load_ratings(session, session.get_one(Campaign, 1))
        assert len(read_answers(session, ratings).item) == 6


def test_raters_begin_at_different_checks(database: Database) -> None:
    anna = campaign(database, checks=3, items=4, k=2)
    own = [
        [source for source in go(database, rater) if "check" in source]
        for rater in (anna, add_rater(database, "ben"))
    ]
    assert [len(checks) for checks in own] == [2, 2]
    assert own[0][0] != own[1][0]


def test_a_silent_check_stores_any_answer_and_tells_nothing(database: Database) -> None:
    rater = campaign(database, checks=3)
    go(database, rater, good=0, bad=25)
    (progress,) = raters.overview(database, 1)
    assert (progress.attention, progress.submitted) == (Attention(answered=3, passed=0), 6)


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


# ------------------------------ the end

ADDRESS = "https://example.org/complete?cc={code}"


@pytest.mark.parametrize(
    ("good", "failing", "address", "code", "leads_to"),
    [
        (25, "FAIL", ADDRESS, "PASS 1", "https://example.org/complete?cc=PASS%201"),
        (0, "FAIL", ADDRESS, "FAIL", "https://example.org/complete?cc=FAIL"),
        (25, "FAIL", "https://example.org/PASS", "PASS 1", "https://example.org/PASS"),
        (0, "FAIL", "https://example.org/PASS", "FAIL", ""),  # the address would say that they passed
        (0, "", "https://example.org/PASS", "PASS 1", "https://example.org/PASS"),  # everybody gets the same
    ],
)
def test_who_fails_gets_the_other_code(
    database: Database, good: int, failing: str, address: str, code: str, leads_to: str
) -> None:
    codes = {"completion_code": "PASS 1", "failing_code": failing, "completion_url": address}
    rater = campaign(database, checks=3, **codes)
    go(database, rater, good=good, bad=10)
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
    practice = {"kind": "tutorial", "systems": [0, 1, 2], "outputs": ["x", "y", "z"], "weight": 0.0}
    practice |= {"segment_index": -1, "guidance": {"steps": {}, "explanation": "e"}}
    number = make_campaign(database, [practice, {}, {}], systems=2)
    rater = add_rater(database)
    for steps in ([1, 2, 3], [10, 11], [20, 21]):
        assignment.submit(database, rater, work_for(database, rater).assignment_id, steps)
    with database.session() as session:
        answers = read_answers(session, load_ratings(session, session.get_one(Campaign, number)))
    assert sorted(answers.step.tolist()) == [10, 11, 20, 21]  # practice is not reported

    export_campaign(database, "c", "csv", tmp_path / "out", "test")
    import_campaign(database, tmp_path / "out", "csv", ImportFacts("again"), "test")
    before, after = (collect(database, name) for name in ("c", "again"))
    assert before.items[0].systems == ("plain", "beam", "output 3")
    assert (after.items, after.answers) == (before.items, before.answers)
