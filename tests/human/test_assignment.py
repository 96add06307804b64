"""Who gets which item: places, leases, one item once, on both databases."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from limits import wait_until
from small_campaigns import (
    LAPSED,
    add_rater,
    make_campaign,
    rate,
    rate_all,
    ratings,
    set_state,
    work_for,
)
from sqlalchemy import select
from table_rows import all_of

from creamtea.human import rating as assignment
from creamtea.human.rating import RatingRefused, Work, drawing, places, raters
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Rater

FOUR = ["source 0", "source 1", "source 2", "source 3"]


EQUAL = {"outputs": ["ein Haus", "das Haus", "ein Haus", "Haus"]}  # shown once, with a common score
TURNED = {"systems": [3, 1], "outputs": ["left", "right"]}


@pytest.mark.parametrize(
    ("protocol", "item", "steps", "stored"),
    [
        ("contrastive-da", EQUAL, {"ein Haus": 25, "das Haus": 12, "Haus": 0}, {0: 25, 1: 12, 2: 25, 3: 0}),
        ("preference", TURNED, {"left": 2, "right": 0}, {3: 2, 1: 0}),
    ],
)
def test_scores_are_stored_under_the_positions_of_systems(
    database: Database, protocol: str, item: Any, steps: dict[str, int], stored: dict[int, int]
) -> None:
    make_campaign(database, [item], protocol=protocol, systems=4)
    anna = add_rater(database)
    work = work_for(database, anna)
    assert (work.source_language, work.target_language, work.protocol.name) == ("en", "de", protocol)
    assert (work.draft, work.comment, work.revision, work.tutorial) == ([None] * len(steps), "", 1, False)
    assert sorted(work.outputs) == sorted(steps)
    saved = assignment.submit(database, anna, work.assignment_id, [steps[text] for text in work.outputs])
    assert saved.steps == stored


def test_a_rater_gets_each_item_once_and_then_nothing(campaign: Database, anna: int) -> None:
    for done, source in enumerate(FOUR):
        work = work_for(campaign, anna, lease=LAPSED)  # which still counts, as nobody took the item
        assert work_for(campaign, anna) == work
        assert (work.source, work.done, work.total) == (source, done, 4)
        rate(campaign, anna, work)
    assert assignment.next_item(campaign, anna) is None


def test_an_abandoned_lease_returns_to_the_others(campaign: Database, anna: int, bert: int) -> None:
    abandoned = work_for(campaign, anna, lease=LAPSED)
    taken = work_for(campaign, bert)
    assert taken.source == abandoned.source
    with pytest.raises(RatingRefused, match="given to someone else"):
        rate(campaign, anna, abandoned)
    rate(campaign, bert, taken)
    assert work_for(campaign, anna).source != abandoned.source
    assert {r.assignment_id for r in ratings(campaign)} == {taken.assignment_id}


def test_the_last_items_are_with_others_until_they_are_answered(database: Database) -> None:
    make_campaign(database, 1)
    anna, bert = add_rater(database), add_rater(database, "bert")
    assert not assignment.others_have_items(database, bert)
    work = work_for(database, anna)
    assert assignment.next_item(database, bert) is None
    assert assignment.others_have_items(database, bert)
    assert not assignment.others_have_items(database, anna)
    rate(database, anna, work)
    assert not assignment.others_have_items(database, bert)


@pytest.mark.parametrize(("k", "size"), [(1, 1), (3, 1), (2, 3)])
def test_many_raters_at_once_give_each_page_k_ratings_by_k_raters(
    database: Database, k: int, size: int
) -> None:
    """`size`: segments on a page."""
    pages = [{"page": at - at % size, "document": f"d{at // (2 * size)}"} for at in range(4 * size)]
    make_campaign(database, pages if size > 1 else 4, k=k, unit="segment" if size == 1 else "document")
    people = [add_rater(database, f"r{i}") for i in range(8)]

    def work_through(person: int) -> None:
        while (work := assignment.next_item(database, person)) is not None:
            assert len(work.segments) == size
            rate(database, person, work, step=person % 25)
            rate(database, person, work, step=25)  # the second click of a double click

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work_through, people))
    with database.session() as session:
        done = session.execute(select(Assignment.item_id, Assignment.rater_id)).all()
    assert Counter(Counter(item for item, _ in done).values()) == {k: 4 * size}
    assert len(set(done)) == len(done)
    assert len(ratings(database)) == 4 * size * k * 4
    assert 25 not in {rating.step for rating in ratings(database)}


def test_where_the_whole_shortlist_goes_meanwhile_the_next_items_are_found(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_campaign(database, 6)
    anna, bert = add_rater(database), add_rater(database, "bert")
    monkeypatch.setattr(places, "SHORTLIST", 1)
    look = places.load_outlook
    looks = []

    def slow_look(*args: object) -> places.Outlook:
        outlook = look(*args)  # type: ignore[arg-type]
        looks.append(outlook)
        if len(looks) == 1:  # anna's first: bert is quicker
            rate(database, bert, work_for(database, bert))
        return outlook

    monkeypatch.setattr("creamtea.human.rating.drawing.load_outlook", slow_look)
    assert work_for(database, anna).source == "source 1"
    assert looks[0].shortlist != looks[-1].shortlist


def test_a_few_raters_at_once_look_for_a_page(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """All who come in one moment would slow each other down, and those who submit."""
    make_campaign(database, 12)
    people = [add_rater(database, f"r{number}") for number in range(12)]
    look, counting, inside, most = drawing.load_outlook, threading.Lock(), 0, 0

    def counted_look(*args: object) -> places.Outlook:
        nonlocal inside, most
        with counting:
            inside += 1
            most = max(most, inside)
        wait_until(lambda: most >= drawing.LOOKS)
        outlook = look(*args)  # type: ignore[arg-type]
        with counting:
            inside -= 1
        return outlook

    monkeypatch.setattr(drawing, "load_outlook", counted_look)
    with ThreadPoolExecutor(12) as pool:
        sources = {work.source for work in pool.map(lambda rater: work_for(database, rater), people)}
    assert (len(sources), most) == (12, drawing.LOOKS)


def test_two_tabs_of_one_rater_show_the_same_item(database: Database) -> None:
    make_campaign(database, 30)
    anna = add_rater(database)
    with ThreadPoolExecutor(8) as pool:
        works = list(pool.map(lambda _: work_for(database, anna), range(16)))
    assert len({work.assignment_id for work in works}) == 1


def test_the_document_of_the_last_item_goes_on_where_context_is_shown(database: Database) -> None:
    items = [{"document": name, "context": ["before"]} for name in "aabbab"]
    make_campaign(database, items, context=2, protocol="da")
    anna, bert = add_rater(database), add_rater(database, "bert")
    first = work_for(database, anna)
    assert first.segments[0].context == ["before"]
    second = work_for(database, bert)
    rate(database, bert, second)
    rate(database, anna, first)
    taken = work_for(database, bert)
    assert (first.source, second.source, taken.source) == ("source 0", "source 1", "source 4")
    assert work_for(database, anna).source == "source 2"


def test_every_rater_does_the_whole_tutorial_first(database: Database) -> None:
    make_campaign(database, [{}, {"kind": "tutorial"}, {"kind": "tutorial"}, {}])
    for name in ("anna", "bert"):
        rater = add_rater(database, name)
        for done in range(2):
            work = work_for(database, rater)
            found = (work.tutorial, work.done, work.total, work.source)
            assert found == (True, done, 2, f"source {done + 1}")
            rate(database, rater, work)
        work = work_for(database, rater)
        assert (work.tutorial, work.done) == (False, 0)
        assert work.source == {"anna": "source 0", "bert": "source 3"}[name]


def test_a_control_goes_to_those_who_rated_its_original_and_once(database: Database) -> None:
    controls = [{"kind": "repeat", "original": 0}, {"kind": "bad-reference", "original": 1}]
    make_campaign(database, [{}, {}, {}, *controls, {}], k=2)
    anna, bert, cora = (add_rater(database, name) for name in ("anna", "bert", "cora"))
    skipped = work_for(database, cora)
    assignment.skip(database, cora, skipped.assignment_id, "no idea what it says")
    seen = {anna: rate_all(database, anna), cora: rate_all(database, cora), bert: rate_all(database, bert)}
    assert skipped.source == "source 0"
    assert sorted(seen[anna]) == [f"source {position}" for position in range(6)]
    assert sorted(seen[cora]) == [f"source {position}" for position in (1, 2, 4, 5)]
    assert sorted(seen[bert]) == [f"source {position}" for position in (0, 3)]


def test_controls_keep_their_distance_in_a_raters_own_answers(database: Database) -> None:
    """And the total counts them from the start."""
    items = [{} for _ in range(12)]
    items.insert(6, {"kind": "repeat", "original": 0})
    items.insert(9, {"kind": "bad-reference", "original": 2})
    make_campaign(database, items)
    anna = add_rater(database)
    for position in range(14):
        work = work_for(database, anna)
        assert (work.source, work.total) == (f"source {position}", 14)
        rate(database, anna, work)


def test_a_control_is_not_early_where_others_rate_between(database: Database) -> None:
    items = [{} for _ in range(12)]
    items.insert(4, {"kind": "repeat", "original": 0})
    make_campaign(database, items)
    anna, bert = add_rater(database), add_rater(database, "bert")
    seen = []
    for _ in range(5):
        for person in (anna, bert):
            work = work_for(database, person)
            rate(database, person, work)
            if person == anna:
                seen.append(work.source)
    assert seen == ["source 0", "source 2", "source 5", "source 7", "source 4"]


@pytest.mark.parametrize(("state", "message"), [("draft", "has not begun"), ("closed", "is closed")])
def test_only_a_launched_campaign_gives_items_and_takes_scores(
    campaign: Database, anna: int, work: Work, state: str, message: str
) -> None:
    set_state(campaign, 1, state)
    for act in (
        lambda: assignment.next_item(campaign, anna),
        lambda: rate(campaign, anna, work),
        lambda: assignment.save_draft(campaign, anna, work.assignment_id, [1] * 4),
        lambda: assignment.skip(campaign, anna, work.assignment_id, "unclear"),
        lambda: assignment.reopen(campaign, anna, work.assignment_id),
    ):
        with pytest.raises(RatingRefused, match=message):
            act()
    assert ratings(campaign) == []


def test_no_item_before_consent_or_for_nobody(campaign: Database) -> None:
    with pytest.raises(assignment.ConsentMissing):
        assignment.next_item(campaign, add_rater(campaign, consented=False))
    with pytest.raises(RatingRefused, match="no longer valid"):
        assignment.next_item(campaign, 99)


def test_a_raters_total_stays_and_who_has_nothing_left_is_finished(database: Database) -> None:
    campaign = make_campaign(database, [{}, {}, {}, {"kind": "repeat", "original": 0}, {}])
    anna, bert = add_rater(database), add_rater(database, "bert")
    work = work_for(database, anna)
    assert (work.done, work.left, work.total) == (0, 5, 5)
    rate(database, anna, work)
    rate(database, bert, work_for(database, bert))
    work = work_for(database, anna)
    assert (work.done, work.left, work.total) == (1, 3, 5)  # what is left has shrunk
    assignment.skip(database, anna, work.assignment_id, "too hard")
    assert not any(person.finished for person in raters.overview(database, campaign))
    rate_all(database, anna)
    finished = {person.pseudonym: person.finished for person in raters.overview(database, campaign)}
    assert finished == {"anna": True, "bert": False}  # what anna skipped is left for bert
    rate_all(database, bert)
    assert all(person.finished for person in raters.overview(database, campaign))


def test_who_has_an_attention_check_to_come_is_not_finished(database: Database) -> None:
    check = {"kind": "attention-check", "guidance": {"steps": {}, "spans": {}, "above": [], "warning": None}}
    campaign = make_campaign(database, [{}, check], attention_every=1)
    anna = add_rater(database)
    for finished in (False, True):
        rate(database, anna, work_for(database, anna))
        assert [person.finished for person in raters.overview(database, campaign)] == [finished]


def test_what_raters_will_see_is_shown_ahead_and_nothing_is_given_out(database: Database) -> None:
    items = [{}, {}, {"kind": "repeat", "original": 0}, {"kind": "tutorial", "source": "practice"}]
    campaign_id = make_campaign(database, items, state="draft")
    with database.session() as session:
        campaign = session.get_one(Campaign, campaign_id)
        *pages, beyond = (assignment.page_ahead(session, campaign, number) for number in range(5))
        assert (beyond, list(session.new)) == (None, [])
        invented = raters.welcome_of(session, campaign, Rater(pseudonym="rater-01"))
        ahead = raters.workload_of(session, campaign)
    assert [(page.source, page.tutorial, page.done, page.left, page.total) for page in pages] == [
        ("practice", True, 0, 1, 1),
        ("source 0", False, 0, 3, 3),
        ("source 1", False, 1, 2, 3),
        ("source 2", False, 2, 1, 3),
    ]
    assert sorted(pages[1].outputs) == [f"o0-{system}" for system in range(4)]
    anna = add_rater(database)
    told = raters.welcome(database, anna)
    assert replace(told, pseudonym="rater-01", consented=False) == invented
    assert raters.workload(database, anna) == ahead
    assert all_of(database, select(Assignment)) == []


def test_pages_of_documents_are_shown_ahead_whole(database: Database) -> None:
    items = [{"page": 0, "document": "d0"}, {"page": 0, "document": "d0"}, {"page": 2, "document": "d1"}]
    campaign_id = make_campaign(database, items, state="draft", unit="document", document_score=True)
    with database.session() as session:
        campaign = session.get_one(Campaign, campaign_id)
        first, second = (assignment.page_ahead(session, campaign, number) for number in range(2))
    assert ([segment.source for segment in first.segments], first.done) == (["source 0", "source 1"], 0)
    shown = ([segment.source for segment in second.segments], second.done, second.total)
    assert shown == (["source 2"], 2, 3)
