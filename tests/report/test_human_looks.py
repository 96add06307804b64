"""The table of a campaign that has not ended: complete units only, and tests that hold whenever one looks."""

from typing import Any

import numpy as np
import pytest
from blocks import tables
from rated_campaigns import drawn_steps, rated_campaign, side_by_side

from creamtea.human.making.launching import registration
from creamtea.report.human.build import build_human
from creamtea.report.model import Cell, Document
from creamtea.stats.sequential import course, look
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

ITEMS, SYSTEMS = 60, ("plain", "beam", "lexicon")


def cells(report: Document, system: str) -> dict[str, Cell]:
    (row,) = [row for row in report.table("looks").rows if row.name == system]
    return row.cells


def running(
    database: Database, rated: int, documents: int = 0, number: int = ITEMS, **campaign: object
) -> np.ndarray:
    """A campaign of so many items of which the first have both ratings; the steps of the whole."""
    steps = drawn_steps(number, (10.0, 16.0, 10.2), raters=2, seed=5)
    items = side_by_side(steps)
    for at, item in enumerate(items):
        item["document"] = f"document {at // documents}" if documents else ""
        if at >= rated:
            del item["steps"]
        elif at == rated - 1:
            del item["steps"]["ben"]  # one of two ratings: not complete
    rated_campaign(database, items, systems=SYSTEMS, ratings_per_item=2, **campaign)
    return steps


def test_only_what_is_complete_counts_and_the_numbers_are_those_of_the_statistics(database: Database) -> None:
    steps = running(database, rated=46)
    report = build_human(database, "tasting")
    found = cells(report, "beam")
    points = 0.2 * steps[:45].mean(axis=2)
    values = [points[:, system] - points[:, 0] for system in (1, 2)]
    expected = look([course(one, np.ones(45), ITEMS) for one in values], 0.1)
    assert (found["units"].value, found["planned"].value) == (45, ITEMS)
    assert found["difference"].value == pytest.approx(values[0].mean())  # a look comes after every third
    assert (found["difference"].low, found["difference"].high) == pytest.approx(
        (expected[0].low, expected[0].high)
    )
    assert found["p_any"].value == pytest.approx(expected[0].p_value)
    assert found["state"].words == "better"
    assert cells(report, "lexicon")["state"].words.startswith("undecided")


def test_documents_are_complete_as_a_whole(database: Database) -> None:
    steps = running(database, rated=77, documents=3, number=90)
    found = cells(build_human(database, "tasting"), "beam")
    assert (found["units"].value, found["planned"].value) == (25, 30)  # of the 26th a rating is missing
    points = 0.2 * steps[:72].mean(axis=2)  # looks come after 1.5 documents: the last after 24
    assert found["difference"].value == pytest.approx((points[:, 1] - points[:, 0]).mean())
    assert found["state"].words == "better"
    comparison = {row.name: row.cells for row in build_human(database, "tasting").table("comparisons").rows}
    assert comparison["beam"]["documents"].value == 26


def test_pairs_are_units_of_their_own(database: Database) -> None:
    """Of each segment the pairs that have their rating, in a campaign that is still running."""
    wins = np.random.default_rng(4).random((ITEMS, 2)) < (0.97, 0.5)
    items: list[dict[str, Any]] = [
        {"segment_index": at, "systems": [0, other], "outputs": [f"o{at}-0", f"o{at}-{other}"]}
        for at in range(ITEMS)
        for other in (1, 2)
    ]
    for item in items:
        at, (_, other) = item["segment_index"], item["systems"]
        if at < 40 or other == 2:
            item["steps"] = {"anna": [0, 2] if wins[at, other - 1] else [2, 0]}
    settings = {"baseline": "plain", "pairs": "baseline"}
    rated_campaign(database, items, systems=SYSTEMS, protocol="preference", settings=settings)
    report = build_human(database, "tasting")
    values = [np.where(wins[:40, 0], 2.0, -2.0), np.where(wins[:, 1], 2.0, -2.0)]
    expected = look([course(one, np.ones(len(one)), ITEMS) for one in values], 0.1)
    for system, units, one in zip(("beam", "lexicon"), (40, ITEMS), expected, strict=True):
        found = cells(report, system)
        assert (found["units"].value, found["planned"].value) == (units, ITEMS)
        assert found["difference"].value == pytest.approx(one.mean)
        assert found["p_any"].value == pytest.approx(one.p_value)
    assert cells(report, "beam")["state"].words == "better"


def test_the_verdict_is_by_the_registered_test(database: Database) -> None:
    steps = drawn_steps(ITEMS, (10.0, 16.0), raters=2, seed=5)
    number = rated_campaign(database, side_by_side(steps), ratings_per_item=2, settings={"baseline": "plain"})
    with database.transaction() as session:
        campaign = session.get_one(Campaign, number)
        campaign.registered = registration(session, campaign)
        primary = campaign.registered["analysis"]["primary"]
    assert "t-test" in primary
    about = build_human(database, "tasting").table("comparisons").about
    assert f"by the {primary}" in about
    assert "names another test" not in about
    # a complete campaign has no looks
    assert "looks" not in {table.key for table in tables(build_human(database, "tasting"))}


def test_few_units_are_too_early(database: Database) -> None:
    running(database, rated=16)
    found = cells(build_human(database, "tasting"), "beam")
    assert (found["state"].words, found["p_any"].value) == ("too early", None)
