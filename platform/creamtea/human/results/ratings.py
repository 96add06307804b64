"""A campaign's ratings as arrays, for the statistics: what counts, and how much was left out and why.

A few queries read a campaign whatever its size; texts are not among what they fetch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.protocols.scale import Scale
from creamtea.human.results.score_rows import Integers, read_scores
from creamtea.stats.repeated import one_rating_each
from creamtea.store.item_kinds import ItemKind
from creamtea.store.rows import from_row
from creamtea.store.tables import Assignment, Campaign, Item, Rater

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CampaignFacts:
    """What a campaign is, without its items."""

    id: int
    name: str
    test_set: str
    protocol: Protocol
    systems: tuple[str, ...]
    source_language: str
    target_language: str
    ratings_per_item: int
    seed: int
    state: str
    is_planned: bool
    settings: CampaignSettings
    registered_test: str | None  # that decides comparisons; None where nothing was registered

    @property
    def scale(self) -> Scale:
        return self.protocol.scale


@dataclass(frozen=True)
class LeftOut:
    """What is stored and does not count in the statistics of systems, by the reason. Ratings are scores
    of one system by one rater for one item."""

    excluded_raters: int
    excluded_ratings: int  # of raters who are excluded
    replaced_ratings: int  # that a later revision took the place of
    control_ratings: int  # of repeats, bad references and tutorial items: they tell of raters
    skipped: int  # assignments that a rater skipped with a reason
    unrated_items: int  # items for the statistics without a rating that counts
    passed_over: int  # items for the statistics that a campaign that aims never gives to anyone
    incomplete_items: int  # with some, but fewer raters than were asked for


@dataclass(frozen=True)
class Controls:
    """Ratings of exact repeats and bad references, by raters of `Ratings.raters`: WMT's rules make a rater's
    mean and deviation of them, some years also a segment's mean. (controls,) each."""

    rater: Integers
    system: Integers
    segment: Integers  # of the test set
    repeat: NDArray[np.bool_]  # a bad reference where it is not
    value: Array


@dataclass(frozen=True)
class Ratings:
    """The ratings of a campaign that count: the highest revision of an assignment whose rater is not
    excluded, for items that are no controls.

    A row of the units' arrays is a segment (its outputs may be spread over several items), or, where two
    outputs are compared, the pair: one item. A row of the ratings' arrays is one score, `value` in points of
    the protocol's scale.
    """

    campaign: CampaignFacts
    raters: tuple[str, ...]  # pseudonyms, of those with a rating that counts
    # (units,)
    segment_index: Integers
    weight: Array
    document: Integers  # numbers of documents; a segment that has none is one of its own, below 0
    random: NDArray[np.bool_]  # from the part that was drawn at random beside a choice by disagreement
    chance: Array  # (units, systems): how probably an output was rated at all; 1 but where campaigns aim
    # (ratings,)
    item: Integers  # numbers of items
    unit: Integers  # rows of the units' arrays
    rater: Integers  # positions in raters
    system: Integers  # positions in campaign.systems
    value: Array
    moment: Integers  # [s since 1970] when the answer was submitted
    controls: Controls
    submitted: int  # assignments of items that count, by raters who are not excluded
    wanted: int  # items that count times the raters asked for each; made elsewhere: those that there are
    items: int  # that count
    left_out: LeftOut
    domains: Mapping[int, str] = field(default_factory=dict)  # segment → domain, where the campaign knows it

    @property
    def documents(self) -> Integers | None:
        """(units,): the documents that intervals and tests are over, since segments of one go together, and
        the pairs of one segment. None where each unit stands for itself: none shares its document, or all
        come from one, of which nothing can be said but by its segments."""
        for groups in (self.document, -1 - self.segment_index):
            found = len(np.unique(groups))
            if found > 1:
                return groups if found < len(groups) else None
        return None

    @property
    def together(self) -> str:
        """What `documents` are, in a word: without documents, the segments of pairs."""
        groups = self.documents
        return "segment" if groups is not None and bool((groups < 0).all()) else "document"

    @cached_property
    def judgements(self) -> Judgements:
        """One for each rater and output: the mean where a rater rated it on several items."""
        (unit, rater, system), value = one_rating_each(self.unit, self.rater, self.system, value=self.value)
        return Judgements(unit, rater, system, value)

    def matrix(self) -> Array:
        """(units, systems): means over raters; NaN where a system has no rating on a unit."""
        return self._means(self.judgements.unit, len(self.segment_index))

    def side_by_side(self) -> tuple[Integers, Integers, Array]:
        """Unit (m,), rater (m,) and scores (m, systems) of each rater's work on each unit; NaN where a rater
        gave a system no score there."""
        raters = max(1, len(self.raters))
        key = self.judgements.unit * raters + self.judgements.rater
        unique, row = np.unique(key, return_inverse=True)
        return unique // raters, unique % raters, self._means(row, len(unique))

    def _means(self, row: Integers, rows: int) -> Array:
        """(rows, systems): the mean of the judgements in each row by system; NaN without one."""
        shape = (rows, len(self.campaign.systems))
        cell = row * shape[1] + self.judgements.system
        counts = np.bincount(cell, minlength=shape[0] * shape[1])
        sums = np.bincount(cell, weights=self.judgements.value, minlength=shape[0] * shape[1])
        with np.errstate(invalid="ignore"):
            means: Array = np.where(counts > 0, sums / counts, np.nan).reshape(shape)
        return means


