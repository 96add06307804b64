"""What raters said of whole documents, apart from the scores of their segments."""

from __future__ import annotations

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.results import Array
from creamtea.report.human.last import last_revisions
from creamtea.report.human.material import Judged, count, estimate, number, table
from creamtea.report.model import Row, Table
from creamtea.stats.paired import compare_paired
from creamtea.store.item_kinds import SYSTEM_KINDS
from creamtea.store.tables import Assignment, Item, Rater, Rating


def whole_documents(session: Session, judged: Judged) -> Table | None:
    """Means over pages of the means over raters, and differences paired over pages; None without a score."""
    scores = _scores(session, judged)
    if not len(scores):
        return None
    name = judged.systems[judged.baseline]
    columns = (
        Column("pages", "pages", 0),
        judged.points("mean", "mean", better="higher"),
        judged.points("difference", f"against {name}", "system − baseline, with a 95 % interval over pages"),
    )
    rows = []
    for system, title in enumerate(judged.systems):
        own = scores[:, system]
        rated = own[~np.isnan(own)]
        cells = {"pages": count(len(rated)), "mean": number(float(rated.mean()) if len(rated) else None)}
        if system != judged.baseline:
            cells["difference"] = estimate(compare_paired(scores[:, judged.baseline], own).estimate)
        rows.append(Row(title, cells))
    about = (
        "Scores of the whole of each page, given after its segments and counted nowhere else. A document "
        "that is longer than a page has a score for each of its parts."
    )
    return table("documents", "Whole documents", about, "system", columns, rows)


def _scores(session: Session, judged: Judged) -> Array:
    """(pages, systems): means over raters of their last revision, in points; NaN without one. A part of a
    document is one row, whichever pages showed its systems."""
    campaign = judged.ratings.campaign
    last = last_revisions(campaign.id)
    rows = session.execute(
        select(Item.segment_index, Rating.system, Rating.document_step)
        .join(last, (last.c.assignment_id == Rating.assignment_id) & (last.c.revision == Rating.revision))
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .join(Item, Item.id == Assignment.item_id)
        .join(Rater, Rater.id == Assignment.rater_id)
        .where(Rating.document_step.is_not(None), Item.kind.in_(SYSTEM_KINDS), Rater.excluded_at.is_(None))
    ).all()
    parts = {segment: at for at, segment in enumerate(sorted({row[0] for row in rows}))}
    given: dict[tuple[int, int], list[float]] = {}
    for segment, system, step in rows:
        if step is not None:
            given.setdefault((parts[segment], system), []).append(float(campaign.scale.value(step)))
    means = np.full((len(parts), len(judged.systems)), np.nan)
    for cell, values in given.items():
        means[cell] = np.mean(values)
    return means
