"""Which campaigns a report has, what it says of each, columns beside metrics, and whole documents."""

import csv
import dataclasses
import io
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import entries, notes, systems
from human_rows import POINTS, SYSTEMS, Rated, add_campaign, add_segment_scores, add_tasting, cells, keys
from rated_campaigns import rated_campaign, side_by_side
from scipy import stats
from scipy.stats import norm, ttest_1samp, wilcoxon
from small_campaigns import add_rater, make_campaign, rate_all
from sqlalchemy import select, update
from teatime_study import fill_study

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.rating import raters
from creamtea.report import text
from creamtea.report.build import build_report
from creamtea.report.export import table_csv, to_values
from creamtea.report.human.build import build_human, campaign_report
from creamtea.report.human.campaign import CampaignReport, human_columns
from creamtea.report.model import Cell, Document, Entry, Notes, PValue, Table, Texts
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Assignment, Campaign, StudyRow


def test_the_main_table_has_human_scores_beside_the_metrics(tasted_report: Document) -> None:
    table = systems(tasted_report)
    titles = [column.title for column in table.columns]
    assert titles[3:6] == ["human score", "human score, % of baseline", "verdict"]
    people, percent, verdict = (column.key for column in table.columns[3:6])
    rows = {row.name: row.cells for row in table.rows}
    lexicon = rows["softmax-lexicon"]
    assert lexicon[people].value == cells(tasted_report, "means", "softmax-lexicon")["mean"].value
    delta = lexicon[people].delta
    assert delta.value == cells(tasted_report, "comparisons", "softmax-lexicon")["difference"].value
    assert delta.significant
    assert lexicon[percent].value < 95  # type: ignore[operator]
    assert lexicon[verdict].words == "worse"
    assert rows["softmax-greedy"][verdict].words == "baseline"
    assert rows["scones-greedy"][people].note == "the system does not take part in campaign tasting"
    assert "launched: 120 of 120 item ratings (100 %) by 2 raters" in table.columns[3].signature


@pytest.mark.parametrize("complete", [True, False])
def test_a_campaign_without_ratings_has_a_line_and_no_columns(complete: bool, database: Database) -> None:
    study = fill_study(database)
    before = [column.key for column in systems(build_report(database, study)).columns]
    own: dict[str, Any] = {"systems": SYSTEMS[:2], "study_id": study}
    rated_campaign(database, [{}] * 3, name="begun", **own)
    report = build_report(database, study, complete)
    assert [column.key for column in systems(report).columns] == before
    assert notes(report, "begun/notes") == ("The campaign has no ratings yet.",)
    assert not any(path.startswith("human/") for path, block in report.walk() if isinstance(block, Table))
    item = {"steps": {"anna": [3, 4]}}
    rated_campaign(database, [item | {"kind": "repeat"}], name="practised", **own)
    assert notes(build_human(database, "practised"), "practised/notes") == (
        "0 scores count. Left out: scores of controls, practice items and attention checks: 2.",
        "No rating of the systems counts yet.",
    )
    rated_campaign(database, [item], name="rated", **own)
    titles = [column.title for column in systems(build_report(database, study, complete)).columns]
    assert {"human score", "human score, % of baseline", "verdict"} <= set(titles)


def test_a_draft_and_ratings_of_other_outputs_are_not_in_the_report(
    database: Database, spec: dict[str, Any]
) -> None:
    study = fill_study(database)
    add_campaign(database, study, items=3, name="draft", state="draft")
    add_campaign(database, study, items=3, name="closed", state="closed")
    add_campaign(database, study, items=3, name="second")
    rated_campaign(database, side_by_side([[[1], [2]]]), name="elsewhere")
    spec["metrics"] = spec["metrics"][:1]
    again = fill_study(database, spec=spec, config_hash="d" * 60)  # submitted again, with fewer metrics
    found = build_report(database, again).section("human").blocks
    assert [section.key for section in found] == ["closed", "second"]
    spec["variants"]["softmax"]["training"] = {"max_updates": 77}
    other = build_report(database, fill_study(database, spec))
    assert [block.key for block in other.section("human").blocks] == ["left_out"]
    assert notes(other, "human/left_out") == tuple(
        f"Campaign {name} is left out: its raters saw other outputs, those of submission {study}."
        for name in ("closed", "second")
    )
    titles = [column.title for column in systems(build_report(database, again)).columns]
    assert {"human score (closed)", "human score (second)"} <= set(titles)
    said = " ".join(notes(build_report(database, again), "answer/test/sentences"))
    assert all(f"People (campaign {name}), against softmax-greedy: " in said for name in ("closed", "second"))


def test_what_is_left_out_is_told(rated: Rated) -> None:
    items: list[dict[str, Any]] = [
        {"steps": {"anna": [[3, 9], [4, 9]], "eve": [1, 1]}},
        {"steps": {"anna": []}},
        {"steps": {"anna": [5, 5]}, "kind": "repeat"},
    ]
    report = rated(items, raters=["anna", "eve"], excluded=["eve"], ratings_per_item=2)
    assert notes(report, "tasting/notes") == (
        "2 scores count (from 1 item rating, one for each system whose output was rated), with fewer than 2 "
        "raters on 1 of the items. Left out: scores by excluded raters (1): 2; scores that a rater revised "
        "later: 2; scores of controls, practice items and "
        "attention checks: 2; skips: 1; items without a rating: 1.",
        "One rater: how others would judge, and how far they would agree, is unknown.",
    )


