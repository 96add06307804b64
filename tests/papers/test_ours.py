"""Which of our systems a row of a paper shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from paper_cells import study_document
from paper_rows import fill
from sqlalchemy import select

from creamtea.contract.step import Column
from creamtea.papers.catalogue import OfSystem, exhibits, find_paper
from creamtea.report.model import Cell, Document, Row, Table
from creamtea.report.papers.ours import Reports, StudyReport, _best, our_values
from creamtea.report.papers.verdict import Outcome, judge
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


@pytest.mark.parametrize(
    ("key", "own", "other", "factor"),
    [
        ("figure-3", ("softmax", "beam 1,000"), ("softmax", "beam 4"), 1),
        ("figure-3", ("SCONES α = 0.2", "beam 1,000"), ("softmax", "beam 1,000"), 1),
        ("figure-4", ("softmax", "beam 1,000"), ("softmax", "beam 4"), 1),
        ("figure-6", ("SCONES α = 1.0", "gap"), ("SCONES α = 0.2", "gap"), 1),
        (
            "figure-6",
            ("SCONES α = 1.0", "deviation of log p best"),
            ("SCONES α = 0.2", "deviation of log p best"),
            1,
        ),
        ("figure-7", ("SCONES α = 0.2", "beam 64"), ("softmax", "beam 64"), 100),
        ("figure-7", ("SCONES α = 0.5", "beam 64"), ("SCONES α = 0.2", "beam 64"), 100),
    ],
)
def test_claims_about_analyses_are_judged_by_paired_differences(
    our_size: Database, key: str, own: tuple[str, str], other: tuple[str, str], factor: float
) -> None:
    (exhibit,) = [exhibit for exhibit in exhibits("scones") if exhibit.key == key]
    reports = Reports(our_size, find_paper("scones"))
    rows = {row.title: row for row in exhibit.rows}
    columns = {column.title: column for column in exhibit.columns}
    ours, theirs = (
        our_values(reports, exhibit, "ours", rows[row], columns[column])[0] for row, column in (own, other)
    )
    higher = judge(ours, theirs, "higher")  # every difference of these studies is 0.1
    assert (higher.difference, higher.low, higher.high) == pytest.approx(
        (0.1 * factor, 0.05 * factor, 0.15 * factor)
    )
    assert higher.outcome == Outcome.HOLDS
    assert judge(theirs, ours, "higher").outcome == Outcome.OPPOSITE
