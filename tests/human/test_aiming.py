"""Campaigns that aim: chances are stored, settled systems are rated less, means stay right."""

from __future__ import annotations

import numpy as np
import pytest
from small_campaigns import add_rater, make_campaign
from sqlalchemy import func, select

from creamtea.errors import InputError
from creamtea.human import assignment
from creamtea.human.aiming import BLOCK, standings
from creamtea.human.protocols import find_protocol
from creamtea.human.results import load_ratings
from creamtea.human.settings import CampaignSettings
from creamtea.stats.aiming import SETTLED_SHARE, State
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, Rating

SEGMENTS, MEANS = 110, (50.0, 80.0, 50.5)  # the second is far better, the third is like the baseline
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
    """Raters take turns until nothing is left; how many ratings there were."""
    rng = np.random.default_rng(2)
    done = 0
    working = list(raters)
    while working and done != stop:
        for rater in list(working):
            work = assignment.next_item(database, rater)
            if work is None:
                working.remove(rater)
                continue
            _, system = work.outputs[0][1:].split("-")
            step = int(np.clip(round(rng.normal(MEANS[int(system)], 8)), 0, 100))
            assignment.submit(database, rater, work.assignment_id, [step])
            done += 1
    return done


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
    assert done < 0.8 * SEGMENTS * SYSTEMS
    assert set(numbers) == {1}
    assert all(item.drawn is not None and item.chance is not None for item in items)
    assert {item.id for item in items if item.drawn} == rated
    assert {item.chance for item in items} == {SETTLED_SHARE, 1.0}
    for segment in range(SEGMENTS):  # whatever is rated, is rated beside the baseline
        own = {item.systems[0]: item for item in items if item.segment_index == segment}
        assert own[0].chance == max(item.chance or 0 for item in own.values())
        assert own[0].drawn or not any(item.drawn for item in own.values())
    better = [item for item in items if item.systems == [1]]
    assert 0.3 < np.mean([item.drawn for item in better]) < 0.65
    assert found[1].look.state is State.BETTER
    assert found[1].look.units == found[1].planned == SEGMENTS
    assert found[1].look.mean == pytest.approx(30, abs=8)
    assert (ratings.chance == SETTLED_SHARE).any()


def test_before_anything_is_settled_every_item_of_a_turn_is_rated(database: Database) -> None:
    campaign_id = aiming_campaign(database, segments=3 * BLOCK)
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
    assert work.total == 3 * BLOCK * SYSTEMS  # at most: what is passed over later leaves it
    assert rate_all(database, [rater]) == 3 * BLOCK * SYSTEMS - 1  # too few units to settle anything


@pytest.mark.parametrize(
    ("protocol", "more"), [("contrastive-da", {}), ("preference", {}), ("da", {"unit": "document"})]
)
def test_what_cannot_aim_is_refused(protocol: str, more: dict[str, str]) -> None:
    settings = CampaignSettings.model_validate({"aim": True, **more})
    with pytest.raises(InputError, match="--aim leaves out single outputs"):
        settings.complete(find_protocol(protocol), ["a", "b"], None)


def test_the_scores_of_a_passed_over_item_are_nobodys(database: Database) -> None:
    aiming_campaign(database, segments=2)
    with database.transaction() as session:
        for item in session.scalars(select(Item)):
            item.chance, item.drawn = 0.5, item.systems[0] != 2
    done = rate_all(database, [add_rater(database, "anna")])
    with database.session() as session:
        assert set(session.scalars(select(Rating.system))) == {0, 1}
    assert done == 4
