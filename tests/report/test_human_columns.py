"""A campaign's columns in the study's own table."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from rated_campaigns import rated_campaign
from scipy.stats import norm, ttest_1samp, wilcoxon
from sqlalchemy import select

from creamtea.report import text
from creamtea.report.export import table_csv, to_values
from creamtea.report.human.build import campaign_report
from creamtea.report.human.campaign import human_columns
from creamtea.report.model import PValue, Row, Table
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
    assert (delta.value, delta.low, delta.p_values["t"]) == (1.0, None, PValue())
    assert delta.p_values["signed_rank"].corrected == pytest.approx(2 * norm.sf(20**0.5))
    assert text.shown(columns.cells["beam"]["human:tasting"], columns.columns[0]).change == (
        "+1.00*",
        "p=–/<0.001",  # t / signed-rank, as the column says
    )
    assert columns.cells["beam"]["human_verdict:tasting"].words == "better"
    rows = tuple(Row(name, dict(cells)) for name, cells in columns.cells.items())
    head = table_csv(Table("systems", "", "system", columns.columns, rows)).splitlines()[0]
    assert "human:tasting_delta_p_signed_rank_corrected" in head
    assert "randomization" not in head
    assert "delta_p_t_corrected" not in head  # there is none


def test_each_p_value_has_its_tests_name_in_json_and_csv(filled: Database) -> None:
    steps = [[10 + item % 5, 11 + item % 5 + item % 3 - item % 4] for item in range(24)]
    rated_campaign(filled, [{"steps": {"anna": own}} for own in steps])
    differences = np.diff(steps).ravel()
    with filled.session() as session:
        campaign = session.scalars(select(Campaign).where(Campaign.name == "tasting")).one()
        report = campaign_report(session, campaign, None, complete=False)
    (columns,) = human_columns([report], "test")
    cell = columns.cells["beam"]["human:tasting"]
    signed_rank = wilcoxon(differences, zero_method="pratt", correction=False, method="asymptotic").pvalue
    wanted = {"t": ttest_1samp(differences, 0).pvalue, "signed_rank": signed_rank}
    assert abs(wanted["t"] - signed_rank) > 0.01  # else the names could not be told apart
    found = to_values(cell)["delta"]["p_values"]
    assert {test: p["corrected"] for test, p in found.items()} == pytest.approx(wanted, rel=1e-9)
    rows = (Row("beam", {**columns.cells["beam"]}),)
    (row,) = csv.DictReader(io.StringIO(table_csv(Table("systems", "", "system", columns.columns, rows))))
    for test, p in wanted.items():
        assert float(row[f"human:tasting_delta_p_{test}_corrected"]) == pytest.approx(p, rel=1e-9)