def test_a_campaign_whose_plug_in_is_gone_is_left_out_with_a_note(database: Database) -> None:
    add_tasting(database)
    with database.transaction() as session:
        study = session.scalars(select(StudyRow)).one()
    add_campaign(database, study.id, name="spans")
    with database.transaction() as session:
        session.execute(update(Campaign).where(Campaign.name == "spans").values(protocol="error-spans"))
    report = build_report(database, study.name)
    (note,) = notes(report, "human/left_out")
    assert note.startswith("Campaign spans is left out: ")
    assert "error-spans" in note
    assert report.section("human/tasting").blocks
    with pytest.raises(InputError, match="error-spans"):
        build_human(database, "spans")


def test_unknown_and_unlaunched_campaigns_are_refused(database: Database) -> None:
    rated_campaign(database, [], name="draft", state="draft")
    rated_campaign(database, [], name="ready")
    with pytest.raises(InputError, match="no campaign 'nothing'; known: draft, ready"):
        build_human(database, "nothing")
    with pytest.raises(InputError, match="'draft' is a draft: launch it with"):
        build_human(database, "draft")


def test_a_study_whose_spec_is_too_old_still_has_its_people(database: Database) -> None:
    with add_tasting(database).transaction() as session:
        session.scalars(select(StudyRow)).one().spec = {"name": "teatime"}
    report = build_human(database, "tasting")
    assert "metrics" not in keys(report)
    assert "means" in keys(report)
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.name = "other"  # type: ignore[misc]


def report_of(database: Database, name: str = "tasting", complete: bool = False) -> CampaignReport:
    with database.session() as session:
        return campaign_report(session, find_campaign(session, name), None, complete=complete)


def of_beam(columns: Table) -> dict[str, Cell]:
    (cells,) = (row.cells for row in columns.rows if row.name == "beam")
    return cells


def in_csv(columns: Table) -> dict[str, str]:
    """The system `beam` in the main table's file."""
    rows = csv.DictReader(io.StringIO(table_csv(columns)))
    return next(row for row in rows if row["name"] == "beam")


def test_a_difference_without_spread_stands_beside_its_verdict(database: Database) -> None:
    """Every item one point better: there is no t, but signed ranks, and a verdict by signs."""
    items = [{"steps": {who: [item, item + 5] for who in ("anna", "ben")}} for item in range(20)]
    rated_campaign(database, items, ratings_per_item=2)
    (columns,) = human_columns([report_of(database)], "test")
    delta = of_beam(columns)["human:tasting"].delta
    assert (delta.value, delta.low, delta.p_values["t"]) == (1.0, None, PValue())
    assert delta.p_values["signed_rank"].corrected == pytest.approx(2 * norm.sf(20**0.5))
    assert text.shown(of_beam(columns)["human:tasting"], columns.columns[0]).change == (
        "+1.00*",
        "p=–/<0.001",  # t / signed-rank, as the column says
    )
    assert of_beam(columns)["human_verdict:tasting"].words == "better"
    head = in_csv(columns).keys()
    assert "human:tasting_delta_p_signed_rank_corrected" in head
    assert not [name for name in head if "randomization" in name or "delta_p_t_corrected" in name]


def test_each_p_value_has_its_tests_name_in_json_and_csv(database: Database) -> None:
    steps = [[10 + item % 5, 11 + item % 5 + item % 3 - item % 4] for item in range(24)]
    rated_campaign(database, [{"steps": {"anna": own}} for own in steps])
    differences = np.diff(steps).ravel()
    (columns,) = human_columns([report_of(database)], "test")
    signed_rank = wilcoxon(differences, zero_method="pratt", correction=False, method="asymptotic").pvalue
    wanted = {"t": ttest_1samp(differences, 0).pvalue, "signed_rank": signed_rank}
    assert abs(wanted["t"] - signed_rank) > 0.01  # else the names could not be told apart
    found = to_values(of_beam(columns)["human:tasting"])["delta"]["p_values"]
    assert {test: p["corrected"] for test, p in found.items()} == pytest.approx(wanted, rel=1e-9)
    row = in_csv(columns)
    for test, p in wanted.items():
        assert float(row[f"human:tasting_delta_p_{test}_corrected"]) == pytest.approx(p, rel=1e-9)


# ---------------------------------------------------------------- of an export alone


OF_THE_STUDY = ("people_and_metrics", "metrics", "disagreements")  # made from the study's segment scores


def values(report: Document) -> dict[str, Any]:
    """The tables and texts by path, but for those of the study."""
    kept = {
        path: to_values(block)
        for path, block in report.walk()
        if isinstance(block, Table | Texts | Notes) and block.key not in OF_THE_STUDY
    }
    assert len(kept) > 5
    return kept


