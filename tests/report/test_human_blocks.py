"""Reports of campaigns whose pages show some of the systems."""

import math
from typing import Any

import numpy as np
import pytest
from blocks import figure, figures, notes
from human_rows import Rated
from rated_campaigns import rated_campaign

from creamtea.human.making.design import balanced_blocks, block_of
from creamtea.human.results.ratings import load_ratings
from creamtea.report.html import side_by_side
from creamtea.report.human.build import build_human
from creamtea.report.model import Document, Section
from creamtea.stats.incomplete import estimate_systems
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign

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
    assert second == "No system is shown to be better than f (ranks from all pages)."
    assert "better: f" in third
    # narrow tables of the same systems stand side by side
    ((section,),) = (one.blocks for one in report.sections if one.key == "human")
    assert isinstance(section, Section)
    groups = [[block.key for block in group] for group in side_by_side(section.blocks)]
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
