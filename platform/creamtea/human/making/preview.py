"""A campaign's cost and statistical power, before anybody rates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creamtea.human.making.campaigns import count_pages
from creamtea.human.making.settings import CampaignSettings, DrawnFrom, settings_of
from creamtea.human.media import Amount, amount_of_media
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.rating.places import item_kinds
from creamtea.human.results.ratings import load_ratings, planned_units
from creamtea.stats.estimate import ROUNDING, USUAL_INTRACLASS
from creamtea.stats.power import (
    POWER,
    Sample,
    equivalence_power,
    intraclass_correlation,
    items_needed,
    power_of,
    worth,
)
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.rows import from_row
from creamtea.store.tables import SYSTEM_KINDS, Campaign, Item, ItemKind, StudyRow
from creamtea.wording import counted, percent

_SAME = 1e-9
_NOTHING = Sample(0.0, 0.0, 0.0)
MIN_UNITS = 10  # rated units of an earlier campaign that a standard deviation needs


@dataclass(frozen=True)
class Preview:
    """A campaign's cost and power; scores and differences are in points of the protocol's scale."""

    campaign: str
    state: str
    protocol: str
    drawn: DrawnFrom | None  # segments
    kinds: dict[str, int]  # items
    split: int | None  # documents longer than a page; None unless documents are rated
    of_documents: int | None  # all documents; None likewise
    segments_per_page: int
    document_score: bool  # whether the last page of each document asks for a score of the whole
    pages: int | None  # pages of the items without practice; None if each item has its own page
    minutes_per_page: float | None  # on average; None likewise
    media: Amount  # of sources and outputs
    ratings_per_item: int
    ratings: int  # items times raters, with controls, without each rater's practice items
    minutes_per_item: float
    by_rule_of_thumb: bool  # whether these minutes are for texts of any length, without files
    rater_hours: float  # for all raters, with practice and attention checks for `raters` people
    raters: int  # minimum of raters
    hours_per_rater: float  # with this minimum
    delta: float
    comparisons: int  # systems against the baseline
    pairs: int | None  # pairs of systems in the correction, if pages show some of the systems
    units: float  # effective number of segments (pairs) in one comparison, by their weights
    documents: float | None  # effective number of their documents; None if units are independent
    design_effect: float  # by what factor documents raise the number of segments needed; 1 without documents
    intraclass: float | None  # of the differences, within documents
    deviation: float  # of the differences between two systems
    deviation_from: str  # an earlier campaign's name; "" for the usual deviation
    # to find a difference of `delta` with the two-sided paired t-test at 5 %; None with less than two units
    power: float | None
    # to show that the difference is at most `delta`, if there is none; None likewise
    no_difference: float | None
    detectable: float | None  # the smallest difference found with a power of 80 %; None with one unit
    units_needed: int | None  # to find `delta` with a power of 80 %; None above a million

    @property
    def doubt(self) -> str:
        """A warning before the launch of a campaign that will probably decide nothing; else ""."""
        if self.power is None:
            nothing = f"These ratings decide nothing: their power is {self._no_test}."
            return f"{nothing} For {percent(POWER)} {self._needed}."
        if self.power >= POWER:
            return ""
        found = f"a difference of {self.written(self.delta)} in {percent(self.power)} of cases"
        little = f"These ratings will probably decide little: they find {found}."
        return f"{little} For {percent(POWER)} {self._needed}."

    @property
    def _needed(self) -> str:
        needed = "over a million" if self.units_needed is None else f"{self.units_needed:,}"
        return f"it takes {needed} segments"

    @property
    def _no_test(self) -> str:
        what = "documents" if self.documents is not None else "segments"
        return f"unknown, because a test needs ratings of at least two {what}"

    def written(self, points: float) -> str:
        """Write a difference as reports do: "0.2 points", "5 %" of preferences."""
        return find_protocol(self.protocol).points.difference(points)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the facts that the command and the page show: a label and a text each."""
        yield "items", ", ".join(ItemKind(kind).counted(count) for kind, count in self.kinds.items())
        if self.pages is not None:
            yield "pages", f"{self.pages:,}, {self.minutes_per_page:.1f} minutes each on average"
        if self.split:
            text = f"{self.split:,} of {self.of_documents:,} are longer than a page "
            text += f"({counted(self.segments_per_page, 'segment')})"
            text += "; the whole is scored on the last page" if self.document_score else ""
            yield "documents", text
        if self.media.files:
            text = f"{self.media.files:,} of sources and outputs, {self.media.size / 1e6:,.1f} MB"
            text += "; minutes per item do not count them" if self.by_rule_of_thumb else ""
            yield "files", text
        if (drawn := self.drawn) is not None:
            text = f"{drawn.documents:,} of {drawn.of_documents:,} documents, " if drawn.documents else ""
            text += f"{drawn.chosen:,} of {counted(drawn.population, 'segment')}"
            text += f" on which {' and '.join(drawn.between)} differ" if drawn.between else ""
            text += f"; the test set has {drawn.segments:,}, the systems differ on {drawn.differing:,}"
            yield "drawn", text
        unit = "minute" if self.minutes_per_item == 1 else "minutes"
        each = f"({self.ratings_per_item} per item), {self.minutes_per_item:g} {unit} each"
        yield "ratings", f"{self.ratings:,} {each}"
        people = counted(self.raters, "rater")
        yield "rater hours", f"{self.rater_hours:.1f} in all; {self.hours_per_rater:.1f} each for {people}"
        delta = self.written(self.delta)
        if self.power is None or self.no_difference is None:
            yield "power", self._no_test
        else:
            text = f"{percent(self.power)} to find a difference of {delta} between a system and the baseline"
            test = (
                "two-sided paired t-test" if self.pairs is None else "two-sided t-test over shared segments"
            )
            text += f" ({test} at 5 %, {self.units:,.0f} effective segments"
            if self.documents is not None:
                text += f" in {self.documents:,.0f} effective documents: segments within one correlate "
                text += f"(ρ = {self.intraclass:.2f}), so {self.design_effect:.2f} times as many segments are"
                text += " needed"
            text += ")"
            if self.pairs is not None:
                text += f"; for one comparison: the correction over {self.pairs} pairs of systems lowers it"
                if find_protocol(self.protocol).max_outputs == 1:
                    text += "; blocks of single outputs decide for these raters only"
            elif self.comparisons > 1:
                text += f"; for one comparison: Holm's correction for {self.comparisons} lowers it"
            yield "power", text
            shown = "to show that the difference is no larger, if there is none"
            yield "equivalence", f"{percent(self.no_difference)} {shown}"
        scale = find_protocol(self.protocol).scale
        reach = "none" if self.detectable is None else self.written(self.detectable)
        if self.detectable is not None and self.detectable > scale.highest - scale.lowest:
            reach = f"none on a scale of {self.written(float(scale.highest - scale.lowest))}"
        smallest = f"smallest detectable difference ({percent(POWER)} power)"
        yield "detectable", f"{smallest}: {reach}; for {delta} {self._needed}"
        text = f"{self.written(self.deviation)} assumed (standard deviation of differences), "
        earlier = self.deviation_from
        yield "spread", text + (f"as in {earlier}" if earlier else "the usual without earlier ratings")


