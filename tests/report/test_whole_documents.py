"""Scores of whole documents in a report: apart from the segments', paired over documents."""

from itertools import product
from typing import Any

import pytest
from scipy import stats
from small_campaigns import add_rater, make_campaign

from creamtea.human import rating as assignment
from creamtea.human.rating import raters
from creamtea.report.human.build import campaign_report
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign

FIRST, SECOND = [50, 62, 71, 48], [55, 60, 83, 59]  # of four pages, by system


def item(page: int, document: int, segment: int, system: int, part: int) -> dict[str, Any]:
    place = {"page": page, "document": f"d{document}", "segment_index": segment, "systems": [system]}
    return {**place, "source": f"{document} {system} {part}", "outputs": [f"text {document} {system} {part}"]}


ITEMS = [
    item(4 * document + 2 * system, document, 2 * document + part, system, part)
    for document, system, part in product(range(4), range(2), range(2))
]


def test_documents_have_means_and_paired_differences_of_their_own(database: Database) -> None:
    settings = {"unit": "document", "document_score": True, "show_reference": [1], "baseline": "plain"}
    make_campaign(database, ITEMS, protocol="da", systems=2, k=2, delta=2.0, **settings)
    for name in ("anna", "wrong"):
        rater = add_rater(database, name)
        while (work := assignment.next_item(database, rater)) is not None:
            document, system, _ = map(int, work.source.split())
            score = (FIRST, SECOND)[system][document] if name == "anna" else 0
            assignment.submit(database, rater, work.assignment_id, [10, 10], document=[100])
            assignment.submit(database, rater, work.assignment_id, [10, 10], 2, document=[score])
    raters.exclude(database, rater, "test", "gives 0")
    with database.session() as session:
        report = campaign_report(session, find_campaign(session, "c"), None, complete=True)
    tables = {
        table.key: {row.name: {key: cell.value for key, cell in row.cells.items()} for row in table.rows}
        for table in report.tables
    }
    assert tables["documents"]["plain"] == {"documents": 4, "mean": 57.75, "difference": None}
    assert {row["mean"] for row in tables["means"].values()} == {10}
    (table,) = [table for table in report.tables if table.key == "documents"]
    found = table.rows[1].cells["difference"]
    wanted = stats.ttest_rel(SECOND, FIRST).confidence_interval()
    assert found.value == 6.5
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))
    assert "Raters saw a reference beside each source." in str(report.section())
    assert "reference-shown:1" in str(report.section())


def test_a_document_of_several_pages_counts_once(database: Database) -> None:
    """Each page shows one segment of one system; only the last one of a document asks for the whole."""
    items = [
        item(6 * document + 2 * part + system, document, 3 * document + part, system, part)
        for document, part, system in product(range(2), range(3), range(2))
    ]
    settings = {"unit": "document", "document_score": True, "baseline": "plain"}
    make_campaign(database, items, protocol="da", systems=2, **settings)
    rater = add_rater(database)
    while (work := assignment.next_item(database, rater)) is not None:
        document, system, part = map(int, work.source.split())
        asked = [FIRST, SECOND][system][document : document + 1] if part == 2 else []
        assert len(work.document_letters) == len(asked)
        before = [f"text {document} {system} {earlier}" for earlier in range(part)]
        assert [one.outputs for one in work.document_before] == [[text] for text in before if asked]
        assignment.submit(database, rater, work.assignment_id, [10], document=asked)
    with database.session() as session:
        report = campaign_report(session, find_campaign(session, "c"), None, complete=True)
    (table,) = [table for table in report.tables if table.key == "documents"]
    found = {row.name: (row.cells["documents"].value, row.cells["mean"].value) for row in table.rows}
    assert found == {"plain": (2, 56.0), "beam": (2, 57.5)}
