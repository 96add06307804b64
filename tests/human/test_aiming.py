"""Campaigns that aim: chances are stored, settled systems are rated less, means stay right."""

from __future__ import annotations

import numpy as np
import pytest
from small_campaigns import add_rater, make_campaign, rate, rate_in_turns, work_for
from sqlalchemy import func, select

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.making.campaigns import summary
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.protocols import find_protocol, protocol_names
from creamtea.human.rating.aiming import BLOCK, standings
from creamtea.human.rating.progress import by_kind
from creamtea.human.results.ratings import load_ratings
from creamtea.stats.sequential import SETTLED_SHARE, State
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating

SEGMENTS, MEANS = 60, (50.0, 80.0, 50.5)  # the second is far better, the third is like the baseline
SYSTEMS = len(MEANS)


def aiming_campaign(database: Database, segments: int = SEGMENTS, k: int = 1) -> int:
    """An item for each output, in an order drawn once; the first system is the baseline."""
    rng = np.random.default_rng(1)
    places = rng.permutation([(segment, system) for segment in range(segments) for system in range(SYSTEMS)])
    items = [
        {"segment_index": int(segment), "systems": [int(system)], "outputs": [f"o{segment}-{system}"]}
        for segment, system in places
    ]
    settings = {"aim": True, "baseline": "plain", "delta": 4.0}
    return make_campaign(database, items, k=k, protocol="da", systems=SYSTEMS, **settings)


def rate_all(database: Database, raters: list[int], stop: int | None = None) -> int:
    """How many ratings there were."""
    return len(rate_in_turns(database, raters, MEANS, spread=8, highest=100, stop=stop))


@pytest.mark.slow
def test_settled_systems_are_rated_less_and_everything_is_stored(database: Database) -> None:
    campaign_id = aiming_campaign(database)
    done = rate_all(database, [add_rater(database, name) for name in ("anna", "ben")])
    with database.session() as session:
        campaign = session.get_one(Campaign, campaign_id)
        items = session.scalars(select(Item).where(Item.campaign_id == campaign_id)).all()
        rated = set(session.scalars(select(Assignment.item_id)))
        ratings = load_ratings(session, campaign)
        found = {one.system: one for one in standings(session, ratings, 0, 4.0)}
        numbers = session.scalars(
            select(func.count()).select_from(Assignment).group_by(Assignment.item_id)
        ).all()
        (kind,) = by_kind(session, campaign)
    assert done < 0.9 * SEGMENTS * SYSTEMS
    assert set(numbers) == {1}
    # what was passed over is not missing: nothing is left to be rated
    passed = SEGMENTS * SYSTEMS - done
    assert (kind.items, kind.passed_over) == (SEGMENTS * SYSTEMS, passed)
    assert kind.wanted == kind.submitted == kind.complete == done
    assert (ratings.wanted, ratings.items, ratings.submitted) == (done, done, done)
    assert (ratings.left_out.unrated_items, ratings.left_out.passed_over) == (0, passed)
    told = summary(database, campaign.name)
    assert (told.ratings, told.wanted) == (done, done)
    assert all(item.drawn is not None and item.chance is not None for item in items)
    assert {item.id for item in items if item.drawn} == rated
    assert {item.chance for item in items} == {SETTLED_SHARE, 1.0}
    for segment in range(SEGMENTS):  # whatever is rated, is rated beside the baseline
        own = {item.systems[0]: item for item in items if item.segment_index == segment}
        assert own[0].chance == max(item.chance or 0 for item in own.values())
        assert own[0].drawn or not any(item.drawn for item in own.values())
    better = [item for item in items if item.systems == [1]]
    assert 0.3 < np.mean([item.drawn for item in better]) < 0.6
    assert found[1].look.state is State.BETTER
    assert found[1].complete == found[1].planned == SEGMENTS
    assert found[1].look.units <= SEGMENTS / 2
    assert found[1].look.mean == pytest.approx(30, abs=4)
    # the unbiased mean by its definition, from what is stored
    chance = {item.segment_index: item.chance for item in better}
    matrix = ratings.matrix()
    total = sum(
        (matrix[unit, 1] - matrix[unit, 0]) / chance[int(segment)]
        for unit, segment in enumerate(ratings.segment_index)
        if not np.isnan(matrix[unit, [0, 1]]).any()
    )
    assert found[1].unbiased == pytest.approx(total / SEGMENTS)
    assert (ratings.chance == SETTLED_SHARE).any()


def test_before_anything_is_settled_every_item_of_a_turn_is_rated(database: Database) -> None:
    campaign_id = aiming_campaign(database, segments=2 * BLOCK)
    rater = add_rater(database, "anna")
    assert rate_all(database, [rater], stop=1) == 1
    with database.session() as session:
        turned = session.scalars(
            select(Item).where(Item.campaign_id == campaign_id, Item.drawn.is_not(None))
        ).all()
        first = session.scalars(
            select(Item.segment_index).where(Item.campaign_id == campaign_id).order_by(Item.position)
        ).all()
    assert len(turned) == BLOCK * SYSTEMS
    assert all(item.drawn and item.chance == 1.0 for item in turned)
    assert {item.segment_index for item in turned} == set(list(dict.fromkeys(first))[:BLOCK])
    work = assignment.next_item(database, rater)
    assert work is not None
    assert work.total == 2 * BLOCK * SYSTEMS  # at most: what is passed over later leaves it
    assert rate_all(database, [rater]) == 2 * BLOCK * SYSTEMS - 1  # too few units to settle anything


