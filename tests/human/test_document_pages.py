"""A page of several segments: given out, drafted, saved and skipped whole; the order of outputs."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_campaigns import LAPSED, ON_BOTH, add_rater, make_campaign, rate, rate_all, ratings, work_for
from sqlalchemy import select

from creamtea.human import rating as assignment
from creamtea.human.rating import RatingRefused, Work
from creamtea.human.rating.page import Order, draw_order, groups_of, joint_order, order_on, page_groups
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Item, Rating


def page(document: str, start: int, size: int, systems: Sequence[int] = range(4), **fields: Any) -> list[Any]:
    usual = {"page": start, "document": document, "systems": list(systems), **fields}
    return [
        {"outputs": [f"o{at}-{system}" for system in systems], **usual} for at in range(start, start + size)
    ]


THREE = [*page("d0", 0, 3), *page("d0", 3, 2), *page("d1", 5, 3)]


def rows(database: Database, rater: int) -> list[tuple[int | None, Assignment]]:
    with database.session() as session:
        found = session.execute(
            select(Item.page, Assignment)
            .join(Item, Item.id == Assignment.item_id)
            .where(Assignment.rater_id == rater)
            .order_by(Item.position)
        )
        return [(page, assignment) for page, assignment in found]


@pytest.fixture
def campaign(database: Database) -> Database:
    make_campaign(database, THREE, unit="document")
    return database


def test_a_page_shows_its_segments_in_order_by_the_same_letters(
    campaign: Database, anna: int, work: Work
) -> None:
    assert [segment.source for segment in work.segments] == ["source 0", "source 1", "source 2"]
    assert {tuple(segment.letters) for segment in work.segments} == {("A", "B", "C", "D")}
    systems = {tuple(text.partition("-")[2] for text in segment.outputs) for segment in work.segments}
    assert len(systems) == 1
    assert (len(work.outputs), work.done, work.total, work.document) == (12, 0, 8, True)
    assert work_for(campaign, anna) == work


def test_equal_outputs_of_a_segment_stand_together_under_their_letters(database: Database) -> None:
    items = page("d", 0, 2, [0, 1, 2])
    items[0]["outputs"] = ["x", "y", "x"]
    make_campaign(database, items, unit="document")
    anna = add_rater(database)
    work = work_for(database, anna)
    letter = dict(zip(work.segments[1].outputs, work.segments[1].letters, strict=True))
    assert sorted(letter.values()) == ["A", "B", "C"]
    both = " = ".join(sorted([letter["o1-0"], letter["o1-2"]]))
    assert dict(zip(work.segments[0].outputs, work.segments[0].letters, strict=True)) == {
        "x": both,
        "y": letter["o1-1"],
    }
    saved = assignment.submit(database, anna, work.assignment_id, list(range(len(work.outputs))))
    assert saved.of_items[0][0] == saved.of_items[0][2]
    assert len(set(saved.of_items[1].values())) == 3


@ON_BOTH
def test_a_page_is_saved_whole_once_and_revised_whole(campaign: Database, anna: int, work: Work) -> None:
    for wrong in ([5] * 11 + [None], [5] * 11 + [26], [5] * 11, [5] * 13):
        with pytest.raises(RatingRefused):
            assignment.submit(campaign, anna, work.assignment_id, wrong)
        if None not in wrong:
            with pytest.raises(RatingRefused):
                assignment.save_draft(campaign, anna, work.assignment_id, wrong)
    assert ratings(campaign) == []
    assert all(one.submitted_at is None and one.draft is None for _, one in rows(campaign, anna))
    answers = list(range(12))
    for _ in range(2):
        saved = assignment.submit(campaign, anna, work.assignment_id, answers, comment="c", active_ms=0)
        assert [len(of_item) for of_item in saved.of_items] == [4, 4, 4]
        assert [step for of_item in saved.of_items for step in sorted(of_item.values())] == answers
    assert len(ratings(campaign)) == 12
    (one,) = assignment.earlier(campaign, anna)
    assert (one.number, one.items, one.source, one.revision) == (1, 3, "source 0", 1)
    again = assignment.reopen(campaign, anna, one.assignment_id)
    assert (again.draft, again.comment, again.revision, again.done) == (answers, "c", 2, 3)
    assignment.save_draft(campaign, anna, one.assignment_id, [None] * 11 + [7], "d", 2)
    assert assignment.reopen(campaign, anna, one.assignment_id).draft == [None] * 11 + [7]
    assignment.submit(campaign, anna, one.assignment_id, [5] * 12, revision=2)
    assert {rating.step for rating in ratings(campaign) if rating.revision == 2} == {5}
    assert work_for(campaign, anna).source == "source 3"


@ON_BOTH
def test_drafts_and_leases_are_of_the_whole_page(campaign: Database, anna: int, bert: int) -> None:
    work = work_for(campaign, anna, lease=LAPSED)
    draft = [None, 3, *[None] * 9, 4]
    assignment.save_draft(campaign, anna, work.assignment_id, draft, "so far")
    assert len({one.lease_until for _, one in rows(campaign, anna)}) == 1
    assert work_for(campaign, bert).source == "source 5"  # of another document, the lease was renewed
    again = work_for(campaign, anna)
    assert (again.draft, again.comment) == (draft, "so far")


@ON_BOTH
def test_a_page_is_skipped_whole(campaign: Database, anna: int, bert: int, work: Work) -> None:
    assignment.skip(campaign, anna, work.assignment_id, "broken")
    mine = rows(campaign, anna)
    assert [(page, one.skip_reason) for page, one in mine] == [(0, "broken")] * 3
    assert len({one.skipped_at for _, one in mine}) == 1
    assert work_for(campaign, anna).source == "source 3"
    assert work_for(campaign, bert).source == "source 5"  # anna has begun d0
    with pytest.raises(RatingRefused, match="you have skipped"):
        rate(campaign, anna, work)


def test_time_is_shared_by_what_there_is_to_read(database: Database) -> None:
    items = page("d", 0, 3, [0])
    items[1]["source"] = "s" * 97
    make_campaign(database, items, protocol="da", unit="document")
    anna = add_rater(database)
    work = work_for(database, anna)
    with database.transaction() as session:
        for one in session.scalars(select(Assignment)):
            one.created_at -= 50 * LAPSED * -1
    assignment.submit(database, anna, work.assignment_id, [1, 2, 3], active_ms=10_001)
    spent = [one.active_ms for _, one in rows(database, anna)]
    assert sum(spent) == 10_001
    assert spent[1] > 4 * spent[0]


@ON_BOTH
def test_a_rater_stays_with_a_document_and_begins_one_that_is_free(database: Database) -> None:
    items = [
        item
        for document in range(3)
        for system in range(2)
        for item in page(f"d{document}", 4 * document + 2 * system, 2, [system])
    ]
    make_campaign(database, items, protocol="da", systems=2, unit="document")
    anna, bert = add_rater(database), add_rater(database, "bert")
    for rater in (anna, bert, anna, bert, anna, bert):
        rate(database, rater, work_for(database, rater))
    with database.session() as session:
        rows = session.execute(select(Item.document, Assignment.rater_id).join(Assignment))
        turns = Counter(map(tuple, rows))
    assert sorted(turns.items())[:2] == [(("d0", anna), 4), (("d1", bert), 4)]
    assert {document for document, _ in turns} == {"d0", "d1", "d2"}


def test_controls_come_as_pages(database: Database) -> None:
    items = [*page("d0", 0, 2), *page("d1", 2, 2), *page("d0", 4, 2, kind="repeat"), *page("d2", 6, 2)]
    items[4]["original"], items[5]["original"] = 0, 1
    make_campaign(database, items, unit="document")
    anna = add_rater(database)
    seen = []
    while (work := assignment.next_item(database, anna)) is not None:
        seen.append((work.source, work.done, work.total))
        rate(database, anna, work)
    assert seen == [("source 0", 0, 8), ("source 2", 2, 8), ("source 4", 4, 8), ("source 6", 6, 8)]


# ---------------------------------------------------------------- scores of the whole


def test_a_document_has_a_score_of_its_own_for_each_text(database: Database) -> None:
    items = [*page("d0", 0, 2, [0, 1, 2]), {"kind": "tutorial"}]
    for item in items[:2]:
        item["outputs"] = ["x", "y", "x"]  # on the whole page the same
    make_campaign(database, items, systems=3, unit="document", document_score=True)
    anna = add_rater(database)
    practice = work_for(database, anna)
    assert (practice.tutorial, practice.document_letters) == (True, [])
    rate(database, anna, practice)
    work = work_for(database, anna)
    assert (work.document_letters, work.document_draft) == (["A", "B"], [None, None])
    first = work.assignment_id
    for wrong in ([], [1], [1, 2, 3], [1, None], [1, 26]):
        with pytest.raises(RatingRefused, match="whole document"):
            assignment.submit(database, anna, first, [5] * 4, document=wrong)
    assert ratings(database)[3:] == []
    assignment.save_draft(database, anna, first, [None] * 4, document=[None, 7])
    assert work_for(database, anna).document_draft == [None, 7]
    scores = [{"x": 20, "y": 10}[text] for text in work.outputs[:2]]
    for _ in range(2):
        saved = assignment.submit(database, anna, first, [5] * 4, document=scores)
        assert saved.document == {0: 20, 1: 10, 2: 20}
    assert assignment.reopen(database, anna, first).document_draft == scores
    assignment.submit(database, anna, first, [5] * 4, 2, document=[3, 3])
    kept = select(Item.position, Rating.revision, Rating.document_step)
    with database.session() as session:
        rows = session.execute(kept.join_from(Rating, Assignment).join(Item).where(Item.kind == "rated"))
        found = Counter(map(tuple, rows))
    assert found == {
        (0, 1, 20): 2, (0, 1, 10): 1, (1, 1, None): 3, (0, 2, 3): 3, (1, 2, None): 3
    }  # fmt: skip


@ON_BOTH
def test_a_document_on_two_pages_is_scored_once_on_the_last(database: Database) -> None:
    items = [*page("d0", 0, 2, [0, 1]), *page("d0", 2, 1, [0, 1]), *page("d1", 3, 1, [0, 1])]
    items[2]["outputs"] = ["end", "end"]  # two texts that end in the same way
    make_campaign(database, items, systems=2, unit="document", document_score=True)
    anna = add_rater(database)
    first = work_for(database, anna)
    assert (first.document_letters, first.document_before) == ([], [])
    with pytest.raises(RatingRefused, match="whole document instead of 0"):
        assignment.submit(database, anna, first.assignment_id, [5] * 4, document=[4, 4])
    rate(database, anna, first)
    last = work_for(database, anna)
    assert (last.outputs, last.document_letters) == (["end"], ["1", "2"])
    assert [(segment.source, segment.outputs) for segment in last.document_before] == [
        ("source 0", ["o0-0", "o0-1"]),
        ("source 1", ["o1-0", "o1-1"]),
    ]
    with pytest.raises(RatingRefused, match="1 score of the whole document instead of 2"):
        assignment.submit(database, anna, last.assignment_id, [5], document=[4])
    saved = assignment.submit(database, anna, last.assignment_id, [5], document=[4, 9])
    assert saved.document == {0: 4, 1: 9}
    assert assignment.reopen(database, anna, last.assignment_id).document_draft == [4, 9]
    assert [len(answer) for answer in saved.of_items] == [2]
    other = work_for(database, anna)
    assert (other.document_letters, other.document_before) == (["A", "B"], [])
    assert len([one for one in ratings(database) if one.document_step is not None]) == 2


def test_two_systems_share_a_score_if_they_say_the_same_everywhere(database: Database) -> None:
    draw = random.Random(7)
    for number in range(8):
        items: list[Any] = []
        for _ in range(draw.randint(1, 3)):
            items += page("d0", len(items), draw.randint(1, 2), [0, 1, 2])
        for item in items:
            item["outputs"] = [draw.choice("xy") for _ in range(3)]
        name = f"c{number}"
        make_campaign(database, items, name=name, systems=3, unit="document", document_score=True)
        anna = add_rater(database, campaign=name)
        scored = []
        while (work := assignment.next_item(database, anna)) is not None:
            letters = work.document_letters
            assert len(set(letters)) == len(letters)
            document = list(range(len(letters)))
            scores = [3] * len(work.outputs)
            scored.append(assignment.submit(database, anna, work.assignment_id, scores, document=document))
        (whole,) = (saved.document for saved in scored if saved.document)
        spoken = [[item["outputs"][system] for item in items] for system in range(3)]
        for one in range(3):
            for other in range(3):
                assert (whole[one] == whole[other]) == (spoken[one] == spoken[other])


TEXTS = st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=1, max_size=5)


@given(TEXTS, st.randoms(use_true_random=False))
def test_a_pages_order_is_found_again_from_those_of_its_items(texts: list[list[int]], draw: Any) -> None:
    groups = [groups_of(range(4), [str(text) for text in of_item]) for of_item in texts]
    drawn = page_groups(groups)
    draw.shuffle(drawn)
    orders = [order_on(drawn, of_item) for of_item in groups]
    found = joint_order(orders)
    assert [order_on(found, of_item) for of_item in groups] == orders
    assert sorted(map(sorted, found)) == sorted(map(sorted, page_groups(groups)))


def test_each_rater_gets_a_documents_systems_in_an_order_of_their_own(database: Database) -> None:
    items = [
        one
        for document in range(2)
        for system in range(3)
        for part in range(2)
        for one in page(f"d{document}", 6 * document + 2 * system + part, 1, [system])
    ]
    make_campaign(database, items, unit="document", protocol="da", systems=3, k=3)
    orders = set()
    for name in ("anna", "ben", "cleo"):
        sources = rate_all(database, add_rater(database, name))
        places = [int(source.removeprefix("source ")) for source in sources]
        assert [place // 6 for place in places] == [0] * 6 + [1] * 6
        firsts, seconds = places[::2], places[1::2]
        assert seconds == [first + 1 for first in firsts]  # the parts of one system's text
        orders |= {tuple(first % 6 // 2 for first in own) for own in (firsts[:3], firsts[3:])}
    assert len(orders) > 2
    assert all(sorted(order) == [0, 1, 2] for order in orders)


# ---------------------------------------------------------------- the order of outputs


SOME_TEXTS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=8)


def spread(orders: list[Order], systems: int) -> int:
    """The largest difference between two counts of (system, column)."""
    count = Counter(
        (system, column) for order in orders for column, group in enumerate(order) for system in group
    )
    cells = [count[system, column] for system in range(systems) for column in range(systems)]
    return max(cells) - min(cells)


@given(SOME_TEXTS, st.permutations(range(8)))
def test_equal_outputs_stand_together_under_their_own_systems(outputs: list[str], names: list[int]) -> None:
    systems = names[: len(outputs)]
    groups = groups_of(systems, outputs)
    text_of = dict(zip(systems, outputs, strict=True))
    assert sorted(system for group in groups for system in group) == sorted(systems)
    assert [text_of[group[0]] for group in groups] == list(dict.fromkeys(outputs))
    assert all(text_of[system] == text_of[group[0]] for group in groups for system in group)


@given(SOME_TEXTS, st.lists(SOME_TEXTS, max_size=6), st.integers(0, 3), st.text(max_size=3))
def test_an_order_shows_each_group_once_and_follows_from_what_was_drawn_before(
    outputs: list[str], others: list[list[str]], times: int, seed: str
) -> None:
    groups = groups_of(range(len(outputs)), outputs)
    of_rater = [groups_of(range(len(other)), other) for other in others]
    of_item = [draw_order(groups, seed=str(number)) for number in range(times)]
    order = draw_order(groups, of_item=of_item, of_rater=of_rater, seed=seed)
    assert sorted(order) == sorted(groups)
    assert order == draw_order(groups, of_item=of_item, of_rater=of_rater, seed=seed)


def test_seeds_reach_every_order() -> None:
    groups = groups_of(range(4), "abcd")
    drawn = Counter(str(draw_order(groups, seed=str(seed))) for seed in range(1200))
    assert len(drawn) == 24
    assert max(drawn.values()) < 100  # 50 expected, seven standard deviations away


@pytest.mark.parametrize(("systems", "k", "people"), [(4, 3, 3), (4, 3, 6), (2, 2, 4), (8, 2, 5)])
def test_columns_are_balanced_over_the_raters_of_an_item_and_the_items_of_a_rater(
    systems: int, k: int, people: int
) -> None:
    draw = random.Random(1)
    by_item: dict[int, list[Order]] = defaultdict(list)
    by_rater: dict[int, list[Order]] = defaultdict(list)
    groups = [[system] for system in range(systems)]
    for item in range(60):
        for rater in draw.sample(range(people), k):
            before = {"of_item": by_item[item], "of_rater": by_rater[rater]}
            order = draw_order(groups, **before, seed=f"{item}/{rater}")
            by_item[item].append(order)
            by_rater[rater].append(order)
    assert max(spread(orders, systems) for orders in by_item.values()) <= 1
    # the item comes first; a drawing at random has a spread of about 10 here
    assert max(spread(orders, systems) for orders in by_rater.values()) <= 3


@given(st.integers(2, 6), st.integers(1, 20), st.integers(0, 99))
def test_a_rater_alone_is_balanced_exactly(systems: int, items: int, seed: int) -> None:
    orders: list[Order] = []
    for item in range(items):
        groups = [[system] for system in range(systems)]
        orders.append(draw_order(groups, of_rater=orders, seed=f"{seed}/{item}"))
        assert spread(orders, systems) <= 1


def test_shared_outputs_are_balanced_too() -> None:
    orders: list[Order] = []
    for item in range(60):
        groups = groups_of(range(3), ("aab", "abb", "aba")[item % 3])
        orders.append(draw_order(groups, of_rater=orders, seed=str(item)))
    left = Counter(system for order in orders for system in order[0])
    assert all(abs(left[system] - 30) <= 2 for system in range(3))
