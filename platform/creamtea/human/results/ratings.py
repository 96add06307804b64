"""A campaign's ratings as one table of columns, for all statistics, with counts of what was left out and why.

A few queries read a campaign of any size. Texts and payloads are read separately (`payloads`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, ColumnElement, String, cast, extract, func, select
from sqlalchemy.orm import Session

from creamtea.access import audit
from creamtea.document.values import digest
from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.human.protocols import Protocol, Scale, find_protocol
from creamtea.stats.agreement import one_rating_each
from creamtea.stats.incomplete import SystemEstimates, estimate_systems
from creamtea.stats.paired import SIGNIFICANT
from creamtea.stats.sequential import Look, course, look
from creamtea.store.rows import from_row
from creamtea.store.tables import (
    CONTROL_KINDS,
    SYSTEM_KINDS,
    Assignment,
    AuditEvent,
    Blame,
    Block,
    Campaign,
    Item,
    ItemKind,
    Payload,
    Rater,
    Rating,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Words = NDArray[np.str_]


@dataclass(frozen=True)
class CampaignFacts:
    """A campaign without its items."""

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
    registered_test: str | None  # the test that decides comparisons; None if none was registered
    reopened: int  # how often it was closed and opened again


@dataclass(frozen=True)
class LeftOut:
    """Numbers of stored ratings and items that do not count in the statistics of systems, by reason.

    A rating is the score of one system by one rater for one item.
    """

    excluded_raters: int
    excluded_ratings: int  # by excluded raters
    replaced_ratings: int  # replaced by a later revision
    control_ratings: int  # for repeats, bad references, practice items and attention checks
    third_ratings: int  # for items whose raters disagreed: reports show them beside the others
    skipped: int  # assignments that a rater skipped with a reason
    unrated_items: int  # items that rate systems, without a rating that counts
    passed_over: int  # items that rate systems, but were not drawn: nobody gets them
    incomplete_items: int  # with a rating, but fewer raters than planned


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Columns of scores (scores,): one rater's score of one output, in the answer's last revision."""

    id: Integers  # ascending in the order in which they were stored
    assignment: Integers
    item: Integers  # ids of items
    kind: Words  # values of ItemKind
    segment: Integers  # of the test set
    document_name: Words  # "" without a document
    rater: Integers  # positions in `Ratings.raters`; raters without a rating that counts come after these
    system: Integers  # positions in campaign.systems
    step: Integers
    value: Array  # points of the protocol's scale
    document_value: Array  # points for the whole document; NaN if not asked for
    seconds: Array  # on the whole item, before the first revision; NaN if not measured
    moment: Integers  # [s since 1970] when the answer was submitted


def _columns(scores: Scores, rows: Any) -> dict[str, Any]:
    return {field.name: getattr(scores, field.name)[rows] for field in fields(Scores)}


