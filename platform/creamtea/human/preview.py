"""What a campaign will cost and what it can show, before anybody rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.campaigns import count_pages, find_campaign, item_kinds
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.results import load_ratings
from creamtea.human.settings import CampaignSettings, DrawnFrom, settings_of
from creamtea.stats.power import (
    POWER,
    equivalence_power,
    items_needed,
    power_of,
)
from creamtea.store.database import Database
from creamtea.store.item_kinds import SYSTEM_KINDS, ItemKind
from creamtea.store.tables import Campaign, Item, StudyRow

MIN_UNITS = 10  # of an earlier campaign, for a standard deviation


@dataclass(frozen=True)
class Preview:
    """Scores and differences are in points of the protocol's scale."""

    campaign: str
    state: str
    protocol: str
    drawn: DrawnFrom | None  # segments
    kinds: dict[str, int]  # items
    pages: int | None  # on which they are shown, tutorial left out; None where each item has its own
    minutes_per_page: float | None  # in the mean; None likewise
    ratings_per_item: int
    ratings: int  # items times raters, controls included; tutorial items come on top, once a rater
    minutes_per_item: float
    rater_hours: float  # of all raters, the tutorial of as many as an item has included
    raters: int  # the fewest who can do it
    hours_per_rater: float  # if no more than those take part
    delta: float
    comparisons: int  # systems against the baseline
    units: float  # what decides one comparison: segments (pairs), as many as their weights leave
    deviation: float  # of the differences of two systems
    deviation_from: str  # an earlier campaign's name; "" for the usual one
    power: float  # to find a difference of `delta` with the two-sided paired t-test at 5 %
    no_difference: float  # the chance to show that there is none larger than `delta` where there is none
    detectable: float | None  # the smallest difference found with a power of 80 %; None with one unit
    units_needed: int | None  # to find `delta` with a power of 80 %; None above a million


def preview(database: Database, name: str) -> Preview:
    """Items, hours and power of a campaign. InputError for a name that is not known.

    Power is that of one comparison, without Holm's correction for several.
    """
    with database.session() as session:
        campaign = find_campaign(session, name)
        protocol = find_protocol(campaign.protocol)
        settings = settings_of(campaign.settings)
        kinds = item_kinds(session, campaign.id)
        pages = count_pages(session, campaign.id) if settings.by_documents else None
        units = _units(session, campaign, protocol, settings)
        deviation, source = _deviation(session, campaign, protocol)
    items = sum(count for kind, count in kinds.items() if not ItemKind(kind).is_written)
    ratings = items * campaign.ratings_per_item
    minutes = settings.minutes_per_item or protocol.minutes(len(campaign.systems))
    hours = (ratings + kinds.get(ItemKind.TUTORIAL, 0) * campaign.ratings_per_item) * minutes / 60
    delta = settings.delta or protocol.usual_delta
    whole = max(1, int(units))
    return Preview(
        campaign=campaign.name,
        state=campaign.state,
        protocol=protocol.name,
        drawn=settings.drawn,
        kinds=kinds,
        pages=pages,
        minutes_per_page=minutes * items / pages if pages else None,
        ratings_per_item=campaign.ratings_per_item,
        ratings=ratings,
        minutes_per_item=minutes,
        rater_hours=hours,
        raters=campaign.ratings_per_item,
        hours_per_rater=hours / campaign.ratings_per_item,
        delta=delta,
        comparisons=len(campaign.systems) - 1,
        units=units,
        deviation=deviation,
        deviation_from=source,
        power=power_of(whole, delta, deviation),
        no_difference=equivalence_power(whole, 0.0, delta, deviation),
        detectable=detectable(whole, deviation),
        units_needed=items_needed(delta, deviation),
    )


def detectable(units: int, deviation: float, power: float = POWER) -> float | None:
    """The difference, in points, that a two-sided paired t-test of so many units finds with this power."""
    if units < 2:
        return None
    from scipy.optimize import brentq  # as in `creamtea.human.assignment.orders`

    highest = deviation
    while power_of(units, highest, deviation) < power:
        highest *= 2
    return float(brentq(lambda difference: power_of(units, difference, deviation) - power, 0.0, highest))


def effective(weights: list[float]) -> float:
    """How many equally weighted units a weighted mean is worth: (Σw)²/Σw² (Kish 1965)."""
    total = sum(weights)
    return total**2 / sum(weight**2 for weight in weights) if total else 0.0


def _units(session: Session, campaign: Campaign, protocol: Protocol, settings: CampaignSettings) -> float:
    """The effective number of units of the comparison with the baseline that has the fewest."""
    names = list(campaign.systems)
    baseline = names.index(settings.baseline) if settings.baseline in names else 0
    weights: list[dict[int, float]] = [{} for _ in names]  # of a system: unit → weight
    rows = session.execute(
        select(Item.position, Item.segment_index, Item.systems, Item.weight).where(
            Item.campaign_id == campaign.id, Item.kind.in_(SYSTEM_KINDS)
        )
    )
    for position, segment, systems, weight in rows:
        if not protocol.relative or baseline in systems:
            for system in systems:
                weights[system][position if protocol.relative else segment] = weight
    others = (units for system, units in enumerate(weights) if system != baseline)
    return min((effective(list(units.values())) for units in others), default=0.0)


def _deviation(session: Session, campaign: Campaign, protocol: Protocol) -> tuple[float, str]:
    """The standard deviation of the differences with the baseline, and the campaign it comes from.

    From the newest other campaign on a study of this name with the same protocol and enough ratings;
    otherwise the usual one.
    """
    if campaign.study_id is not None:
        study = session.get_one(StudyRow, campaign.study_id)
        earlier = session.scalars(
            select(Campaign)
            .join(StudyRow, StudyRow.id == Campaign.study_id)
            .where(
                StudyRow.name == study.name,
                Campaign.protocol == protocol.name,
                Campaign.id != campaign.id,
                Campaign.launched_at.is_not(None),
            )
            .order_by(Campaign.id.desc())
        )
        for other in earlier:
            deviation = measured_deviation(session, other)
            if deviation:
                return deviation, other.name
    return protocol.usual_deviation(), ""


def measured_deviation(session: Session, campaign: Campaign) -> float | None:
    """The pooled sample standard deviation of a campaign's differences with its baseline; None where no
    comparison has enough rated units, or nothing ever differed."""
    matrix = load_ratings(session, campaign).matrix()
    names = list(campaign.systems)
    settings = settings_of(campaign.settings)
    baseline = names.index(settings.baseline) if settings.baseline in names else 0
    columns = (matrix[:, system] - matrix[:, baseline] for system in range(len(names)) if system != baseline)
    differences = (column[~np.isnan(column)] for column in columns)
    rated = [values for values in differences if len(values) >= MIN_UNITS]
    squares = list(chain.from_iterable((values - values.mean()) ** 2 for values in rated))
    freedom = len(squares) - len(rated)
    return math.sqrt(sum(squares) / freedom) if rated and any(squares) else None