@pytest.mark.parametrize("format_name", ["jsonl", "csv"])
def test_an_export_gives_the_same_report_elsewhere(
    format_name: str, database: Database, new_database: Callable[[], Database], tmp_path: Path
) -> None:
    """Of the study's campaign; and with excluded raters, revisions, kinds of items and skips."""
    if format_name == "jsonl":
        study = fill_study(database)
        settings = {"baseline": "softmax-nvs", "delta": 0.2, "select": "all"}
        add_campaign(database, study, items=25, settings=settings, state="closed")
        add_segment_scores(database, study, items=25)
    else:
        items: list[dict[str, Any]] = [
            {"steps": {"anna": [[3, 9], [4, 9]], "eve": [1, 1], "ben": [7, 7]}, "outputs": ["x", "y"]},
            {"steps": {"anna": [5, 5], "ben": [6, 6]}, "outputs": ["same", "same"], "kind": "random"},
            {"steps": {"anna": [2, 20], "ben": [3, 19]}, "outputs": ["", "<b>"], "weight": 2.5},
            {"steps": {"anna": []}},
        ]
        people = {"raters": ["anna", "ben", "eve"], "excluded": ["eve"], "ratings_per_item": 2}
        rated_campaign(database, items, **people, state="closed")  # as imported campaigns are
    elsewhere, folder = new_database(), tmp_path / "export"
    export_campaign(database, "tasting", format_name, folder, "test")
    import_campaign(elsewhere, folder, format_name, ImportFacts("tasting"), "test")
    assert values(build_human(elsewhere, "tasting")) == values(build_human(database, "tasting"))


# ---------------------------------------------------------------- where raters and metrics disagree


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


def disputes(report: Document) -> list[str]:
    return [text.entry_name(entry) for entry in entries(report, "disputes")]


def test_disputes_need_two_raters_and_count_a_text_once(rated: Rated) -> None:
    items: list[dict[str, Any]] = [
        {"steps": {"anna": [0, 0], "ben": [25, 25]}, "outputs": ["same", "same"]},
        {"steps": {"anna": [3, 9], "ben": [3, 8]}},
        {"steps": {"anna": [1, 2]}},
        {"steps": {"anna": [0, 0], "ben": [25, 25]}, "kind": "repeat"},
    ]
    assert disputes(rated(items, ratings_per_item=2)) == [
        "segment 1, plain: ratings 2, lowest 1.00, highest 6.00, deviation 3.54",
        "segment 2, beam: ratings 2, lowest 2.60, highest 2.80, deviation 0.14",
    ]
    assert disputes(rated(items[2:], name="alone")) == []
    preferences = [{"steps": {"anna": [0, 2], "ben": [2, 0]}}, {"steps": {"anna": [1, 1], "ben": [1, 1]}}]
    assert disputes(rated(preferences, "pairs", protocol="preference", ratings_per_item=2)) == [
        "segment 1, plain: ratings 2, lowest 0.0 %, highest 100.0 %, deviation 70.7 %"
    ]


# ---------------------------------------------------------------- post-edits


ITEMS = [{"outputs": ["Er gab es auf."], "systems": [0]}, {"outputs": ["Er gab auf."], "systems": [1]}]


def test_rates_unchanged_outputs_and_times(database: Database) -> None:
    make_campaign(database, ITEMS, protocol="post-edit", systems=2, k=2, baseline="plain", delta=2.0)
    anna, ben = add_rater(database), add_rater(database, "ben")
    rate_all(database, anna, lambda work: [{"text": "Er gab auf."}])
    rate_all(database, ben, lambda work: [{"text": "x"}])
    raters.exclude(database, ben, "test", "writes x")
    with database.transaction() as session:
        session.execute(update(Assignment).values(active_ms=4000))
    report = report_of(database, "c", complete=True)
    (table,) = [table for table in report.tables if table.key == "edited"]
    cells = {row.name: {key: cell.value for key, cell in row.cells.items()} for row in table.rows}
    assert cells["plain"]["ratings"] == 1
    assert round(cells["plain"]["rate"], 1) == 33.3
    assert cells["beam"] == {"ratings": 1, "rate": 0.0, "unchanged": 100.0, "seconds": 4.0}


# ---------------------------------------------------------------- scores of whole documents


FIRST, SECOND = [50, 62, 71, 48], [55, 60, 83, 59]  # of four pages, by system


def part_item(page: int, document: int, segment: int, system: int, part: int) -> dict[str, Any]:
    place = {"page": page, "document": f"d{document}", "segment_index": segment, "systems": [system]}
    return {**place, "source": f"{document} {system} {part}", "outputs": [f"text {document} {system} {part}"]}


PARTS = [
    part_item(4 * document + 2 * system, document, 2 * document + part, system, part)
    for document, system, part in product(range(4), range(2), range(2))
]


def test_documents_have_means_and_paired_differences_of_their_own(database: Database) -> None:
    settings = {"unit": "document", "document_score": True, "show_reference": [1], "baseline": "plain"}
    make_campaign(database, PARTS, protocol="da", systems=2, k=2, delta=2.0, **settings)
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
        part_item(6 * document + 2 * part + system, document, 3 * document + part, system, part)
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
