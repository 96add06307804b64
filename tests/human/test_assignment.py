from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from creamtea.human import assignment, campaigns
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Item, Rating

LAPSED = timedelta(seconds=-1)


@pytest.fixture
def campaign(study_database: Database) -> Database:
    make_campaign(study_database, 1)
    return study_database


def make_campaign(database: Database, k: int) -> None:
    campaigns.create_campaign(
        database,
        "c",
        study="jam",
        test_set="test",
        systems=["plain", "beam", "scones", "entmax"],
        ratings_per_item=k,
    )


def rater(database: Database, name: str = "anna") -> int:
    return campaigns.add_rater(database, "c", name)


def work_for(database: Database, rater_id: int, **options: timedelta) -> assignment.Work:
    work = assignment.next_item(database, rater_id, **options)
    assert work is not None
    return work


def rate(database: Database, rater_id: int, work: assignment.Work, step: int = 3) -> assignment.Submitted:
    return assignment.submit(database, rater_id, work.assignment_id, [step] * len(work.outputs))


def ratings(database: Database) -> list[Rating]:
    with database.session() as session:
        return list(session.scalars(select(Rating).order_by(Rating.id)))


# ---------------------------------------------------------------- what is shown


def test_equal_outputs_are_shown_once_and_share_the_score(campaign: Database) -> None:
    anna = rater(campaign)
    while True:
        work = work_for(campaign, anna)
        if "ein Haus" in work.outputs:
            break
        rate(campaign, anna, work)
    assert sorted(work.outputs) == ["Haus", "das Haus", "ein Haus"]
    steps = [{"ein Haus": 25, "das Haus": 12, "Haus": 0}[text] for text in work.outputs]
    stored = assignment.submit(campaign, anna, work.assignment_id, steps)
    assert stored.steps == {0: 25, 1: 12, 2: 25, 3: 0}


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
    st.integers(0, 9),
    st.text(max_size=3),
    st.integers(0, 99),
)
def test_the_drawn_order_has_every_system_once(outputs: list[str], seed: int, name: str, item: int) -> None:
    order = assignment.draw_order(outputs, seed, name, item)
    assert sorted(system for group in order for system in group) == list(range(len(outputs)))
    assert sorted(outputs[group[0]] for group in order) == sorted(set(outputs))
    assert all(outputs[system] == outputs[group[0]] for group in order for system in group)
    assert order == assignment.draw_order(outputs, seed, name, item)


def test_orders_vary_over_raters_and_items() -> None:
    outputs = ["a", "b", "c", "d"]
    by_rater = {str(assignment.draw_order(outputs, 1, f"r{i}", 0)) for i in range(300)}
    by_item = {str(assignment.draw_order(outputs, 1, "r", i)) for i in range(300)}
    assert len(by_rater) == len(by_item) == 24


def test_the_order_is_stored_and_what_is_shown(campaign: Database) -> None:
    work = work_for(campaign, rater(campaign))
    with campaign.session() as session:
        stored = session.get_one(Assignment, work.assignment_id)
        item = session.get_one(Item, stored.item_id)
    assert [item.outputs[group[0]] for group in stored.order] == work.outputs
    assert (work.source_language, work.target_language) == ("en", "de")


# ---------------------------------------------------------------- who gets what


def test_a_rater_gets_each_item_once_and_then_nothing(campaign: Database) -> None:
    anna = rater(campaign)
    sources = []
    for done in range(4):
        work = work_for(campaign, anna)
        assert (work.done, work.total) == (done, 4)
        sources.append(work.source)
        rate(campaign, anna, work)
    assert sorted(sources) == ["source 0", "source 1", "source 3", "source 4"]
    assert assignment.next_item(campaign, anna) is None


def test_asking_again_gives_the_same_item(campaign: Database) -> None:
    anna = rater(campaign)
    assert work_for(campaign, anna) == work_for(campaign, anna)


def test_two_raters_share_the_items_without_overlap(campaign: Database) -> None:
    anna, bert = rater(campaign), rater(campaign, "bert")
    seen: Counter[str] = Counter()
    while works := [w for r in (anna, bert) if (w := assignment.next_item(campaign, r))]:
        for person, work in zip((anna, bert), works, strict=False):
            seen[work.source] += 1
            rate(campaign, person, work)
    assert seen == {f"source {i}": 1 for i in (0, 1, 3, 4)}


def test_an_abandoned_lease_returns_to_the_others(campaign: Database) -> None:
    anna, bert = rater(campaign), rater(campaign, "bert")
    abandoned = work_for(campaign, anna, lease=LAPSED)
    taken = work_for(campaign, bert)
    assert taken.source == abandoned.source
    with pytest.raises(assignment.RatingRefused, match="given to somebody else"):
        rate(campaign, anna, abandoned)
    rate(campaign, bert, taken)
    assert work_for(campaign, anna).source != abandoned.source
    assert {r.assignment_id for r in ratings(campaign)} == {taken.assignment_id}


