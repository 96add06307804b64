"""What raters said of whole documents, apart from the scores of their segments."""

from __future__ import annotations

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.results.last_answers import last_revisions
from creamtea.human.results.ratings import Array
from creamtea.report.human.material import Judged, count, estimate, number, table
from creamtea.report.model import Cell, Row, Table
from creamtea.stats.paired import compare_paired
from creamtea.store.item_kinds import SYSTEM_KINDS
from creamtea.store.tables import Assignment, Item, Rater, Rating


def whole_documents(session: Session, judged: Judged) -> Table | None:
    """Means over documents of the means over raters, and differences paired over documents; None without a
    score."""
    scores = _scores(session, judged)
    if not len(scores):
        return None
    name = judged.systems[judged.baseline]
    columns = (
        Column("documents", "documents", 0),
        judged.points("mean", "mean", better="higher"),
        judged.points(
            "difference", f"against {name}", "system − baseline, with a 95 % interval over documents"
        ),
    )
    rows = []
    for system, title in enumerate(judged.systems):
        own = scores[:, system]
        rated = own[~np.isnan(own)]
        cells = {"documents": count(len(rated)), "mean": number(float(rated.mean()) if len(rated) else None)}
        if system == judged.baseline:
            cells["difference"] = Cell("ok", words="baseline")
        else:
            cells["difference"] = estimate(compare_paired(scores[:, judged.baseline], own).estimate)
        rows.append(Row(title, cells))
    about = (
        "Scores of whole documents, given after their last segments and counted nowhere else. Each document "
        "counts once."
    )
    return table("documents", "Whole documents", about, "system", columns, rows)


def _scores(session: Session, judged: Judged) -> Array:
    """(documents, systems): means over raters of their last revision, in points; NaN without one. Until 0.2
    each page of a longer document had a score: a rater's are averaged."""
    campaign = judged.ratings.campaign
    last = last_revisions(campaign.id)
    rows = session.execute(
        select(Item.document, Assignment.rater_id, Rating.system, Rating.document_step)
        .join(last, (last.c.assignment_id == Rating.assignment_id) & (last.c.revision == Rating.revision))
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .join(Item, Item.id == Assignment.item_id)
        .join(Rater, Rater.id == Assignment.rater_id)
        .where(Rating.document_step.is_not(None), Item.kind.in_(SYSTEM_KINDS), Rater.excluded_at.is_(None))
    ).all()
    place = {name: at for at, name in enumerate(sorted({row[0] for row in rows}))}
    given: dict[tuple[int, int], dict[int, list[float]]] = {}  # by rater
    for name, rater, system, step in rows:
        if step is not None:
            by_rater = given.setdefault((place[name], system), {})
            by_rater.setdefault(rater, []).append(float(campaign.scale.value(step)))
    means = np.full((len(place), len(judged.systems)), np.nan)
    for cell, by_rater in given.items():
        means[cell] = np.mean([np.mean(values) for values in by_rater.values()])
    return means