@pytest.mark.parametrize("system", range(SYSTEMS))
def test_a_skipped_output_holds_nothing_up(database: Database, system: int) -> None:
    segments = 2 * BLOCK
    campaign_id = aiming_campaign(database, segments)
    anna, ben = add_rater(database, "anna"), add_rater(database, "ben")
    while (work := assignment.next_item(database, anna)) is not None:
        if work.outputs[0].endswith(f"-{system}"):
            assignment.skip(database, anna, work.assignment_id, "I do not understand the source")
            break
        rate(database, anna, work)
    rate_all(database, [anna])
    left = {other: segments - (system in {0, other}) for other in (1, 2)}

    def found() -> dict[int, tuple[int, int, int]]:
        with database.session() as session:
            ratings = load_ratings(session, session.get_one(Campaign, campaign_id))
            return {
                one.system: (one.look.units, one.complete, one.planned)
                for one in standings(session, ratings, 0, 4.0)
            }

    assert found() == {other: (units, units, units) for other, units in left.items()}
    rate_all(database, [ben])  # what anna skipped
    assert found() == {other: (units, units, units) for other, units in left.items()}
    with database.transaction() as session:
        session.get_one(Rater, anna).excluded_at = database.now(session)
    rate_all(database, [ben])
    # nor does a skip of what is complete, by somebody whose lease had ended
    late = add_rater(database, "late")
    with database.transaction() as session:
        item = session.scalars(select(Item).where(Item.campaign_id == campaign_id)).first()
        assert item is not None
        now = database.now(session)
        times = {"created_at": now, "lease_until": now, "skipped_at": now}
        session.add(
            Assignment(item_id=item.id, rater_id=late, order=[[0]], comment="", skip_reason="late", **times)
        )
    assert found() == dict.fromkeys((1, 2), (segments, segments, segments))


def test_pairs_without_the_baseline_cannot_aim() -> None:
    settings = CampaignSettings.model_validate({"aim": True})
    with pytest.raises(InputError, match=r"set protocol.pairs to baseline"):
        settings.complete(find_protocol("preference"), ["a", "b"], None)


@pytest.mark.parametrize("protocol", protocol_names(rated_here=True))
def test_every_protocol_can_aim(protocol: str) -> None:
    pairs = {"pairs": "baseline"} if find_protocol(protocol).chooses_pairs else {}
    settings = CampaignSettings.model_validate({"aim": True, **pairs})
    assert settings.complete(find_protocol(protocol), ["a", "b"], None).aim


def test_the_scores_of_a_passed_over_item_are_nobodys(database: Database) -> None:
    aiming_campaign(database, segments=2)
    with database.transaction() as session:
        for item in session.scalars(select(Item)):
            item.chance, item.drawn = 0.5, item.systems[0] != 2
    done = rate_all(database, [add_rater(database, "anna")])
    with database.session() as session:
        assert set(session.scalars(select(Rating.system))) == {0, 1}
    assert done == 4


def document_campaign(database: Database, documents: int, as_pages: bool) -> int:
    """Documents of one to three segments; the second system far better. As pages: one of each document and
    system; else each output by itself, in an order drawn over all."""
    rng = np.random.default_rng(3)
    items, segment = [], 0
    for document in rng.permutation(documents):
        size = 1 + int(document) % 3
        for system in rng.permutation(SYSTEMS):
            page = len(items)  # the position of its first item
            items += [
                {
                    "segment_index": segment + at,
                    "document": f"d{document}",
                    "systems": [int(system)],
                    "outputs": [f"o{segment + at}-{system}"],
                    **({"page": page} if as_pages else {}),
                }
                for at in range(size)
            ]
        segment += size
    if not as_pages:
        items = [items[at] for at in rng.permutation(len(items))]
    settings = {"unit": "document"} if as_pages else {}
    settings |= {"aim": True, "baseline": "plain", "delta": 4.0}
    return make_campaign(database, items, protocol="da", systems=SYSTEMS, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("as_pages", [True, False])
def test_documents_have_their_turns_whole(database: Database, as_pages: bool) -> None:
    documents = 36
    campaign_id = document_campaign(database, documents, as_pages)
    rate_all(database, [add_rater(database, name) for name in ("anna", "ben")])
    with database.session() as session:
        campaign = session.get_one(Campaign, campaign_id)
        items = session.scalars(select(Item).where(Item.campaign_id == campaign_id)).all()
        rated = set(session.scalars(select(Assignment.item_id)))
        rows = session.execute(
            select(Assignment.rater_id, Item.document).join(Item, Item.id == Assignment.item_id)
        ).all()
        found = {one.system: one for one in standings(session, load_ratings(session, campaign), 0, 4.0)}
    outcome: dict[tuple[str, int], set[tuple[float | None, bool | None]]] = {}
    for item in items:
        outcome.setdefault((item.document, item.systems[0]), set()).add((item.chance, item.drawn))
    assert {len(values) for values in outcome.values()} == {1}
    assert {item.id for item in items if item.drawn} == rated
    assert found[1].look.state is State.BETTER
    assert found[1].planned == found[1].complete == documents
    assert found[1].look.units <= 0.75 * documents
    assert found[1].unbiased is not None
    assert len(rated) < 0.95 * len(items)
    if as_pages:  # a rater has a document's systems together, but for the last, where nothing else is left
        both = {name for _, name in rows if len({rater for rater, other in rows if other == name}) > 1}
        assert len(both) <= 1


def test_items_of_weight_0_tell_nothing_before_the_end(database: Database) -> None:
    """They are rated like others."""
    make_campaign(database, [{"weight": float(number != 1)} for number in range(12)], systems=2)
    rater = add_rater(database)
    for number in range(11):
        work = work_for(database, rater)
        assignment.submit(database, rater, work.assignment_id, [number, 10])
    with database.session() as session:
        ratings = load_ratings(session, find_campaign(session, "c"))
        (found,) = standings(session, ratings, 0, 4.0)
    assert (found.complete, found.planned) == (10, 11)
