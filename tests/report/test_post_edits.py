"""The table of post-edits: rates, unchanged outputs and times by system, of the answers that count."""

from __future__ import annotations

from small_campaigns import add_rater, make_campaign
from sqlalchemy import update

from creamtea.human import rating as assignment
from creamtea.human.rating import raters
from creamtea.report.human.build import campaign_report
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Assignment

ITEMS = [
    {"outputs": ["Er gab es auf."], "systems": [0]},
    {"outputs": ["Er gab auf."], "systems": [1]},
]


def edit(database: Database, rater: int, texts: dict[str, str]) -> None:
    while (work := assignment.next_item(database, rater)) is not None:
        answer = {"text": texts[work.outputs[0]]}
        assignment.submit(database, rater, work.assignment_id, [answer])


def test_rates_unchanged_outputs_and_times(database: Database) -> None:
    make_campaign(database, ITEMS, protocol="post-edit", systems=2, k=2, baseline="plain", delta=2.0)
    anna, ben = add_rater(database), add_rater(database, "ben")
    edit(database, anna, {"Er gab es auf.": "Er gab auf.", "Er gab auf.": "Er gab auf."})
    edit(database, ben, {"Er gab es auf.": "x", "Er gab auf.": "x"})
    raters.exclude(database, ben, "test", "writes x")
    with database.transaction() as session:
        session.execute(update(Assignment).values(active_ms=4000))
    with database.session() as session:
        report = campaign_report(session, find_campaign(session, "c"), None, complete=True)
    (table,) = [table for table in report.tables if table.key == "edited"]
    cells = {row.name: {key: cell.value for key, cell in row.cells.items()} for row in table.rows}
    assert cells["plain"]["ratings"] == 1
    assert round(cells["plain"]["rate"], 1) == 33.3
    assert cells["beam"] == {"ratings": 1, "rate": 0.0, "unchanged": 100.0, "seconds": 4.0}
