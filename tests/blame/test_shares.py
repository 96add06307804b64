"""The report of evidence written by hand: shares, intervals, examples."""

from typing import Any

import pytest
from rated_campaigns import rated_campaign
from sqlalchemy import select
from table_rows import step_row

from creamtea.human.results.ratings import fingerprint
from creamtea.report.human.build import build_human
from creamtea.report.model import Texts
from creamtea.stats.estimate import clustered_interval
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Blame, Item, Rating

OUTPUT, BETTER = "der Hund schläft", "die Katze schläft"


def evidence(index: int, better: float) -> dict[str, Any]:
    texts = {"output": (OUTPUT, -5.0), "reference": (BETTER, better), "beam 16": (OUTPUT, -5.0)}
    return {
        "candidates": [
            {"names": [name], "text": text, "score": score, "length": 3, "forbidden": None, "outcome": ""}
            for name, (text, score) in texts.items()
        ],
        "normalization": 0.0,
        "tolerance": 1e-4,
        "settings": {"below": None},
    }


def campaign(database: Database, documents: list[str]) -> None:
    """Two raters mark "Hund" in each of the segments; the model prefers the reference in every third."""
    items = [
        {"systems": [0], "outputs": [OUTPUT], "document": name, "steps": {"anna": [50], "ben": [60]}}
        for name in documents
    ]
    number = rated_campaign(database, items, name="marked", protocol="esa", systems=("plain",))
    span = {"start": 4, "end": 7, "severity": "major"}
    with database.transaction() as session:
        for rating in session.scalars(select(Rating).join(Assignment)):
            rating.payload = {"score": rating.step, "spans": [span]}
        session.add(step_row("decode", "decode"))
        session.flush()
        for item in session.scalars(select(Item)):
            index = item.segment_index
            session.add(
                Blame(
                    campaign_id=number,
                    system=0,
                    segment_index=index,
                    step_key="decode",
                    key="",
                    evidence=evidence(index, -4.0 if index % 3 == 0 else -6.0),
                )
            )


def test_pages_notice_evidence_that_is_gathered_anew(database: Database) -> None:
    campaign(database, [""] * 2)
    with database.transaction() as session:
        one = session.scalars(select(Blame)).first()
        before = fingerprint(session, one.campaign_id)
        one.key = "another output"
        session.flush()
        assert fingerprint(session, one.campaign_id) != before


@pytest.mark.parametrize(
    ("documents", "clusters"),
    [
        ([""] * 12, [[2, 2]] + [[0, 2], [0, 2], [2, 2]] * 3 + [[0, 2], [0, 2]]),  # each a segment: 4 of 12
        (["a"] * 4 + ["b"] * 4 + ["c"] * 4, [[4, 8], [2, 8], [2, 8]]),
    ],
)
def test_shares_and_their_clusters(
    database: Database, documents: list[str], clusters: list[list[int]]
) -> None:
    campaign(database, documents)
    report = build_human(database, "marked")
    (row,) = report.table("origins").rows
    counts, sizes = zip(*clusters, strict=True)
    low, high = clustered_interval(counts, sizes)
    assert (row.cells["marks"].value, row.cells["segments"].value) == (24, 12)
    found = row.cells["search"]
    assert (found.value, found.low, found.high) == pytest.approx((1 / 3, low, high))
    assert row.cells["model"].value == pytest.approx(2 / 3)
    assert row.cells["selection"].state == "absent"
    (repairs,) = report.table("repairs").rows
    assert [cell.value for cell in repairs.cells.values()] == [0.0, 0.0]


def test_examples_are_shown_once_though_two_raters_marked_them(database: Database) -> None:
    campaign(database, [""] * 12)
    (texts,) = (
        block
        for _, block in build_human(database, "marked").walk()
        if isinstance(block, Texts) and block.key == "origin_examples"
    )
    assert [entry.name for entry in texts.entries] == [
        *(f"plain, segment {number}: search" for number in (1, 4, 7)),
        *(f"plain, segment {number}: model" for number in (2, 3, 5)),
    ]
    assert [passage.text for passage in texts.entries[0].passages[2:4]] == ["Hund", "die Katze"]


def test_outputs_that_were_not_looked_into_do_not_count(database: Database) -> None:
    campaign(database, [""] * 12)
    with database.transaction() as session:
        for row in session.scalars(select(Blame).where(Blame.segment_index != 0)):
            session.delete(row)
    (row,) = build_human(database, "marked").table("origins").rows
    assert (row.cells["marks"].value, row.cells["search"].value) == (2, 1.0)