@dataclass(frozen=True, kw_only=True)
class Ratings(Scores):
    """The scores that count: by raters who are not excluded, for items that rate systems.

    `ItemKind.rates_systems` names these items. A unit is a segment (its outputs may be spread over several
    items), or, if two outputs are compared, a pair: one item.
    """

    campaign: CampaignFacts
    raters: tuple[str, ...]  # pseudonyms of the raters with a rating that counts
    rater_ids: Integers  # of all raters, in the order that `rater` numbers
    # (units,)
    segment_index: Integers
    weight: Array
    document: Integers  # numbers of documents; a segment without a document has its own number, below 0
    random: Booleans  # whether drawn at random, beside a choice by disagreement
    blocks: Sequence[Block[int] | None]  # (units,): the systems drawn for it; None: all are rated
    # (units,) the number of the segment (document, if rated as a whole) in the order of first items
    turn: Integers
    turns: int  # how many of these numbers there are
    finished: int  # how many of the first turns were rated as often as planned, apart from skipped items
    unit: Integers  # (scores,): rows of the units' arrays
    given: Scores  # all scores, also from excluded raters and for controls and practice items
    # for exact repeats and bad references, by raters who count: WMT's rules use them to standardise a rater's
    # scores, and in some years in a segment's mean
    controls: Scores
    third: Scores  # third ratings, by raters who are not excluded
    submitted: int  # assignments of items that count, by raters who are not excluded
    wanted: int  # such assignments at the end of the campaign; for an imported campaign, those submitted
    items: int  # items that count
    left_out: LeftOut
    domains: Mapping[int, str]  # segment → domain, if the campaign knows it

    @property
    def documents(self) -> Integers | None:
        """The clusters (units,) of intervals and tests; None if units are independent.

        Clusters are documents of segments, or, without documents, segments of pairs. Units are independent if
        each has a cluster of its own. A single document is not used: it shows no spread.
        """
        for groups in (self.document, -1 - self.segment_index):
            clusters = len(np.unique(groups))
            if clusters > 1:
                return groups if clusters < len(groups) else None
        return None

    @property
    def together(self) -> str:
        """What a cluster of `documents` is, in a word: a document, or the segment of several pairs."""
        groups = self.documents
        return "segment" if groups is not None and bool((groups < 0).all()) else "document"

    @cached_property
    def judgements(self) -> Judgements:
        """One score per rater and output: the mean if the rater rated it on several items."""
        (unit, rater, system), value = one_rating_each(self.unit, self.rater, self.system, value=self.value)
        return Judgements(unit, rater, system, value)

    def matrix(self) -> Array:
        """Return means over raters (units, systems); NaN if a system has no rating on a unit."""
        return self._means(self.judgements.unit, len(self.segment_index))

    def side_by_side(self) -> tuple[Integers, Integers, Array]:
        """Return unit (m,), rater (m,) and scores (m, systems) of each rater's work on each unit.

        A score is NaN if the rater did not rate that system.
        """
        raters = max(1, len(self.raters))
        key = self.judgements.unit * raters + self.judgements.rater
        unique, row = np.unique(key, return_inverse=True)
        return unique // raters, unique % raters, self._means(row, len(unique))

    def _means(self, row: Integers, rows: int) -> Array:
        """Return the mean of the judgements in each row by system: (rows, systems), NaN without one."""
        shape = (rows, len(self.campaign.systems))
        cell = row * shape[1] + self.judgements.system
        counts = np.bincount(cell, minlength=shape[0] * shape[1])
        sums = np.bincount(cell, weights=self.judgements.value, minlength=shape[0] * shape[1])
        with np.errstate(invalid="ignore"):
            means: Array = np.where(counts > 0, sums / counts, np.nan).reshape(shape)
        return means


@dataclass(frozen=True)
class Judgements:
    """Each rater's mean score of each output that they rated, as columns numbered as in `Ratings`."""

    unit: Integers
    rater: Integers
    system: Integers
    value: Array  # points