def preview(database: Database, name: str) -> Preview:
    """Return items, hours and power of a campaign. InputError for an unknown name.

    The power is for one comparison, without a correction for several.
    """
    with database.session() as session:
        campaign = find_campaign(session, name)
        protocol = find_protocol(campaign.protocol, campaign.settings)
        settings = settings_of(campaign.settings)
        kinds = item_kinds(session, campaign.id)
        media = amount_of_media(session, campaign.id)
        pages = count_pages(session, [campaign.id]).get(campaign.id) if settings.by_documents else None
        lengths = _parts(session, campaign.id) if settings.by_documents else None
        spread, intraclass, source = _spread(session, campaign, protocol)
        sample = _sample(session, campaign, protocol, settings, intraclass)
    items = sum(count for kind, count in kinds.items() if not ItemKind(kind).is_written)
    systems = len(campaign.systems)
    shown = settings.block_size(systems)
    share = settings.share_given_out(protocol, systems)
    items, pages = round(items * share), None if pages is None else round(pages * share)
    ratings = items * campaign.ratings_per_item
    usual = protocol.minutes(shown or systems)  # a draft stores this number if its file has none
    minutes = settings.minutes_per_item or usual
    # if each rater rates all items, with as many attention checks as in `raters.workload`
    checks = min(kinds.get(ItemKind.ATTENTION, 0), items // settings.attention_every)
    beside = (kinds.get(ItemKind.TUTORIAL, 0) + checks) * campaign.ratings_per_item
    hours = (ratings + beside) * minutes / 60
    delta = settings.delta or protocol.usual_delta
    in_documents = sample.documents < sample.units - _SAME
    # if the test is over documents, each document has one difference
    tested = sample.documents if in_documents else sample.units
    whole = max(1, int(tested + _SAME))
    deviation = spread * math.sqrt(tested / sample.effective) if in_documents else spread
    segments_each = sample.units / sample.documents if in_documents else 1.0
    if shown is not None:  # k/n of the segments show a system, each with the efficiency n(k − 1)/(k(n − 1))
        segments_each *= (systems - 1) / (shown - 1)
    needed = items_needed(delta, deviation)
    return from_row(
        Preview,
        settings,
        campaign=campaign.name,
        state=campaign.state,
        protocol=protocol.name,
        kinds=kinds,
        split=None if lengths is None else sum(parts > 1 for parts in lengths),
        of_documents=None if lengths is None else len(lengths),
        pages=pages,
        minutes_per_page=minutes * items / pages if pages else None,
        media=media,
        ratings_per_item=campaign.ratings_per_item,
        ratings=ratings,
        minutes_per_item=minutes,
        by_rule_of_thumb=minutes == usual,
        rater_hours=hours,
        raters=campaign.ratings_per_item,
        hours_per_rater=hours / campaign.ratings_per_item,
        delta=delta,
        comparisons=systems - 1,
        pairs=None if shown is None else math.comb(systems, 2),
        units=sample.units,
        documents=sample.documents if in_documents else None,
        design_effect=sample.design_effect,
        intraclass=intraclass if in_documents else None,
        deviation=spread,
        deviation_from=source,
        power=power_of(whole, delta, deviation) if whole > 1 else None,
        no_difference=equivalence_power(whole, 0.0, delta, deviation) if whole > 1 else None,
        detectable=detectable(whole, deviation),
        units_needed=None if needed is None else math.ceil(needed * segments_each - _SAME),
    )


def _parts(session: Session, campaign: int) -> list[int]:
    """Return the number of pages of each document for one system's text."""
    rows = session.execute(
        select(Item.document, Item.page, func.min(Item.segment_index))
        .where(Item.campaign_id == campaign, Item.page.is_not(None), Item.kind.in_(SYSTEM_KINDS))
        .group_by(Item.document, Item.page)
    )
    starts: dict[str, set[int]] = defaultdict(set)  # first segments of each document's parts
    for document, _, first in rows:
        starts[document].add(first)
    return [len(segments) for segments in starts.values()]


def detectable(units: int, deviation: float) -> float | None:
    """Return the difference [points] that a two-sided paired t-test finds in 80 of 100 cases."""
    if units < 2:
        return None
    from scipy.optimize import brentq  # slow to import

    highest = deviation
    while power_of(units, highest, deviation) < POWER:
        highest *= 2
    return float(brentq(lambda difference: power_of(units, difference, deviation) - POWER, 0.0, highest))


def _sample(
    session: Session,
    campaign: Campaign,
    protocol: Protocol,
    settings: CampaignSettings,
    intraclass: float,
) -> Sample:
    """Return the effective sample of the comparison with the baseline that has the fewest units."""
    names = campaign.systems
    baseline = settings.position_of_baseline(names)
    planned = planned_units(session, campaign.id, protocol).values()
    # in blocks of k of n systems, all units of a system count, through chains of pages, with the efficiency
    # n(k − 1)/(k(n − 1)) of a balanced design
    n, k = len(names), settings.block_size(len(names))
    efficiency = 1.0 if k is None else n * (k - 1) / (k * (n - 1))
    if k is not None and settings.design == "adaptive":  # before blocks are drawn, units have all systems
        efficiency *= k * (k - 1) / (n * (n - 1)) if protocol.relative else k / n
    own = [
        [unit for unit in planned if {system, baseline if k is None else system} <= unit.systems]
        for system in range(n)
        if system != baseline
    ]
    samples = [
        worth([unit.weight for unit in units], [unit.document for unit in units], intraclass)
        if units
        else _NOTHING
        for units in own
    ]
    least = min(samples, key=lambda sample: sample.effective, default=_NOTHING)
    return Sample(*(efficiency * amount for amount in (least.units, least.effective, least.documents)))


def _spread(session: Session, campaign: Campaign, protocol: Protocol) -> tuple[float, float, str]:
    """Return the spread of differences with the baseline, and its source.

    The spread is the standard deviation in points and the intraclass correlation within documents. The source
    is the newest other campaign on a study of this name with the same protocol and enough ratings; "" for the
    usual values.
    """
    if campaign.study_id is not None:
        study = session.get_one(StudyRow, campaign.study_id)
        alike = StudyRow.name == study.name, Campaign.protocol == protocol.name, Campaign.id != campaign.id
        earlier = select(Campaign).join(StudyRow).where(*alike, Campaign.launched_at.is_not(None))
        for other in session.scalars(earlier.order_by(Campaign.id.desc())):
            measured = measured_spread(session, other)
            if measured is not None:
                return *measured, other.name
    return protocol.usual_deviation(), USUAL_INTRACLASS, ""


def measured_spread(session: Session, campaign: Campaign) -> tuple[float, float] | None:
    """Return the standard deviation and intraclass correlation of a campaign's differences.

    The sample standard deviation is pooled over the differences with the baseline. The correlation is within
    documents; without documents it is the usual one. None if no comparison has enough rated units, or if all
    differences are equal.
    """
    ratings = load_ratings(session, campaign)
    matrix = ratings.matrix()
    systems = campaign.systems
    baseline = settings_of(campaign.settings).position_of_baseline(systems)
    columns = [
        matrix[:, system] - matrix[:, baseline] for system in range(len(systems)) if system != baseline
    ]
    differences = (column[~np.isnan(column)] for column in columns)
    rated = [values for values in differences if len(values) >= MIN_UNITS]
    squares = list(chain.from_iterable((values - values.mean()) ** 2 for values in rated))
    freedom = len(squares) - len(rated)
    size = max((float(np.abs(values).max()) for values in rated), default=0.0)
    # equal differences leave only rounding
    if max(squares, default=0.0) <= (ROUNDING * size) ** 2:
        return None
    within = intraclass_correlation(columns, ratings.document)
    return math.sqrt(sum(squares) / freedom), USUAL_INTRACLASS if within is None else within