def test_a_lapsed_lease_that_nobody_took_still_counts(campaign: Database) -> None:
    anna = rater(campaign)
    work = work_for(campaign, anna, lease=LAPSED)
    assert work_for(campaign, anna).assignment_id == work.assignment_id
    assert len(rate(campaign, anna, work).steps) == 4


@pytest.mark.parametrize("k", [1, 3])
def test_many_raters_at_once_give_each_item_k_ratings_by_k_raters(study_database: Database, k: int) -> None:
    make_campaign(study_database, k)
    raters = [rater(study_database, f"r{i}") for i in range(8)]

    def work_through(person: int) -> None:
        while (work := assignment.next_item(study_database, person)) is not None:
            rate(study_database, person, work, step=person % 26)
            rate(study_database, person, work, step=25)  # the second click of a double click

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work_through, raters))
    with study_database.session() as session:
        done = session.execute(select(Assignment.item_id, Assignment.rater_id)).all()
    assert Counter(item for item, _ in done) == dict.fromkeys({item for item, _ in done}, k)
    assert len(set(done)) == len(done) == 4 * k
    assert len(ratings(study_database)) == 4 * k * 4


# ---------------------------------------------------------------- saving


def test_many_submits_at_once_store_one_rating_a_system(campaign: Database) -> None:
    anna = rater(campaign)
    work = work_for(campaign, anna)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda step: rate(campaign, anna, work, step), range(16)))
    assert all(result == results[0] for result in results)
    assert len(set(results[0].steps.values())) == 1
    stored = ratings(campaign)
    assert sorted(rating.system for rating in stored) == [0, 1, 2, 3]
    assert {rating.step for rating in stored} == set(results[0].steps.values())


def test_a_revision_is_added_and_the_first_kept(campaign: Database) -> None:
    anna = rater(campaign)
    work = work_for(campaign, anna)
    count = len(work.outputs)
    rate(campaign, anna, work, 3)
    for step in (9, 11):
        again = assignment.submit(campaign, anna, work.assignment_id, [step] * count, revision=2)
        assert set(again.steps.values()) == {9}
    assert Counter((r.revision, r.step) for r in ratings(campaign)) == {(1, 3): 4, (2, 9): 4}
    with pytest.raises(assignment.RatingRefused, match="does not follow"):
        assignment.submit(campaign, anna, work.assignment_id, [1] * count, revision=4)


@pytest.mark.parametrize("wrong", [None, -1, 26, 2.0, True, "3"])
def test_a_missing_or_impossible_score_stores_nothing(campaign: Database, wrong: object) -> None:
    anna = rater(campaign)
    work = work_for(campaign, anna)
    steps: list = [3] * len(work.outputs)
    steps[-1] = wrong
    with pytest.raises(assignment.RatingRefused):
        assignment.submit(campaign, anna, work.assignment_id, steps)
    with pytest.raises(assignment.RatingRefused, match="scores for"):
        assignment.submit(campaign, anna, work.assignment_id, [3])
    assert ratings(campaign) == []
    assert work_for(campaign, anna).assignment_id == work.assignment_id


def test_another_raters_item_is_refused(campaign: Database) -> None:
    anna, bert = rater(campaign), rater(campaign, "bert")
    work = work_for(campaign, anna)
    for act in (assignment.submit, assignment.save_draft):
        with pytest.raises(assignment.RatingRefused, match="not yours"):
            act(campaign, bert, work.assignment_id, [3] * len(work.outputs))
    with pytest.raises(assignment.RatingRefused, match="not yours"):
        assignment.submit(campaign, bert, 10**6, [3])
    assert ratings(campaign) == []


def test_a_draft_comes_back_and_stores_no_rating(campaign: Database) -> None:
    anna = rater(campaign)
    work = work_for(campaign, anna)
    assert work.draft == [None] * len(work.outputs)
    draft = [None, 25, *[None] * (len(work.outputs) - 2)]
    assignment.save_draft(campaign, anna, work.assignment_id, draft)
    assert work_for(campaign, anna).draft == draft
    assert ratings(campaign) == []
    rate(campaign, anna, work)
    with pytest.raises(assignment.RatingRefused, match="saved already"):
        assignment.save_draft(campaign, anna, work.assignment_id, draft)


def test_a_draft_renews_the_lease(campaign: Database) -> None:
    anna, bert = rater(campaign), rater(campaign, "bert")
    mine = work_for(campaign, anna, lease=LAPSED)
    assignment.save_draft(campaign, anna, mine.assignment_id, [None] * len(mine.outputs))
    assert work_for(campaign, bert).source != mine.source
