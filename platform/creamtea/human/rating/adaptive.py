"""Adaptive designs: draw the systems of segments, or of documents, part by part while people rate.

A part is a tenth of the segments (or of the documents, if whole documents are rated), in the order of their
first items, which the campaign's seed has shuffled. `making.design` explains how its blocks are drawn; each
item keeps its block with the probabilities. Before that, an item has the outputs of all systems; afterwards
it shows the outputs of its block, or is passed over if they are too few. Controls show the systems of their
originals.
"""

from __future__ import annotations

import math
import random
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Integer, func, select
from sqlalchemy.orm import Session

from creamtea.human.making.controls import spoil_shown
from creamtea.human.making.design import STEPS, adaptive_blocks, min_blocks
from creamtea.human.making.settings import settings_of
from creamtea.human.protocols import find_protocol
from creamtea.human.record import distinct_outputs
from creamtea.human.results.ratings import estimate_over_pages, load_ratings
from creamtea.stats.incomplete import open_systems
from creamtea.store.database import Database
from creamtea.store.tables import CONTROL_KINDS, SYSTEM_KINDS, Block, Campaign, Item, ItemKind

Blocks = dict[int | str, Block[int]]  # by segment (document)
_drawing = threading.Lock()


def draw_next_part(database: Database, campaign_id: int, done: int) -> bool:
    """Draw the systems of the next part, unless another request has; return False if no part is left.

    Another request has drawn them if more than `done` segments (documents) have their systems.
    """
    # estimating 60 systems takes seconds: one request of this process does it, without locking the database
    with _drawing:
        with database.session() as session:
            if segments_drawn(session, campaign := session.get_one(Campaign, campaign_id)) != done:
                return True
            blocks = next_part(session, campaign)
        if not blocks:
            return False
        with database.transaction() as session:
            campaign = session.get_one(Campaign, campaign_id, with_for_update={"key_share": True})
            store_part(session, campaign, done, blocks)
        return True


def segments_drawn(session: Session, campaign: Campaign) -> int:
    """Return the number of segments (documents) whose systems are drawn."""
    return _waiting(session, campaign)[1]


def next_part(session: Session, campaign: Campaign) -> Blocks:
    """Draw the blocks of the next part; empty if no part is left."""
    waiting, done = _waiting(session, campaign)
    if not waiting:
        return {}
    settings, systems = settings_of(campaign.settings), len(campaign.systems)
    size = settings.block_size(systems)
    assert size is not None  # checked by `CampaignSettings.complete`
    ratings = load_ratings(session, campaign) if done else None
    estimates = None if ratings is None else estimate_over_pages(ratings, ratings.weight)
    still_open: list[int] = []  # empty: all
    if estimates is not None:
        delta = settings.delta or find_protocol(campaign.protocol, campaign.settings).usual_delta
        still_open = open_systems(estimates, delta, size)
    every_system = 0 if done else min_blocks(systems, size)
    segments = waiting[: max(math.ceil((done + len(waiting)) / STEPS), every_system)]
    blocks = adaptive_blocks(len(segments), systems, size, still_open, f"{campaign.seed}/blocks/{done}")
    return dict(zip(segments, blocks, strict=True))


def _waiting(session: Session, campaign: Campaign) -> tuple[list[int | str], int]:
    """Return the segments (documents) without drawn systems, in order, and the number of the others."""
    key = _unit_of(campaign)
    rows = session.execute(
        select(key, func.max(Item.drawn.is_(None).cast(Integer)))
        .where(Item.campaign_id == campaign.id, Item.kind.in_(SYSTEM_KINDS))
        .group_by(key)
        .order_by(func.min(Item.position))
    ).all()
    waiting = [row[0] for row in rows if row[1]]
    return waiting, len(rows) - len(waiting)


def _unit_of(campaign: Campaign) -> Any:
    return Item.document if settings_of(campaign.settings).by_documents else Item.segment_index


def store_part(session: Session, campaign: Campaign, done: int, blocks: Blocks) -> None:
    """Make the items show the systems of a part's blocks, unless another process has drawn the part.

    `done`: segments (documents) before the part. The caller holds the campaign's lock, so that each part is
    drawn once.
    """
    if segments_drawn(session, campaign) != done:
        return
    settings = settings_of(campaign.settings)
    protocol = find_protocol(campaign.protocol, campaign.settings)
    pages: dict[int, list[Item]] = defaultdict(list)  # a page has controls only, or none
    kinds = Item.kind.in_((*SYSTEM_KINDS, *CONTROL_KINDS))
    of_part = Item.campaign_id == campaign.id, _unit_of(campaign).in_(blocks), kinds
    for item in session.scalars(select(Item).where(*of_part).order_by(Item.position)):
        pages[item.position if item.page is None else item.page].append(item)
    rated = [page for page in pages.values() if page[0].kind in SYSTEM_KINDS]
    for page in rated:
        block = blocks[page[0].document if settings.by_documents else page[0].segment_index]
        drawn = set(block["systems"])
        # systems with the same texts on the whole page count once
        texts = {
            tuple(dict(zip(item.systems, distinct_outputs(item), strict=True)).get(system) for item in page)
            for system in drawn
            if system in page[0].systems
        }
        for item in page:
            item.block, item.drawn = block, len(texts) >= protocol.min_outputs
            item.output_drawn = [system in drawn for system in item.systems]
    originals = {item.id: item for page in rated for item in page}
    for page in pages.values():
        if page[0].kind in CONTROL_KINDS:
            _show_the_same(campaign.seed, page, originals)


def _show_the_same(seed: int, page: Sequence[Item], originals: Mapping[int, Item]) -> None:
    """Make controls show the systems of their originals, and spoil a shown text of each bad reference.

    A page of bad references without a spoilt text cannot check anybody and is passed over.
    """
    spoilt = []
    for control in page:
        assert control.original_id is not None  # all controls have one
        original = originals[control.original_id]
        control.output_drawn, control.block = original.output_drawn, original.block
        if control.kind == ItemKind.BAD_REFERENCE:
            spoilt.append(spoil_shown(control, random.Random(f"{seed}/spoilt/{control.position}")))
    for control in page:
        assert control.original_id is not None
        control.drawn = bool(originals[control.original_id].drawn) and (not spoilt or any(spoilt))
