"""Which of our systems a row of a paper shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from paper_cells import study_document
from paper_rows import fill
from sqlalchemy import select

from creamtea.contract.columns import Column
from creamtea.papers.catalogue import find_paper
from creamtea.papers.model import OfSystem
from creamtea.report.model import Cell, Document, Row, Table
from creamtea.report.papers.ours import Reports, StudyReport, _best
from creamtea.store.database import Database
from creamtea.store.tables import StudyRow


def distances(first: float | None, second: float | None) -> Document:
    """Two systems' distances on dev."""
    column = Column("levenshtein", "Levenshtein", 2, "lower")
    rows = tuple(
        Row(name, {"levenshtein": Cell("pending" if value is None else "ok", value=value)})
        for name, value in (("a", first), ("b", second))
    )
    table = Table("systems", "", "system", (column,), rows)
    return study_document("systems", "dev", table)


def test_a_study_that_has_begun_anew_does_not_hide_the_finished_one(
    new_store: Callable[..., Database],
) -> None:
    database = new_store("g2p")
    fill(database, "g2p")
    with database.transaction() as writing:
        first, second = writing.scalars(select(StudyRow).order_by(StudyRow.id))
        first.state, second.state = "succeeded", "queued"
        expected = first.id
    report = Reports(database, find_paper("entmax")).read("few-languages", "words")
    assert isinstance(report, StudyReport)
    assert report.number == expected


@pytest.mark.parametrize(("first", "second", "chosen"), [(0.5, 1.9, "a"), (1.9, 0.5, "b"), (0.5, 0.5, "a")])
def test_the_best_is_the_lowest_where_lower_is_better(
    first: float | None, second: float | None, chosen: str
) -> None:
    place = OfSystem(system=["a", "b"], test_set="test", metric="levenshtein", chosen_on="dev")
    best = _best(distances(first, second), place)
    assert isinstance(best, OfSystem)
    assert best.system == chosen


def test_while_one_has_no_value_none_is_the_best() -> None:
    place = OfSystem(system=["a", "b"], test_set="test", metric="levenshtein", chosen_on="dev")
    note = "the best on dev is not known: b: pending"
    assert _best(distances(0.5, None), place) == Cell("pending", note, words="not chosen")
    place = place.model_copy(update={"system": ["a", "c"]})
    note = "the best on dev is not known: c: it is not in the study"
    assert _best(distances(0.5, None), place) == Cell("absent", note, words="not chosen")