@dataclass(frozen=True)
class Judgements:
    """What each rater thinks of each output that they rated, (judgements,) each: numbers as in `Ratings`."""

    unit: Integers
    rater: Integers
    system: Integers
    value: Array  # points


def load_ratings(session: Session, campaign: Campaign) -> Ratings:
    """The campaign's ratings that count, and the counts of those that do not.

    InputError where the plug-in with the campaign's protocol is missing.
    """
    protocol = find_protocol(campaign.protocol, campaign.settings)
    systems = tuple(campaign.systems)
    settings = settings_of(campaign.settings)
    facts = from_row(
        CampaignFacts,
        campaign,
        protocol=protocol,
        systems=systems,
        settings=settings,
        registered_test=(campaign.registered or {}).get("analysis", {}).get("primary"),
    )
    rows = session.execute(
        select(
            *(Item.id, Item.segment_index, Item.kind, Item.weight, Item.document),
            *(Item.chance, Item.systems, Item.output_chances, Item.drawn),
        )
        .where(Item.campaign_id == campaign.id)
        .order_by(Item.id)
    ).all()
    kinds = [ItemKind(row.kind) for row in rows]
    items = _Items(
        id=np.array([row.id for row in rows], dtype=np.int64),
        segment=np.array([row.segment_index for row in rows], dtype=np.int64),
        weight=np.array([row.weight for row in rows], dtype=np.float64),
        document=document_numbers([row.document for row in rows], [row.segment_index for row in rows]),
        chance=_chances(rows, len(systems)),
        rates_systems=np.array([kind.rates_systems for kind in kinds], dtype=bool),
        passed_over=np.array([row.drawn is False for row in rows], dtype=bool),
        random=np.array([kind is ItemKind.RANDOM for kind in kinds], dtype=bool),
        repeat=np.array([kind is ItemKind.REPEAT for kind in kinds], dtype=bool),
        bad=np.array([kind is ItemKind.BAD_REFERENCE for kind in kinds], dtype=bool),
    )
    raters = session.execute(
        select(Rater.id, Rater.pseudonym, Rater.excluded_at)
        .where(Rater.campaign_id == campaign.id)
        .order_by(Rater.id)
    ).all()
    assignments, scores = read_scores(session, campaign.id)
    skipped = session.scalar(
        select(func.count())
        .select_from(Assignment)
        .join(Item, Item.id == Assignment.item_id)
        .where(Item.campaign_id == campaign.id, Assignment.skipped_at.is_not(None))
    )
    known = settings.domains
    domains = {row.segment_index: known[row.document] for row in rows if row.document in known}
    found = _assemble(facts, items, raters, assignments, scores, int(skipped or 0))
    return replace(found, domains=domains)


def _chances(items: Sequence[Any], systems: int) -> Array:
    """(items, systems): with what probability each output was to be rated; 1 where nothing aimed."""
    found = np.ones((len(items), systems))
    for at, item in enumerate(items):
        if item.output_chances is not None:
            found[at, item.systems] = item.output_chances
        elif item.chance is not None:
            found[at] = item.chance
    return found


def document_numbers(names: Sequence[str], segments: Sequence[int]) -> Integers:
    """Items' documents by number, 0 and above in the order of their names' appearance. A segment without a
    document (name "") has a number of its own, below 0."""
    numbers: dict[str, int] = {}
    return np.array(
        [
            numbers.setdefault(name, len(numbers)) if name else -1 - segment
            for name, segment in zip(names, segments, strict=True)
        ],
        dtype=np.int64,
    )


def documents_apart(names: Sequence[str], segments: Sequence[int]) -> Integers:
    """The same; but where all items are of one document, of which nothing can be said but by its segments,
    each segment is apart."""
    numbers = document_numbers(names, segments)
    return numbers if len(np.unique(numbers)) > 1 else -1 - np.array(segments, dtype=np.int64)


def repeated_scores(session: Session, ratings: Ratings) -> NDArray[np.bool_]:
    """(units, systems): where a system's output is the same text as an earlier system's on the unit, so that
    its score is no judgement of its own. Raters saw such texts once (`Assignment.order`)."""
    repeated = np.zeros((len(ratings.segment_index), len(ratings.campaign.systems)), dtype=bool)
    of_item = select(func.min(Assignment.id)).join(Item, Item.id == Assignment.item_id)
    firsts = of_item.where(Item.campaign_id == ratings.campaign.id).group_by(Assignment.item_id)
    orders = session.execute(
        select(Assignment.item_id, Assignment.order).where(Assignment.id.in_(firsts.scalar_subquery()))
    ).all()
    items, first = np.unique(ratings.item, return_index=True)
    units = dict(zip(items.tolist(), ratings.unit[first].tolist(), strict=True))
    for item, order in orders:
        for group in order:
            if item in units and len(group) > 1:
                repeated[units[item], sorted(group)[1:]] = True
    return repeated


