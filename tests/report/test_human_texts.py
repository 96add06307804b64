"""The outputs on which raters and metrics, or raters among themselves, disagree most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blocks import entries
from human_rows import POINTS, SYSTEMS, add_segment_scores
from rated_campaigns import rated_campaign, side_by_side
from teatime_study import fill_study

from creamtea.report import text
from creamtea.report.human.build import build_human
from creamtea.report.model import Document, Entry
from creamtea.store.database import Database


def place(entry: Entry) -> tuple[int, str]:
    """Its segment from 0, and its system."""
    segment, system = entry.name.removeprefix("segment ").split(", ")
    return int(segment) - 1, system


def numbers(entry: Entry) -> dict[str, float | None]:
    return {column.title: cell.value for column, cell in entry.numbers}


def test_disagreements_are_the_largest_gaps_with_their_texts(tasting: Document) -> None:
    bleu = [entry for entry in entries(tasting, "disagreements") if "BLEU" in numbers(entry)]
    assert len(bleu) == 8
    gaps = [abs(numbers(entry)["gap"] or 0.0) for entry in bleu]
    assert gaps == sorted(gaps, reverse=True)
    segment, system = place(bleu[0])
    assert [(one.text, one.language) for one in bleu[0].passages] == [
        (f"source {segment}", "en"),
        (f"o{segment}-{system}", "de"),
    ]
    mean = POINTS[segment, SYSTEMS.index(system)].mean()
    assert numbers(bleu[0])["human score"] == pytest.approx(mean)


def test_equal_human_scores_disagree_with_no_metric(database: Database) -> None:
    """The mean of sixty times 1.2 is not quite 1.2."""
    study = fill_study(database)
    everywhere_the_same = side_by_side(np.ones((20, 3, 2), dtype=int))
    rated_campaign(database, everywhere_the_same, systems=SYSTEMS[:3], study_id=study, ratings_per_item=2)
    add_segment_scores(database, study, items=20)
    assert entries(build_human(database, "tasting"), "disagreements") == []


def test_disputes_are_the_outputs_whose_ratings_lie_furthest_apart(tasting: Document) -> None:
    deviations = POINTS.std(axis=2, ddof=1)
    disputes = entries(tasting, "disputes")
    found = [numbers(entry)["deviation"] for entry in disputes]
    assert found == pytest.approx(sorted(deviations.ravel(), reverse=True)[:8])
    segment, system = place(disputes[0])
    own = POINTS[segment, SYSTEMS.index(system)]
    shown = numbers(disputes[0])
    assert shown["ratings"] == 2
    assert (shown["lowest"], shown["highest"]) == pytest.approx((own.min(), own.max()))
    assert disputes[0].passages[1].text == f"o{segment}-{system}"


def test_disputes_need_two_raters_and_count_a_text_once(database: Database) -> None:
    items: list[dict[str, Any]] = [
        {"steps": {"anna": [0, 0], "ben": [25, 25]}, "outputs": ["same", "same"]},
        {"steps": {"anna": [3, 9], "ben": [3, 8]}},
        {"steps": {"anna": [1, 2]}},
        {"steps": {"anna": [0, 0], "ben": [25, 25]}, "kind": "repeat"},
    ]
    rated_campaign(database, items, ratings_per_item=2)
    report = build_human(database, "tasting")
    assert [text.entry_name(entry) for entry in entries(report, "disputes")] == [
        "segment 1, plain: ratings 2, lowest 1.00, highest 6.00, deviation 3.54",
        "segment 2, beam: ratings 2, lowest 2.60, highest 2.80, deviation 0.14",
    ]
    rated_campaign(database, items[2:], name="alone")
    assert entries(build_human(database, "alone"), "disputes") == []


def test_a_disputed_preference_is_listed_once(database: Database) -> None:
    items = [{"steps": {"anna": [0, 2], "ben": [2, 0]}}, {"steps": {"anna": [1, 1], "ben": [1, 1]}}]
    rated_campaign(database, items, protocol="preference", ratings_per_item=2)
    assert [text.entry_name(entry) for entry in entries(build_human(database, "tasting"), "disputes")] == [
        "segment 1, plain: ratings 2, lowest 0.0 %, highest 100.0 %, deviation 70.7 %"
    ]
