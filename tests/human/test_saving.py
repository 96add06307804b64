"""Drafts, scores, skips and revisions: each stored once, refused by the server where they cannot be."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import ANSWER
from property_tests import FIXTURES_ARE_SHARED
from small_campaigns import LAPSED, add_rater, make_campaign, rate, rate_all, ratings, stored, work_for

from creamtea.human import rating as assignment
from creamtea.human.protocols import BUILT_IN, Protocol, find_protocol
from creamtea.human.rating import RatingRefused, Work
from creamtea.human.rating.page import lock_page
from creamtea.human.rating.saving import check_draft, read_answers
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Item

# the protocols whose answers are their scores
SCORED = [name for name, protocol in BUILT_IN.items() if type(protocol).read_answer is Protocol.read_answer]
NUMBERS = count(1)


def test_many_submits_at_once_store_one_rating_a_system(campaign: Database, anna: int, work: Work) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda step: rate(campaign, anna, work, step), range(16)))
    assert all(result == results[0] for result in results)
    assert len(set(results[0].steps.values())) == 1
    found = ratings(campaign)
    assert sorted(rating.system for rating in found) == [0, 1, 2, 3]
    assert {rating.step for rating in found} == set(results[0].steps.values())


@pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_raters_of_different_pages_do_not_wait_for_each_other(database: Database) -> None:
    make_campaign(database, 2, k=2)
    anna, bert = add_rater(database), add_rater(database, "bert")
    annas = work_for(database, anna)
    with ThreadPoolExecutor(1) as pool, database.transaction() as session:
        lock_page(session, anna, annas.assignment_id)
        berts = pool.submit(work_for, database, bert).result(ANSWER)
        assert (annas.source, berts.source) == ("source 0", "source 1")
        pool.submit(rate, database, bert, berts).result(ANSWER)


def test_a_revision_is_added_and_the_first_kept(campaign: Database, anna: int, work: Work) -> None:
    assert not rate(campaign, anna, work, 3).differs
    assert not rate(campaign, anna, work, 3).differs  # a second click
    assert rate(campaign, anna, work, 4).differs  # a second tab
    for step in (9, 11):
        again = assignment.submit(campaign, anna, work.assignment_id, [step] * 4, revision=2)
        assert set(again.steps.values()) == {9}
    assert Counter((r.revision, r.step) for r in ratings(campaign)) == {(1, 3): 4, (2, 9): 4}
    for revision in (0, 4, 2**40):
        with pytest.raises(RatingRefused, match="does not follow"):
            assignment.submit(campaign, anna, work.assignment_id, [1] * 4, revision=revision)


@pytest.mark.parametrize("protocol", SCORED)
@given(steps=st.lists(st.none() | st.integers(-2, 103), max_size=4), shown=st.integers(1, 4))
def test_scores_are_complete_and_on_the_scale_or_refused(
    protocol: str, steps: list[int | None], shown: int
) -> None:
    scale, outputs = range(find_protocol(protocol).scale.steps), ["text"] * shown
    possible = len(steps) == shown and all(step in scale for step in steps)
    if protocol == "preference":
        possible = possible and sum(steps) == shown  # type: ignore[arg-type]
    if not possible:
        with pytest.raises(RatingRefused):
            read_answers(find_protocol(protocol), steps, outputs)
        return
    scored = read_answers(find_protocol(protocol), steps, outputs)
    assert [(answer.step, answer.payload) for answer in scored] == [(step, None) for step in steps]


def test_a_preference_is_one_of_three_judgements() -> None:
    preference, outputs, accepted = find_protocol("preference"), ["a", "b"], set()
    for pair in product(range(-1, 4), repeat=2):
        try:
            read_answers(preference, pair, outputs)
            accepted.add(pair)
        except RatingRefused:
            continue
    assert accepted == {(2, 0), (1, 1), (0, 2)}
    check_draft(preference, [2, None], outputs)
    with pytest.raises(RatingRefused):
        check_draft(preference, [3, None], outputs)


def test_another_raters_item_is_refused(campaign: Database, bert: int, work: Work) -> None:
    for number in (work.assignment_id, 10**6):
        for act in (
            lambda number=number: assignment.submit(campaign, bert, number, [3] * 4),
            lambda number=number: assignment.save_draft(campaign, bert, number, [3] * 4),
            lambda number=number: assignment.skip(campaign, bert, number, "unclear"),
            lambda number=number: assignment.reopen(campaign, bert, number),
        ):
            with pytest.raises(RatingRefused, match="not yours"):
                act()
    assert ratings(campaign) == []


def test_a_draft_takes_no_place_back_that_went_to_another(campaign: Database, anna: int, bert: int) -> None:
    mine = work_for(campaign, anna, lease=LAPSED)
    assert work_for(campaign, bert).source == mine.source
    for act in (assignment.save_draft, assignment.submit):  # or another item would come unexplained
        with pytest.raises(RatingRefused, match="given to someone else"):
            act(campaign, anna, mine.assignment_id, [1] * 4)
    draft = stored(campaign, mine.assignment_id).draft
    assert draft["answers"] == [1] * 4  # kept: the place may come back


def test_a_page_that_comes_back_waits_for_the_present_one(campaign: Database, anna: int, bert: int) -> None:
    lost = work_for(campaign, anna, lease=LAPSED)
    taken = work_for(campaign, bert)
    assert taken.source == lost.source
    present = work_for(campaign, anna)
    assert present.source != lost.source
    assignment.skip(campaign, bert, taken.assignment_id, "I do not understand the source")
    assignment.save_draft(campaign, anna, present.assignment_id, [1] * 4)
    assert work_for(campaign, anna).source == present.source
    rate(campaign, anna, present)
    assert work_for(campaign, anna).source == lost.source


def test_the_comment_of_the_newest_revision_is_kept(campaign: Database, anna: int, work: Work) -> None:
    number = work.assignment_id
    for text in ("x" * 2001, "\0", "\ud800", 3):
        for act in (assignment.submit, assignment.save_draft):
            with pytest.raises(RatingRefused, match="the comment"):
                act(campaign, anna, number, [1] * 4, comment=text)
        if isinstance(text, str):
            with pytest.raises(RatingRefused):
                assignment.skip(campaign, anna, number, text)
    assert ratings(campaign) == []
    first = "*good* <b>".ljust(2000)
    for revision, comment, kept in ((1, first, first), (1, "a double click", first), (2, "文", "文")):
        assignment.submit(campaign, anna, number, [1] * 4, comment=comment, revision=revision)
        assert stored(campaign, number).comment == kept


def test_the_time_is_bounded_by_the_clock_of_the_server(campaign: Database, anna: int, work: Work) -> None:
    with campaign.transaction() as session:
        row = session.get_one(Assignment, work.assignment_id)
        row.created_at -= timedelta(seconds=60)
    assignment.submit(campaign, anna, work.assignment_id, [1] * 4, active_ms=2**60)
    spent = stored(campaign, work.assignment_id).active_ms
    assert 60_000 <= spent < 600_000
    assignment.submit(campaign, anna, work.assignment_id, [1] * 4, revision=2, active_ms=7)
    assert stored(campaign, work.assignment_id).active_ms == spent

    work = work_for(campaign, anna)
    assert work.seconds_left == round(spent * 3 / 1000)
    for wrong in (-1, 1.5, True, "7"):
        with pytest.raises(RatingRefused, match="milliseconds"):
            assignment.submit(campaign, anna, work.assignment_id, [1] * 4, active_ms=wrong)  # type: ignore[arg-type]
    assignment.submit(campaign, anna, work.assignment_id, [1] * 4, active_ms=0)
    assert stored(campaign, work.assignment_id).active_ms == 0


def test_a_tutorial_answer_returns_its_guidance_by_shown_position(database: Database) -> None:
    guidance = {"steps": {"0": [20, 25], "2": [0, 5]}, "explanation": "The second one turns *no* into yes."}
    make_campaign(database, [{"kind": "tutorial", "guidance": guidance}, {}], systems=3)
    anna = add_rater(database)
    work = work_for(database, anna)
    steps = [{"o0-0": 25, "o0-1": 3, "o0-2": 6}[text] for text in work.outputs]
    told = assignment.submit(database, anna, work.assignment_id, steps).guidance
    by_output = dict(zip(work.outputs, zip(told.accepted, told.right, strict=True), strict=True))
    assert by_output == {"o0-0": ((20, 25), True), "o0-1": (None, True), "o0-2": ((0, 5), False)}
    assert told.explanation == guidance["explanation"]
    assert assignment.submit(database, anna, work.assignment_id, [0] * 3).guidance == told  # a double click
    assert rate(database, anna, work_for(database, anna)).guidance is None
    assert [one.source for one in assignment.earlier(database, anna)] == ["source 1"]


def test_a_skipped_item_goes_to_others_and_never_comes_back(campaign: Database, anna: int, bert: int) -> None:
    skipped = work_for(campaign, anna)
    for _ in range(2):
        assignment.skip(campaign, anna, skipped.assignment_id, " the source is no sentence ")
    assert stored(campaign, skipped.assignment_id).skip_reason == "the source is no sentence"
    assert work_for(campaign, bert).source == skipped.source
    for act in (assignment.submit, assignment.save_draft):
        with pytest.raises(RatingRefused, match="you have skipped"):
            act(campaign, anna, skipped.assignment_id, [1] * 4)
    assert rate_all(campaign, anna) == ["source 1", "source 2", "source 3"]


def test_a_skip_needs_a_reason_and_an_open_item(database: Database) -> None:
    make_campaign(database, [{"kind": "tutorial"}, {}])
    anna = add_rater(database)
    example = work_for(database, anna)
    with pytest.raises(RatingRefused, match="practice items cannot be skipped"):
        assignment.skip(database, anna, example.assignment_id, "dull")
    rate(database, anna, example)
    work = work_for(database, anna)
    with pytest.raises(RatingRefused, match="say why"):
        assignment.skip(database, anna, work.assignment_id, " ")
    rate(database, anna, work)
    with pytest.raises(RatingRefused, match="already saved"):
        assignment.skip(database, anna, work.assignment_id, "too late")


def test_earlier_items_are_listed_and_reopened_with_what_is_stored(campaign: Database, anna: int) -> None:
    assert assignment.earlier(campaign, anna) == []
    works = []
    for step in (4, 5):
        works.append(work_for(campaign, anna))
        assignment.submit(campaign, anna, works[-1].assignment_id, [step, 1, 2, 3], comment=f"c{step}")
    first, second = (work.assignment_id for work in works)
    assignment.submit(campaign, anna, first, [9, 8, 7, 6], revision=2, comment="better so")
    listed = assignment.earlier(campaign, anna)
    assert [(one.assignment_id, one.number, one.source, one.revision, one.given) for one in listed] == [
        (first, 1, "source 0", 2, "2.8 · 2.6 · 2.4 · 2.2"),
        (second, 2, "source 1", 1, "2.0 · 1.2 · 1.4 · 1.6"),
    ]
    again = assignment.reopen(campaign, anna, first)
    assert (again.draft, again.comment, again.revision) == ([9, 8, 7, 6], "better so", 3)
    assert (again.outputs, again.source) == (works[0].outputs, "source 0")
    assert (again.done, again.total) == (2, 4)


def test_drafts_are_of_one_revision_come_back_and_can_be_discarded(
    campaign: Database, anna: int, work: Work
) -> None:
    number, draft = work.assignment_id, [None, 1, None, None]
    assignment.save_draft(campaign, anna, number, draft, "first")
    again = work_for(campaign, anna)
    assert (again.draft, again.comment) == (draft, "first")
    assert ratings(campaign) == []
    with pytest.raises(RatingRefused, match="not saved yet"):
        assignment.reopen(campaign, anna, number)
    rate(campaign, anna, work, 3)
    with pytest.raises(RatingRefused, match="already saved"):
        assignment.save_draft(campaign, anna, number, draft)
    assert assignment.reopen(campaign, anna, number).draft == [3] * 4
    assignment.save_draft(campaign, anna, number, [3, 4, 3, 3], "second", revision=2)
    again = assignment.reopen(campaign, anna, number)
    assert (again.draft, again.comment, again.revision) == ([3, 4, 3, 3], "second", 2)
    assert len(ratings(campaign)) == 4
    assignment.discard_draft(campaign, anna, number)
    assert assignment.reopen(campaign, anna, number).draft == [3] * 4


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # the test before it runs on both
@settings(max_examples=20, suppress_health_check=FIXTURES_ARE_SHARED)
@given(st.lists(st.lists(st.integers(0, 25), min_size=4, max_size=4), min_size=1, max_size=4))
def test_each_revision_comes_back_as_it_was_sent(campaign: Database, revisions: list[list[int]]) -> None:
    with campaign.transaction() as session:
        session.query(Assignment).delete()
        session.query(Item).update({Item.full: False})
    anna = add_rater(campaign, f"rater {next(NUMBERS)}")  # the examples share the database
    work = work_for(campaign, anna)
    for number, steps in enumerate(revisions, start=1):
        assignment.submit(campaign, anna, work.assignment_id, steps, revision=number)
        assert assignment.reopen(campaign, anna, work.assignment_id).draft == steps
    for number, steps in enumerate(revisions, start=1):
        again = assignment.submit(campaign, anna, work.assignment_id, [0] * 4, revision=number)
        order = stored(campaign, work.assignment_id).order
        assert [again.steps[group[0]] for group in order] == steps