def load_ratings(session: Session, campaign: Campaign) -> Ratings:
    """Load the campaign's ratings that count, and count the others.

    InputError if the plug-in with the campaign's protocol is missing.
    """
    protocol = find_protocol(campaign.protocol, campaign.settings)
    settings = settings_of(campaign.settings)
    reopenings = AuditEvent.campaign_id == campaign.id, AuditEvent.action == audit.REOPENED
    facts = from_row(
        CampaignFacts,
        campaign,
        protocol=protocol,
        systems=tuple(campaign.systems),
        settings=settings,
        registered_test=(campaign.registered or {}).get("analysis", {}).get("primary"),
        reopened=session.scalar(select(func.count()).where(*reopenings)) or 0,
    )
    of_campaign = Item.campaign_id == campaign.id
    columns = (Item.id, Item.segment_index, Item.kind, Item.weight, Item.document, Item.drawn, Item.block)
    rows = session.execute(select(*columns).where(of_campaign).order_by(Item.id)).all()
    ids = np.array([row.id for row in rows], dtype=np.int64)
    kind = np.array([row.kind for row in rows], dtype=np.str_)
    segment = np.array([row.segment_index for row in rows], dtype=np.int64)
    names = np.array([row.document for row in rows], dtype=np.str_)
    people = select(Rater.id, Rater.pseudonym, Rater.excluded_at).where(Rater.campaign_id == campaign.id)
    raters = session.execute(people.order_by(Rater.id)).all()
    excluded = np.array([row.excluded_at is not None for row in raters], dtype=bool)

    since_1970 = extract("epoch", Assignment.submitted_at)
    # a cast alone would round in PostgreSQL and cut off the fraction in SQLite
    moment = func.coalesce(cast(since_1970 - since_1970 % 1, BigInteger), 0)
    answers = _numbers(
        session,
        *(Assignment.id, Assignment.item_id, Assignment.rater_id, moment),
        func.coalesce(Assignment.active_ms, _NONE),
        within=lambda query: query.join(Item).where(of_campaign),
    )
    answers = answers[np.argsort(answers[:, 0])]
    stored = _numbers(
        session,
        *(Rating.assignment_id, Rating.system, Rating.revision, Rating.step, Rating.id),
        func.coalesce(Rating.document_step, _NONE),
        within=lambda query: query.join(Assignment).join(Item).where(of_campaign),
    )
    stored = stored[np.lexsort((stored[:, 2], stored[:, 1], stored[:, 0]))]
    # a revision replaces all scores of its assignment
    assignment, revision = stored[:, 0], stored[:, 2]
    first = np.flatnonzero(np.diff(assignment, prepend=-1)) if len(stored) else np.zeros(0, np.int64)
    last_revision = np.maximum.reduceat(revision, first) if len(first) else revision
    newest = revision == np.repeat(last_revision, np.diff([*first, len(stored)]))
    assignment, system, _, step, number, document_step = stored[newest].T
    _, item_id, rater_id, moments, active_ms = answers[np.searchsorted(answers[:, 0], assignment)].T
    item = np.searchsorted(ids, item_id)
    rater = np.searchsorted(np.array([row.id for row in raters], dtype=np.int64), rater_id)

    of_excluded = excluded[rater] if len(raters) else np.zeros(len(item), bool)
    of_systems = np.isin(kind, SYSTEM_KINDS)
    counting = np.flatnonzero(~of_excluded & of_systems[item])
    used = np.unique(rater[counting])
    order = np.concatenate([used, np.setdiff1d(np.arange(len(raters)), used)])
    given = Scores(
        id=number,
        assignment=assignment,
        item=item_id,
        kind=kind[item],
        segment=segment[item],
        document_name=names[item],
        rater=np.argsort(order)[rater],
        system=system,
        step=step,
        value=_in_points(protocol.scale, step),
        document_value=_in_points(protocol.scale, document_step),
        seconds=np.where(active_ms == _NONE, np.nan, active_ms / 1000),
        moment=moments,
    )

    # the items of a segment are one unit; if scores are relative, each item is a unit
    grouping = np.arange(len(ids)) if protocol.relative else segment
    rated, of_rating = np.unique(item[counting], return_inverse=True)
    _, first, of_item = np.unique(grouping[rated], return_index=True, return_inverse=True)
    unit = of_item[of_rating].astype(np.int64)
    weight = np.array([row.weight for row in rows], dtype=np.float64)
    random = np.zeros(len(first), dtype=bool)
    random[of_item[kind[rated] == ItemKind.RANDOM]] = True

    done = np.unique(assignment[counting], return_index=True)[1]
    rated_items, raters_per_item = np.unique(item[counting][done], return_counts=True)
    given_out = np.array([row.drawn is not False for row in rows], dtype=bool)
    passed_over = int((of_systems & ~given_out).sum())
    undrawn = int((of_systems & np.array([row.drawn is None for row in rows], dtype=bool)).sum())
    expected = settings.share_given_out(protocol, len(campaign.systems)) if facts.is_planned else 1.0
    for_systems = int(of_systems.sum()) - passed_over - round(undrawn * (1 - expected))
    surplus = int(np.maximum(raters_per_item - facts.ratings_per_item, 0).sum())
    skips = select(Assignment.item_id).join(Item).where(of_campaign, Assignment.skipped_at.is_not(None))
    skipped = session.scalars(skips).all()
    turn = _in_order(names if settings.by_documents else segment, of_systems)
    turns = int(turn.max(initial=-1)) + 1
    waits = of_systems & given_out & ~np.isin(ids, skipped)
    # an excluded rater's items are rated anew, unless the campaign is closed
    over = np.flatnonzero(of_systems[item]) if facts.state == "closed" else counting
    over = over[np.unique(assignment[over], return_index=True)[1]]
    waits[np.bincount(item[over], minlength=len(ids)) >= facts.ratings_per_item] = False
    known = settings.domains
    return Ratings(
        **_columns(given, counting),
        campaign=facts,
        raters=tuple(raters[at].pseudonym for at in used),
        rater_ids=np.array([raters[at].id for at in order], dtype=np.int64),
        segment_index=segment[rated][first],
        # the items of a unit have one weight; should they differ, the unit's is their mean
        weight=np.bincount(of_item, weights=weight[rated]) / np.bincount(of_item),
        document=document_numbers(names.tolist(), segment.tolist())[rated][first],
        random=random,
        blocks=[rows[at].block for at in rated[first].tolist()],
        turn=turn[rated][first],
        turns=turns,
        finished=int(turn[waits].min(initial=turns)),
        unit=unit,
        given=given,
        controls=Scores(**_columns(given, np.isin(given.kind, CONTROL_KINDS) & (given.rater < len(used)))),
        third=Scores(**_columns(given, (given.kind == ItemKind.THIRD) & ~of_excluded)),
        submitted=len(done),
        wanted=for_systems * facts.ratings_per_item + surplus if facts.is_planned else len(done),
        items=for_systems,
        left_out=LeftOut(
            excluded_raters=int(excluded.sum()),
            excluded_ratings=int((of_excluded & of_systems[item]).sum()),
            replaced_ratings=int((~newest).sum()),
            control_ratings=int((~of_systems[item] & (given.kind != ItemKind.THIRD)).sum()),
            third_ratings=int((given.kind == ItemKind.THIRD).sum()),
            skipped=len(skipped),
            unrated_items=for_systems - len(rated_items),
            passed_over=passed_over,
            incomplete_items=int((raters_per_item < facts.ratings_per_item).sum()) if facts.is_planned else 0,
        ),
        domains={row.segment_index: known[row.document] for row in rows if row.document in known},
    )


