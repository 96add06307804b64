"""Reports of campaigns whose pages show some of the systems, and of campaigns that have not ended."""

import math
from typing import Any

import numpy as np
import pytest
from blocks import figure, figures, notes, tables
from human_rows import Rated
from rated_campaigns import drawn_steps, rated_campaign, side_by_side

from creamtea.human.making.design import balanced_blocks, block_of
from creamtea.human.making.launching import registration
from creamtea.human.results.ratings import load_ratings
from creamtea.report import html
from creamtea.report.human.build import build_human
from creamtea.report.model import Cell, Document, Section
from creamtea.stats.incomplete import estimate_systems
from creamtea.stats.sequential import course, look
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Campaign

SYSTEMS = ["a", "b", "c", "d", "e", "f"]
EFFECTS = np.array([0, 0, 1, 1, 2, 8])  # steps
RATERS = [f"rater {number}" for number in range(8)]
SEGMENTS = 90


def report_of(
    database: Database,
    protocol: str = "contrastive-da",
    raters: int = len(RATERS),
    segments: int = SEGMENTS,
) -> Document:
    """Three segments a document, of which each rater has every so many."""
    rng = np.random.default_rng(4)
    items: list[dict[str, Any]] = []
    for segment, block in enumerate(balanced_blocks(segments, len(SYSTEMS), 3, "1")):
        level = rng.integers(5, 12)
        steps = [int(level + EFFECTS[system] + rng.integers(-3, 4)) for system in block]
        whole = {"segment_index": segment, "document": f"d{segment // 3}", "block": block_of(block, 6)}
        rater = RATERS[segment // 3 % raters]
        if protocol == "contrastive-da":
            items.append({**whole, "systems": block, "steps": {rater: steps}})
        else:
            items += [
                {**whole, "systems": [system], "steps": {rater: [step]}}
                for system, step in zip(block, steps, strict=True)
            ]
    rated_campaign(database, items, systems=SYSTEMS, raters=RATERS[:raters], protocol=protocol)
    return build_human(database, "tasting")


def scores(database: Database) -> dict[str, Any]:
    with database.session() as session:
        ratings = load_ratings(session, find_campaign(session, "tasting"))
    return {
        **{"page": ratings.unit, "system": ratings.system, "value": ratings.value, "rater": ratings.rater},
        **{"cluster": ratings.document[ratings.unit], "systems": len(SYSTEMS)},
    }


def test_the_table_is_what_the_statistic_says(database: Database) -> None:
    report = report_of(database)
    found = estimate_systems(**scores(database))
    rows = {row.name: row.cells for row in report.table("ranks").rows}
    assert list(rows) == [SYSTEMS[at] for at in np.argsort(-found.mean)]
    pairs = [*report.table("comparisons").rows, *report.table("pairs").rows]
    assert len(pairs) == math.comb(len(SYSTEMS), 2)
    for row in pairs:
        place = SYSTEMS.index(row.name), SYSTEMS.index(row.setting.removeprefix("against "))
        cell = row.cells["difference"]
        assert cell.value == pytest.approx(found.difference[place])
        assert (cell.high or 0) - (cell.low or 0) == pytest.approx(2 * found.half[place])
        assert row.cells["p_family"].value == pytest.approx(found.p_value[place])
        assert row.cells["shared"].value == found.shared[place]
    assert [rows[name]["rank_low"].value for name in SYSTEMS] == found.rank_low.tolist()
    assert (rows["f"]["rank_low"].value, rows["f"]["rank_high"].value) == (1, 1)
    means = {row.name: row.cells["mean"] for row in report.table("means").rows}
    assert [means[name].value for name in SYSTEMS] == pytest.approx(found.mean.tolist())
    assert "30 documents and 8 raters" in report.table("ranks").about
    # no ratio of means over the few shared items beside means over all pages
    assert {column.key for column in report.table("means").columns} == {"items", "ratings", "mean"}
    assert not any(path.endswith("/hundred") for path in figures(report))
    # verdicts and the answer, too, are by all pages
    rows = {row.name: row.cells for row in report.table("comparisons").rows}
    assert rows["f"]["verdict"].words == "better"
    assert rows["b"]["verdict"].words == "undecided"
    assert "simultaneous interval" in rows["b"]["verdict"].note
    assert rows["b"]["shared"].value == SEGMENTS * 3 * 2 / (6 * 5)
    drawn = figure(report, "ranking").rows
    assert [row["name"] for row in drawn if row["baseline"]] == ["a (baseline)"]
    assert {row["system"]: row["value"] for row in drawn} == {
        row.name: row.cells["mean"].value for row in report.table("means").rows
    }
    first, second, third = notes(report, "sentences")
    assert first.startswith("People rated f highest on average")
    assert second == "No system is shown to be better than f (ranks over pages)."
    assert "better: f" in third
    paths = [path for path, _ in report.walk()]
    assert len(paths) == len(set(paths))  # the results page has widgets of these keys
    # narrow tables of the same systems stand side by side
    ((section,),) = (one.blocks for one in report.sections if one.key == "human")
    assert isinstance(section, Section)
    groups = [[block.key for block in group] for group in html.side_by_side(section.blocks)]
    assert groups[:2] == [["means", "ranks"], ["comparisons"]]


def test_no_difference_is_larger_than_the_scale(database: Database) -> None:
    report = report_of(database, segments=9)
    rows = [*report.table("comparisons").rows, *report.table("pairs").rows]
    ends = [end for row in rows for end in (row.cells["difference"].low, row.cells["difference"].high)]
    assert max(abs(end) for end in ends if end is not None) == 5  # of a scale from 1 to 6


def test_one_rater_speaks_for_themselves(database: Database) -> None:
    report = report_of(database, raters=1)
    rows = {row.name: row.cells for row in report.table("comparisons").rows}
    assert rows["f"]["verdict"].words == "undecided (these raters: better)"
    assert report.table("ranks").about.endswith("they are about these raters.")


def test_one_output_at_a_time_has_severities(database: Database) -> None:
    report = report_of(database, protocol="da")
    given = scores(database)
    rater = given.pop("rater")
    found = estimate_systems(**given, effect=rater)
    means = {row.name: row.cells["mean"].value for row in report.table("means").rows}
    assert [means[name] for name in SYSTEMS] == pytest.approx(found.mean.tolist())
    assert "plus the rater's severity" in report.table("ranks").about


def test_pages_that_do_not_connect_the_systems_say_so(rated: Rated) -> None:
    items = [
        {"systems": [at, at + 1], "block": block_of([at, at + 1], 6), "steps": {"anna": [4, 5]}}
        for at in (0, 2, 4)
    ]
    report = rated(items, systems=SYSTEMS)
    for table, column in (
        ("means", "mean"),
        ("ranks", "rank_low"),
        ("comparisons", "difference"),
        ("comparisons", "verdict"),
    ):
        told = {row.cells[column].note for row in report.table(table).rows}
        assert told == {"no chain of pages connects all systems yet"}
    assert figure(report, "/rank_ranges").missing[0] == "a (no chain of pages connects all systems yet)"


# ---------------------------------------------------------------- before the end: complete units only


ITEMS, THREE = 60, ("plain", "beam", "lexicon")


def look_cells(report: Document, system: str) -> dict[str, Cell]:
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
    rated_campaign(database, items, systems=THREE, ratings_per_item=2, **campaign)
    return steps


def test_only_what_is_complete_counts_and_the_numbers_are_those_of_the_statistics(database: Database) -> None:
    steps = running(database, rated=46)
    report = build_human(database, "tasting")
    found = look_cells(report, "beam")
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
    assert look_cells(report, "lexicon")["state"].words.startswith("undecided")


def test_documents_are_complete_as_a_whole(database: Database) -> None:
    steps = running(database, rated=77, documents=3, number=90)
    found = look_cells(build_human(database, "tasting"), "beam")
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
    rated_campaign(database, items, systems=THREE, protocol="preference", settings=settings)
    report = build_human(database, "tasting")
    values = [np.where(wins[:40, 0], 2.0, -2.0), np.where(wins[:, 1], 2.0, -2.0)]
    expected = look([course(one, np.ones(len(one)), ITEMS) for one in values], 0.1)
    for system, units, one in zip(("beam", "lexicon"), (40, ITEMS), expected, strict=True):
        found = look_cells(report, system)
        assert (found["units"].value, found["planned"].value) == (units, ITEMS)
        assert found["difference"].value == pytest.approx(one.mean)
        assert found["p_any"].value == pytest.approx(one.p_value)
    assert look_cells(report, "beam")["state"].words == "better"


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
    found = look_cells(build_human(database, "tasting"), "beam")
    assert (found["state"].words, found["p_any"].value) == ("too early", None)
