"""Which campaigns a report has, what it says of each, and the columns beside the metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from blocks import notes, systems
from human_rows import SYSTEMS, add_campaign, cells, keys
from rated_campaigns import rated_campaign, side_by_side
from sqlalchemy import select, update

from creamtea.errors import InputError
from creamtea.report.build import build_report
from creamtea.report.html import to_html
from creamtea.report.human.build import build_human
from creamtea.report.model import Table
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, StudyRow

Fill = Callable[..., int]


def test_the_main_table_has_human_scores_beside_the_metrics(tasted: Database) -> None:
    report = build_report(tasted, "teatime")
    table = systems(report)
    titles = [column.title for column in table.columns]
    assert titles[3:6] == ["human score", "human score, % of baseline", "verdict"]
    people, percent, verdict = (column.key for column in table.columns[3:6])
    rows = {row.name: row.cells for row in table.rows}
    lexicon = rows["softmax-lexicon"]
    assert lexicon[people].value == cells(report, "means", "softmax-lexicon")["mean"].value
    delta = lexicon[people].delta
    assert delta is not None
    assert delta.value == cells(report, "comparisons", "softmax-lexicon")["difference"].value
    assert delta.significant
    assert lexicon[percent].value < 95  # type: ignore[operator]
    assert lexicon[verdict].words == "worse"
    assert rows["softmax-greedy"][verdict].words == "baseline"
    assert rows["scones-greedy"][people].note == "the system does not take part in campaign tasting"
    assert "launched: 120 of 120 item ratings (100 %) by 2 raters" in table.columns[3].signature


@pytest.mark.parametrize("complete", [True, False])
def test_a_campaign_without_ratings_has_a_line_and_no_columns(
    complete: bool, filled: Database, fill: Fill
) -> None:
    study = fill(filled)
    before = [column.key for column in systems(build_report(filled, study)).columns]
    rated_campaign(filled, [{}] * 3, name="begun", systems=SYSTEMS[:2], study_id=study)
    report = build_report(filled, study, complete)
    assert [column.key for column in systems(report).columns] == before
    assert notes(report, "begun/notes") == ("The campaign has no ratings yet.",)
    assert not any(path.startswith("human/") for path, block in report.walk() if isinstance(block, Table))
    assert "The campaign has no ratings yet." in to_html(report)
    rated_campaign(
        filled,
        [{"steps": {"anna": [3, 4]}, "kind": "repeat"}],
        name="practised",
        systems=SYSTEMS[:2],
        study_id=study,
    )
    assert notes(build_human(filled, "practised"), "practised/notes") == (
        "0 ratings count. Left out: ratings of controls, practice items and attention checks: 2.",
        "No rating of the systems counts yet.",
    )
    rated_campaign(filled, [{"steps": {"anna": [3, 4]}}], name="rated", systems=SYSTEMS[:2], study_id=study)
    titles = [column.title for column in systems(build_report(filled, study, complete)).columns]
    assert {"human score", "human score, % of baseline", "verdict"} <= set(titles)


def test_a_draft_and_ratings_of_other_outputs_are_not_in_the_report(
    filled: Database, fill: Fill, spec: dict[str, Any]
) -> None:
    study = fill(filled)
    add_campaign(filled, study, items=3, name="draft", state="draft")
    add_campaign(filled, study, items=3, name="closed", state="closed")
    add_campaign(filled, study, items=3, name="second")
    rated_campaign(filled, side_by_side([[[1], [2]]]), name="elsewhere")
    spec["metrics"] = spec["metrics"][:1]
    again = fill(filled, spec=spec, config_hash="d" * 60)  # submitted again, with fewer metrics
    found = build_report(filled, again).section("human").blocks
    assert [section.key for section in found] == ["closed", "second"]
    spec["variants"]["softmax"]["training"] = {"max_updates": 77}
    other = build_report(filled, fill(filled, spec=spec))
    assert [block.key for block in other.section("human").blocks] == ["left_out"]
    assert notes(other, "human/left_out") == tuple(
        f"Campaign {name} is left out: its raters saw other outputs, those of submission {study}."
        for name in ("closed", "second")
    )
    titles = [column.title for column in systems(build_report(filled, again)).columns]
    assert {"human score (closed)", "human score (second)"} <= set(titles)


def test_what_is_left_out_is_told(filled: Database) -> None:
    items: list[dict[str, Any]] = [
        {"steps": {"anna": [[3, 9], [4, 9]], "eve": [1, 1]}},
        {"steps": {"anna": []}},
        {"steps": {"anna": [5, 5]}, "kind": "repeat"},
    ]
    rated_campaign(filled, items, raters=["anna", "eve"], excluded=["eve"], ratings_per_item=2)
    assert notes(build_human(filled, "tasting"), "tasting/notes") == (
        "2 ratings count, with fewer than 2 raters on 1 of the items. Left out: ratings by excluded raters "
        "(1): 2; ratings that a rater revised later: 2; ratings of controls, practice items and "
        "attention checks: 2; skips: 1; items without a rating: 1.",
        "One rater: how others would judge, and how far they would agree, is unknown.",
    )


def test_a_campaign_whose_plug_in_is_gone_is_left_out_with_a_note(tasted: Database, fill: Fill) -> None:
    with tasted.transaction() as session:
        study = session.scalars(select(StudyRow)).one()
    add_campaign(tasted, study.id, name="spans")
    with tasted.transaction() as session:
        session.execute(update(Campaign).where(Campaign.name == "spans").values(protocol="error-spans"))
    report = build_report(tasted, study.name)
    (note,) = notes(report, "human/left_out")
    assert note.startswith("Campaign spans is left out: ")
    assert "error-spans" in note
    assert report.section("human/tasting").blocks
    assert "Campaign spans is left out" in to_html(report)
    with pytest.raises(InputError, match="error-spans"):
        build_human(tasted, "spans")


def test_unknown_and_unlaunched_campaigns_are_refused(filled: Database) -> None:
    rated_campaign(filled, [], name="draft", state="draft")
    rated_campaign(filled, [], name="ready")
    with pytest.raises(InputError, match="no campaign 'nothing'; launched campaigns: ready"):
        build_human(filled, "nothing")
    with pytest.raises(InputError, match="'draft' is a draft: launch it with"):
        build_human(filled, "draft")


def test_a_study_whose_spec_is_too_old_still_has_its_people(tasted: Database) -> None:
    with tasted.transaction() as session:
        study_id = session.query(Campaign.study_id).scalar()
        session.get_one(StudyRow, study_id).spec = {"name": "teatime"}
    report = build_human(tasted, "tasting")
    assert "metrics" not in keys(report)
    assert "means" in keys(report)


def test_a_report_is_frozen(tasted: Database) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        build_human(tasted, "tasting").name = "other"  # type: ignore[misc]