_NONE = -1  # in a column of whole numbers


def _numbers(session: Session, first: Any, *others: Any, within: Callable[[Any], Any]) -> Integers:
    """Read whole numbers of many rows as (rows, columns), in no order.

    The database joins them to one text: rows with an object per number would take longer.
    """
    words: ColumnElement[str] = cast(first, String)
    for column in others:
        words = words + " " + cast(column, String)
    text = session.scalar(within(select(func.aggregate_strings(words, " ")).select_from(first.class_)))
    return np.fromstring(text or "", dtype=np.int64, sep=" ").reshape(-1, 1 + len(others))


def _in_order(keys: NDArray[Any], used: Booleans) -> Integers:
    """Number the keys (items,) of used items in the order in which they first appear; −1 for others."""
    _, first, number = np.unique(keys[used], return_index=True, return_inverse=True)
    order = np.full(len(keys), -1, dtype=np.int64)
    order[used] = np.argsort(np.argsort(first))[number]
    return order


def _in_points(scale: Scale, step: Integers) -> Array:
    """Convert steps (scores,) to points: exact fractions, rounded once; NaN if there is no step."""
    used, index = np.unique(step, return_inverse=True)
    points = [np.nan if each == _NONE else float(scale.value(each)) for each in used.tolist()]
    return np.array(points, dtype=np.float64)[index]


