"""A campaign's columns in the study's own table."""

from __future__ import annotations

from rated_campaigns import rated_campaign
from sqlalchemy import select

from creamtea.report.export import table_csv
from creamtea.report.human.build import campaign_report
from creamtea.report.human.columns import human_columns
from creamtea.report.model import Row, Table
from creamtea.store.database import Database
from creamtea.store.tables import Campaign


def test_a_difference_without_spread_stands_beside_its_verdict(filled: Database) -> None:
    """Every item one point better: there is no t, but signed ranks, and a verdict by signs."""
    items = [{"steps": {who: [item, item + 5] for who in ("anna", "ben")}} for item in range(20)]
    rated_campaign(filled, items, ratings_per_item=2)
    with filled.session() as session:
        campaign = session.scalars(select(Campaign).where(Campaign.name == "tasting")).one()
        report = campaign_report(session, campaign, None, complete=False)
    (columns,) = human_columns([report], "test")
    delta = columns.cells["beam"]["human:tasting"].delta
    assert delta is not None
    assert (delta.value, delta.low, delta.p_randomization_corrected) == (1.0, None, None)
    assert delta.p_corrected is not None
    assert delta.p_corrected < 0.001
    assert columns.cells["beam"]["human_verdict:tasting"].words == "better"
    rows = tuple(Row(name, dict(cells)) for name, cells in columns.cells.items())
    head = table_csv(Table("systems", "", "system", columns.columns, rows)).splitlines()[0]
    assert "human:tasting_delta_p_corrected" in head
    assert "randomization" not in head