@dataclass(frozen=True)
class _Items:
    """The items of a campaign in the order of their ids; (items,) each, `chance` (items, systems)."""

    id: Integers
    segment: Integers
    weight: Array
    document: Integers
    chance: Array
    rates_systems: NDArray[np.bool_]
    passed_over: NDArray[np.bool_]
    random: NDArray[np.bool_]
    repeat: NDArray[np.bool_]
    bad: NDArray[np.bool_]


def _assemble(
    facts: CampaignFacts,
    items: _Items,
    raters: Any,
    assignments: Integers,
    scores: Integers,
    skipped: int,
) -> Ratings:
    assignment, system, revision, step = scores.T
    _, item_id, rater_id, moment = assignments[np.searchsorted(assignments[:, 0], assignment)].T
    item = np.searchsorted(items.id, item_id)
    rater_ids = np.array([row.id for row in raters], dtype=np.int64)
    excluded = np.array([row.excluded_at is not None for row in raters], dtype=bool)
    rater = np.searchsorted(rater_ids, rater_id)

    # a revision replaces all scores of its assignment
    first = np.flatnonzero(np.diff(assignment, prepend=-1)) if len(assignment) else np.zeros(0, np.int64)
    last_revision = np.maximum.reduceat(revision, first) if len(first) else revision
    newest = revision == np.repeat(last_revision, np.diff([*first, len(assignment)]))
    of_excluded = excluded[rater] if len(raters) else np.zeros(len(scores), bool)
    of_systems = items.rates_systems[item]
    counts = newest & ~of_excluded & of_systems

    used_raters, rater_row = np.unique(rater[counts], return_inverse=True)
    control = newest & (items.repeat | items.bad)[item] & np.isin(rater, used_raters)
    units = _units(facts.protocol, items, item[counts])
    chance = np.ones((len(units.segment_index), len(facts.systems)))
    chance[units.of_rating, system[counts]] = items.chance[item[counts], system[counts]]
    points = _in_points(facts.scale, step)
    done = np.unique(assignment[counts], return_index=True)[1]
    rated_items, raters_an_item = np.unique(item[counts][done], return_counts=True)
    passed_over = int((items.rates_systems & items.passed_over).sum())
    for_systems = int(items.rates_systems.sum()) - passed_over
    return Ratings(
        campaign=facts,
        raters=tuple(raters[at].pseudonym for at in used_raters),
        segment_index=units.segment_index,
        weight=units.weight,
        document=units.document,
        random=units.random,
        chance=chance,
        item=items.id[item[counts]],
        unit=units.of_rating,
        rater=rater_row.astype(np.int64),
        system=system[counts],
        value=points[counts],
        moment=moment[counts],
        controls=Controls(
            rater=np.searchsorted(used_raters, rater[control]),
            system=system[control],
            segment=items.segment[item[control]],
            repeat=items.repeat[item[control]],
            value=points[control],
        ),
        submitted=len(done),
        wanted=for_systems * facts.ratings_per_item if facts.is_planned else len(done),
        items=for_systems,
        left_out=LeftOut(
            excluded_raters=int(excluded.sum()),
            excluded_ratings=int((newest & of_excluded & of_systems).sum()),
            replaced_ratings=int((~newest).sum()),
            control_ratings=int((newest & ~of_systems).sum()),
            skipped=skipped,
            unrated_items=for_systems - len(rated_items),
            passed_over=passed_over,
            incomplete_items=int((raters_an_item < facts.ratings_per_item).sum()) if facts.is_planned else 0,
        ),
    )


def _in_points(scale: Scale, step: Integers) -> Array:
    """(ratings,) of steps in points: exact fractions, rounded once."""
    used, at = np.unique(step, return_inverse=True)
    return np.array([float(scale.value(int(each))) for each in used])[at]


@dataclass(frozen=True)
class _Units:
    segment_index: Integers  # (units,)
    weight: Array
    document: Integers
    random: NDArray[np.bool_]
    of_rating: Integers  # (ratings,)


def _units(protocol: Protocol, items: _Items, rated: Integers) -> _Units:
    """Units from the positions of the ratings' items (ratings,): the items of a segment are one unit, but
    where scores are relative each item is one.

    The items of a unit have one weight; should they differ, the unit's is their mean.
    """
    grouping = np.arange(len(items.id)) if protocol.relative else items.segment
    used, item = np.unique(rated, return_inverse=True)
    _, first, of_item = np.unique(grouping[used], return_index=True, return_inverse=True)
    random = np.zeros(len(first), dtype=bool)
    random[of_item[items.random[used]]] = True
    return _Units(
        segment_index=items.segment[used][first],
        weight=np.bincount(of_item, weights=items.weight[used]) / np.bincount(of_item),
        document=items.document[used][first],
        random=random,
        of_rating=of_item[item].astype(np.int64),
    )