def estimate_over_pages(
    ratings: Ratings, weights: Array, alpha: float = SIGNIFICANT
) -> SystemEstimates | None:
    """Estimate the systems over pages; None if no chain of pages connects them all.

    A page is a rater's work on a segment. If outputs are shown one at a time, a page is the segment with all
    its raters, whose severities are estimated, too: the results are then about these raters only. Units with
    `weights` (units,) of 0 do not count.

    The two scores p and 1 − p of a preference differ by 2p − 1. If all pairs of n systems meet equally often,
    a system's share of preferences lies n/(2(n − 1)) times as far from the middle as its effect, so scores
    count by this factor: means are then these shares.
    """
    scores, systems = ratings.judgements, len(ratings.campaign.systems)
    used = weights[scores.unit] > 0
    unit, rater, system = scores.unit[used], scores.rater[used], scores.system[used]
    value, protocol = scores.value[used], ratings.campaign.protocol
    if protocol.relative:
        middle = float(protocol.scale.lowest + protocol.scale.highest) / 2
        value = middle + (value - middle) * systems / (2 * (systems - 1))
    together = protocol.max_outputs > 1
    chances = np.ones((len(unit), systems))  # of showing a score's system together with each other system
    for row, (number, own) in enumerate(zip(unit.tolist(), system.tolist(), strict=True)):
        block = ratings.blocks[number]
        if block is not None and own in block["systems"]:
            chances[row, block["systems"]] = block["chances"][block["systems"].index(own)]
    try:
        return estimate_systems(
            unit * max(1, len(ratings.raters)) + rater if together else unit,
            system,
            value,
            systems,
            cluster=unit if ratings.documents is None else ratings.documents[unit],
            rater=rater if together else None,
            effect=None if together else rater,
            weight=weights[unit],
            chance=np.sqrt(chances),  # as `stats.incomplete` explains
            alpha=alpha,
        )
    except ValueError:  # the columns are valid, so some pages are missing
        return None


def payloads(session: Session, ratings: Ratings) -> list[Payload | None]:
    """Return the payload of each score (scores,), None if the answer is only a score."""
    of_campaign = Item.campaign_id == ratings.campaign.id, Rating.payload.is_not(None)
    stored = select(Rating.id, Rating.payload).join(Assignment).join(Item).where(*of_campaign)
    by_id = {row.id: row.payload for row in session.execute(stored)}
    return [by_id.get(number) for number in ratings.id.tolist()]


def on_scale(ratings: Ratings, given: Sequence[Payload | None], name: str) -> Ratings:
    """Return the ratings with the values of a further scale (`protocol.scales`) in place of the scores.

    `given`: the result of `payloads` for these ratings.
    """
    # every answer has a value on each scale: KeyError otherwise, since skipping one would shift the others
    step = np.array([(payload or {})["scales"][name] for payload in given], dtype=np.int64)
    return replace(ratings, step=step, value=_in_points(ratings.campaign.protocol.scale, step))


def document_numbers(names: Sequence[str], segments: Sequence[int]) -> Integers:
    """Number the documents of items from 0, in the order in which their names first appear.

    A segment without a document (name "") has a number of its own, below 0.
    """
    numbers: dict[str, int] = {}
    return np.array(
        [
            numbers.setdefault(name, len(numbers)) if name else -1 - segment
            for name, segment in zip(names, segments, strict=True)
        ],
        dtype=np.int64,
    )


def repeated_scores(session: Session, ratings: Ratings) -> Booleans:
    """Return (units, systems): True if a system's output repeats an earlier system's text on the unit.

    Raters see such a text once (`Assignment.order`), so its score is not a judgement of its own.
    """
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
class ScoresByRater:
    """The scores of each output by rater.

    An output with the same text as an earlier output of its unit is omitted: the text was judged once.
    """

    scores: Array  # (outputs, raters), NaN where missing
    unit: Integers  # (outputs,)
    system: Integers


