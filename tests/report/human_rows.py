"""A campaign on the study of `conftest.SPEC` with drawn ratings, and segment scores that go with them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from blocks import tables
from rated_campaigns import drawn_steps, rated_campaign, side_by_side
from sqlalchemy import delete, select
from teatime_study import SYSTEMS, fill_study

from creamtea.report.model import Cell, Document
from creamtea.store.database import Database
from creamtea.store.tables import SegmentScore, StepRow, StudyStep

Rated = Callable[..., Document]  # the fixture `rated`
DRAW = 3  # two raters who agree closely: else nothing could be said of others
MEANS = (16.0, 11.0, 16.0, 19.0)  # steps
ITEMS = 60
POINTS = 1 + 0.2 * drawn_steps(ITEMS, MEANS[:3], raters=2, seed=DRAW)  # items, systems, raters


def add_campaign(database: Database, study: int, items: int = ITEMS, **campaign: Any) -> int:
    """A contrastive campaign of three of the systems: lexicon is worse, nvs is like the baseline."""
    steps = drawn_steps(items, MEANS[:3], raters=2, seed=DRAW)
    return rated_campaign(
        database,
        side_by_side(steps),
        **{"systems": SYSTEMS[:3], "study_id": study, "ratings_per_item": 2, **campaign},
    )


def add_segment_scores(database: Database, study: int, items: int = ITEMS) -> None:
    """In place of the study's: around people's means, chrF closer than BLEU."""
    draw = np.random.default_rng(3)
    people = drawn_steps(items, MEANS[:3], raters=2, seed=DRAW).mean(axis=2)
    with database.transaction() as session:
        steps = session.execute(
            select(StudyStep.labels, StepRow.key)
            .join(StepRow, StepRow.key == StudyStep.step_key)
            .where(StudyStep.study_id == study, StepRow.kind == "score")
        ).all()
        for labels, key in steps:
            session.execute(delete(SegmentScore).where(SegmentScore.step_key == key))
            if labels["system"] not in SYSTEMS[:3]:
                continue
            at = SYSTEMS.index(labels["system"])
            noise = draw.normal(0, 2 if labels["metric"] == "chrf" else 12, items)
            session.add_all(
                SegmentScore(step_key=key, index=i, value=float(v))
                for i, v in enumerate(people[:, at] + noise)
            )


def add_tasting(database: Database) -> Database:
    """The tea-time study, its campaign, and segment scores that go with the ratings."""
    study = fill_study(database)
    add_campaign(database, study)
    add_segment_scores(database, study)
    return database


def cells(report: Document, table: str, system: str) -> dict[str, Cell]:
    (row,) = [row for row in report.table(table).rows if row.name == system]
    return row.cells


def keys(report: Document) -> set[str]:
    return {table.key for table in tables(report)}
