"""The inputs of a human evaluation's tables, and the cells that the tables share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.step import Column
from creamtea.human.media import kind_of
from creamtea.human.protocols import Protocol
from creamtea.human.record import files_of
from creamtea.human.results.ratings import Array, Integers, Ratings, estimate_over_pages
from creamtea.report import text
from creamtea.report.model import Cell, Entry, Passage, Row, Table
from creamtea.stats.estimate import Estimate
from creamtea.stats.incomplete import LOOKS, SystemEstimates, last_look
from creamtea.store.tables import Item

MAX_TEXTS = 8  # outputs in a list


@dataclass(frozen=True)
class RatedCampaign:
    """A campaign's ratings, with the weights, the baseline and the δ of its comparisons."""

    ratings: Ratings
    matrix: Array  # (units, systems): means over raters
    weights: Array  # (units,)
    baseline: int
    delta: float  # the smallest difference that matters, points of the scale

    @property
    def systems(self) -> tuple[str, ...]:
        return self.ratings.campaign.systems

    @property
    def protocol(self) -> Protocol:
        return self.ratings.campaign.protocol

    @cached_property
    def documents(self) -> Integers | None:
        """The document of each unit; None unless intervals and tests are over documents."""
        return self.ratings.documents

    @cached_property
    def in_blocks(self) -> bool:
        """Whether pages show some of the systems, drawn for each segment or document."""
        return any(self.ratings.blocks)

    @cached_property
    def is_adaptive(self) -> bool:
        settings = self.ratings.campaign.settings
        return self.in_blocks and (settings.design == "adaptive" or settings.aim)

    @cached_property
    def look(self) -> tuple[int, float] | None:
        """The last look at an adaptive design (`stats.incomplete.last_look`)."""
        return last_look(self.ratings.finished, self.ratings.turns)

    @cached_property
    def estimates(self) -> SystemEstimates | None:
        """The systems' estimates from all pages, or in an adaptive design from the last look's pages.

        `missing` says why there are none.
        """
        if not self.is_adaptive:
            return estimate_over_pages(self.ratings, self.weights)
        if self.look is None:
            return None
        turns, alpha = self.look
        return estimate_over_pages(
            self.ratings, np.where(self.ratings.turn < turns, self.weights, 0.0), alpha
        )

    @property
    def missing(self) -> str:
        """Why there are no estimates."""
        if self.is_adaptive and self.look is None:
            turns = self.ratings.turns
            first = math.ceil(LOOKS[0] * turns)
            return f"the first of {len(LOOKS)} looks comes once {first:,} of {turns:,} are rated"
        return "no chain of pages connects all systems yet"

    def points(self, key: str, title: str, note: str = "", better: str = "") -> Column:
        """Return a column of points of the scale, as the protocol shows them."""
        points = self.protocol.points
        return Column(key, title, points.decimals, better, points.factor, points.unit, note=note)

    def shown_delta(self) -> str:
        """Format δ as the columns of points show numbers."""
        return self.protocol.points.text(self.delta)


def with_baseline(ratings: Ratings, study_baseline: str | None) -> RatedCampaign:
    """Join a campaign's ratings with its baseline and its δ.

    The baseline is the campaign's, or else the study's, or else the first system. δ is the campaign's, or
    else the protocol's convention.
    """
    campaign = ratings.campaign
    named = campaign.settings.baseline or study_baseline
    baseline = campaign.systems.index(named) if named in campaign.systems else 0
    delta = campaign.settings.delta or campaign.protocol.usual_delta
    return RatedCampaign(ratings, ratings.matrix(), ratings.weight, baseline, float(delta))


def only_random(judged: RatedCampaign) -> RatedCampaign:
    """Keep the part that was drawn at random; every unit weighs the same."""
    chosen = judged.ratings.random
    matrix = np.where(chosen[:, None], judged.matrix, np.nan)
    return RatedCampaign(judged.ratings, matrix, chosen.astype(np.float64), judged.baseline, judged.delta)


def shown_texts(
    session: Session, ratings: Ratings, cells: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], tuple[str, str]]:
    """Return source and output of (unit, system) cells, from the items that were rated.

    The output is followed by the kinds of its files ("[audio]").
    """
    wanted = set(cells)
    items: dict[int, int] = {}
    for unit, system in wanted:
        rows = (ratings.unit == unit) & (ratings.system == system)
        items[int(ratings.item[rows][0])] = unit
    texts = {}
    for item in session.scalars(select(Item).where(Item.id.in_(items))):
        for system, output in zip(item.systems, item.outputs, strict=True):
            kinds = "".join(f" [{kind_of(file['type'])}]" for file in files_of(item, system))
            shown = f"{output}{kinds}".strip() if kinds else str(output)
            texts[items[item.id], int(system)] = item.source, shown
    return texts


def output_entry(
    judged: RatedCampaign,
    unit: int,
    system: int,
    texts: Mapping[tuple[int, int], tuple[str, str]],
    values: Sequence[tuple[Column, Cell]],
) -> Entry:
    """Show a rated output below its source (`shown_texts`), with values, as "segment 12, beam"."""
    campaign = judged.ratings.campaign
    segment = campaign.settings.segment_name(int(judged.ratings.segment_index[unit]))
    source, output = texts[unit, system]
    above = Passage("source", source, campaign.source_language)
    below = Passage("output", output, campaign.target_language)
    return Entry(f"{segment}, {judged.systems[system]}", tuple(values), (above, below))


def table(
    key: str, title: str, about: str, heading: str, columns: Sequence[Column], rows: Sequence[Row]
) -> Table:
    """Build a table; omit a column if no row has a cell in it."""
    used = tuple(column for column in columns if any(column.key in row.cells for row in rows))
    filled = (
        replace(row, cells={c.key: row.cells.get(c.key, Cell("absent", "not measured")) for c in used})
        for row in rows
    )
    return Table(key, title, heading, used, tuple(filled), about=about)


def count(number: int) -> Cell:
    return Cell("ok", value=float(number))


def number(value: float | None, reason: str | None = None) -> Cell:
    """Return the cell of a value that has no interval; `reason` says why it is missing."""
    return estimate(Estimate(value, reason=reason if value is None else None))


def estimate(found: Estimate) -> Cell:
    if found.value is None:
        return Cell("absent", found.reason or "nothing to measure")
    return Cell("ok", found.reason or "", value=found.value, low=found.low, high=found.high)


def p_value(p: float | None, reason: str | None = None) -> Cell:
    if p is None:
        return Cell("absent", reason or "no p-value")
    return Cell("ok", value=p, words=text.p_value(p))