def by_rater(ratings: Ratings, repeated: Booleans) -> ScoresByRater:
    systems, each = len(ratings.campaign.systems), ratings.judgements
    own = ~repeated[each.unit, each.system]
    cells, output = np.unique(each.unit[own] * systems + each.system[own], return_inverse=True)
    matrix = np.full((len(cells), len(ratings.raters)), np.nan)
    matrix[output, each.rater[own]] = each.value[own]
    return ScoresByRater(matrix, cells // systems, cells % systems)


def fingerprint(session: Session, campaign_id: int) -> tuple[Any, ...]:
    """Return a cache key for results computed from a campaign's ratings.

    It changes whenever the ratings that count change, or the evidence of where errors come from.
    """
    states = select(Campaign.state, Campaign.created_at).where(Campaign.id == campaign_id)
    campaign = session.execute(states).first()
    excluded = select(Rater.id).where(Rater.campaign_id == campaign_id, Rater.excluded_at.is_not(None))
    done = select(func.count(Assignment.submitted_at), func.count(Assignment.skipped_at)).join(Item)
    newest = select(func.max(Rating.id))  # of any campaign, because an index has it
    evidence = session.scalars(select(Blame.key).where(Blame.campaign_id == campaign_id).order_by(Blame.key))
    return (
        campaign and tuple(campaign),  # a new campaign may have the id of a deleted one
        tuple(session.scalars(excluded.order_by(Rater.id))),
        tuple(session.execute(done.where(Item.campaign_id == campaign_id)).one()),
        session.scalar(newest),
        digest(evidence.all()),
    )


# ---------------------------------------------------------------- standings
#
# The state of every comparison with the baseline before the end of a campaign.


@dataclass(frozen=True)
class Standing:
    """A comparison with the baseline so far, over `complete` of the `planned` documents."""

    system: int
    look: Look
    complete: int
    planned: int


@dataclass(frozen=True)
class PlannedUnit:
    """A segment (a pair, if scores are relative), with the systems that its items show."""

    document: int
    weight: float
    systems: set[int]


def standings(session: Session, ratings: Ratings, baseline: int, delta: float) -> list[Standing]:
    """Compare every system with the baseline, over the documents that have all their ratings.

    A segment without a document is its own document.
    """
    planned = planned_units(session, ratings.campaign.id, ratings.campaign.protocol)
    matrix, complete = ratings.matrix(), _complete(ratings)
    others = [system for system in range(len(ratings.campaign.systems)) if system != baseline]
    courses, counts = [], []
    for system in others:
        documents = _documents(planned, {system, baseline})
        tested = []
        for keys in documents:
            rated = [complete[key] for key in keys if key in complete]
            if len(rated) == len(keys) and all(enough[[system, baseline]].all() for _, enough in rated):
                weights = [planned[key].weight for key in keys]
                differences = [matrix[row, system] - matrix[row, baseline] for row, _ in rated]
                tested.append((sum(map(mul, weights, differences)), sum(weights)))
        sums, sizes = np.array(tested, dtype=np.float64).reshape(-1, 2).T
        courses.append(course(sums, sizes, len(documents)))
        counts.append((len(tested), len(documents)))
    looks = look(courses, delta)
    return [Standing(system, seen, *both) for system, seen, both in zip(others, looks, counts, strict=True)]


def _documents(planned: dict[int, PlannedUnit], systems: set[int]) -> list[list[int]]:
    """Return the segments (pairs) that show all of the systems, by document in order of first items.

    Segments of weight 0 do not count and are left out.
    """
    documents: dict[int, list[int]] = {}
    for key, unit in planned.items():  # in the order of their first items
        of_document = documents.setdefault(unit.document, [])
        if unit.weight > 0 and systems <= unit.systems:
            of_document.append(key)
    return [units for units in documents.values() if units]


def planned_units(session: Session, campaign_id: int, protocol: Protocol) -> dict[int, PlannedUnit]:
    """Load the units by segment (item id, if scores are relative), in the order of their first items."""
    rows = session.execute(
        select(Item.id, Item.segment_index, Item.document, Item.position, Item.weight, Item.systems)
        .where(Item.campaign_id == campaign_id, Item.kind.in_(SYSTEM_KINDS))
        .order_by(Item.position)
    ).all()
    segments = [row.segment_index for row in rows]
    documents = document_numbers([row.document for row in rows], segments)
    if len(np.unique(documents)) == 1:  # a single document shows no spread: compare over its segments
        documents = -1 - np.array(segments, dtype=np.int64)
    units: dict[int, PlannedUnit] = {}
    for row, document in zip(rows, documents.tolist(), strict=True):
        unit = PlannedUnit(document, row.weight, set())
        units.setdefault(row.id if protocol.relative else row.segment_index, unit).systems.update(row.systems)
    return units


def _complete(ratings: Ratings) -> dict[int, tuple[int, Array]]:
    """Map each segment (item, if scores are relative) to its unit and to its complete systems.

    The second value (systems,) is True for each system that has all planned ratings there.
    """
    shape = len(ratings.segment_index), len(ratings.campaign.systems)
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (ratings.unit, ratings.system), 1)
    enough = counts >= ratings.campaign.ratings_per_item
    keys = ratings.segment_index
    if ratings.campaign.protocol.relative:
        keys = ratings.item[np.unique(ratings.unit, return_index=True)[1]]
    return {int(key): (unit, enough[unit]) for unit, key in enumerate(keys)}
