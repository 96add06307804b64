"""People's judgements: every table of a campaign, against the statistics' own functions and by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from blocks import entries, notes, systems, tables
from human_rows import DRAW, ITEMS, MEANS, SYSTEMS, add_campaign, add_segment_scores
from rated_campaigns import drawn_steps, rated_campaign, side_by_side
from scipy import stats
from sqlalchemy import select, update

from creamtea.errors import InputError
from creamtea.report import text
from creamtea.report.build import build_report
from creamtea.report.html import to_html
from creamtea.report.human.build import build_human
from creamtea.report.model import Cell, Document, Entry, Table
from creamtea.stats.correction import holm
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, StudyRow

Fill = Callable[..., int]
POINTS = 1 + 0.2 * drawn_steps(ITEMS, MEANS[:3], raters=2, seed=DRAW)  # items, systems, raters


@pytest.fixture
def tasted(filled: Database, fill: Fill) -> Database:
    study = fill(filled)
    add_campaign(filled, study)
    add_segment_scores(filled, study)
    return filled


def cells(report: Document, table: str, system: str) -> dict[str, Cell]:
    (row,) = [row for row in report.table(table).rows if row.name == system]
    return row.cells


def keys(report: Document) -> set[str]:
    return {table.key for table in tables(report)}


def place(entry: Entry) -> tuple[int, str]:
    """Its segment from 0, and its system."""
    segment, system = entry.name.removeprefix("segment ").split(", ")
    return int(segment) - 1, system


def numbers(entry: Entry) -> dict[str, float | None]:
    return {column.title: cell.value for column, cell in entry.numbers}


def test_means_and_both_intervals_of_baseline_is_100(tasted: Database) -> None:
    report = build_human(tasted, "tasting")
    base, ours = POINTS.mean(axis=2)[:, 0], POINTS.mean(axis=2)[:, 1]
    found = cells(report, "means", "softmax-lexicon")
    assert (found["items"].value, found["ratings"].value) == (ITEMS, 2 * ITEMS)
    assert found["mean"].value == pytest.approx(ours.mean())
    assert [found["mean"].low, found["mean"].high] == pytest.approx(
        list(stats.ttest_1samp(ours, 0).confidence_interval())
    )
    assert found["percent"].value == pytest.approx(100 * ours.mean() / base.mean())
    paired = stats.ttest_rel(ours, base).confidence_interval()
    assert found["percent_paired_t"].low == pytest.approx(100 + 100 * paired.low / base.mean())
    residuals = ours - ours.mean() / base.mean() * base
    half = 100 * stats.t.ppf(0.975, ITEMS - 1) * residuals.std(ddof=1) / np.sqrt(ITEMS) / base.mean()
    assert found["percent"].high == pytest.approx(found["percent"].value + half)
    assert cells(report, "means", "softmax-greedy")["percent"] == Cell("ok", value=100.0)


def test_the_three_tests_are_corrected_over_the_comparisons_with_the_baseline(tasted: Database) -> None:
    report = build_human(tasted, "tasting")
    by_system = POINTS.mean(axis=2).T.round(9)
    t = [stats.ttest_rel(by_system[at], by_system[0]).pvalue for at in (1, 2)]
    ranks = [
        stats.wilcoxon((by_system[at] - by_system[0]).round(6), zero_method="pratt").pvalue for at in (1, 2)
    ]
    found = [cells(report, "comparisons", SYSTEMS[at]) for at in (1, 2)]
    assert [one["p_t"].value for one in found] == pytest.approx(holm(t))
    assert [one["p_signed_rank"].value for one in found] == pytest.approx(holm(ranks))
    assert found[0]["p_sign_flip"].value == pytest.approx(2 / 10_001)  # the least there is, twice
    assert found[0]["p_t"].words == "<0.001"


def test_every_comparison_has_one_verdict(tasted: Database) -> None:
    report = build_human(tasted, "tasting")
    assert cells(report, "comparisons", "softmax-lexicon")["verdict"].words == "worse"
    undecided = cells(report, "comparisons", "softmax-nvs")["verdict"]
    assert undecided.words == "undecided"
    assert "items would decide it with 80 % power" in undecided.note
    assert f"{undecided.value:,.0f} items" in undecided.note


@pytest.mark.parametrize(("delta", "words"), [(0.1, "undecided"), (1.5, "no difference > 1.5")])
def test_the_registered_delta_decides_what_no_difference_is(
    delta: float, words: str, filled: Database, fill: Fill
) -> None:
    add_campaign(filled, fill(filled), settings={"delta": delta, "baseline": "softmax-nvs"})
    report = build_human(filled, "tasting")
    assert report.table("comparisons").title == "Against softmax-nvs"
    assert cells(report, "comparisons", "softmax-greedy")["verdict"].words == words


def test_a_verdict_holds_for_other_raters_or_is_undecided(filled: Database) -> None:
    """Anna sees a difference of a point on all items, Ben none; then both do."""
    level = 10 + np.arange(40) % 7
    for name, ben in (("alone", 0), ("agreed", 5)):
        noise = np.arange(40) % 3 - 1
        steps = np.stack(
            [np.stack([level, level], axis=1), np.stack([level + 5 + noise, level + ben + noise], axis=1)],
            axis=1,
        )
        rated_campaign(filled, side_by_side(steps), name=name, ratings_per_item=2)
    alone, agreed = (build_human(filled, name) for name in ("alone", "agreed"))
    verdict = cells(alone, "comparisons", "beam")["verdict"]
    assert (verdict.words, verdict.value) == ("undecided (these raters: better)", None)
    assert verdict.note.startswith("too few raters, or too different ones, to decide it for others")
    assert cells(alone, "comparisons", "beam")["p_t"].words == "<0.001"
    low = cells(alone, "clusters", "beam")["difference"].low
    assert low is not None
    assert low <= 0
    assert cells(agreed, "comparisons", "beam")["verdict"].words == "better"
    assert any(
        note.startswith("2 raters are few to tell how raters differ")
        for note in notes(agreed, "agreed/notes")
    )


def test_names_and_their_order_change_nothing(filled: Database, fill: Fill) -> None:
    study = fill(filled)
    steps = drawn_steps(20, MEANS[:3], raters=2)
    rated_campaign(filled, side_by_side(steps), systems=SYSTEMS[:3], name="one", study_id=study)
    turned = side_by_side(steps[:, [2, 0, 1]])
    names = [SYSTEMS[2], SYSTEMS[0], SYSTEMS[1]]
    rated_campaign(filled, turned, systems=names, name="other", study_id=study)
    one, other = build_human(filled, "one"), build_human(filled, "other")
    for table in ("means", "comparisons", "clusters", "wmt"):  # sums of z-scores are rounded by their order
        for system in SYSTEMS[1:3]:
            here, there = cells(one, table, system), cells(other, table, system)
            assert here.pop("z", Cell("ok")).value == pytest.approx(there.pop("z", Cell("ok")).value)
            assert here == there, (table, system)


def test_a_summary_has_the_same_numbers_and_no_more(tasted: Database) -> None:
    report, whole = (build_report(tasted, "teatime", complete=full) for full in (False, True))
    of_campaign = keys(whole) - keys(report)
    assert {"clusters", "agreement", "wmt", "metrics"} <= of_campaign
    assert report.table("means") == whole.table("means")
    for row in report.table("comparisons").rows:
        complete = cells(whole, "comparisons", row.name)
        assert row.cells == {key: cell for key, cell in complete.items() if key != "p_sign_flip"}


def test_the_whole_has_agreement_ranks_and_metrics(tasted: Database) -> None:
    report = build_human(tasted, "tasting")
    alpha = cells(report, "agreement", "all raters")["alpha"]
    assert 0.2 < alpha.low < alpha.value < alpha.high < 1  # type: ignore[operator]
    assert [row.name for row in report.table("raters").rows] == ["anna", "ben"]
    assert cells(report, "raters", "anna")["severity"].value == pytest.approx(
        (POINTS[..., 0] - POINTS[..., 1]).mean()
    )
    assert cells(report, "wmt", "softmax-lexicon")["cluster"].value == 2
    assert cells(report, "wmt", "softmax-nvs")["rank_low"].value == 1
    people = cells(report, "people_and_metrics", "softmax-nvs")
    assert people["people"].value == pytest.approx(POINTS[:, 2].mean())
    assert [column.title for column in report.table("people_and_metrics").columns][1:] == [
        "BLEU",
        "chrF",
        "COMET",
    ]
    tau = {row.name: row.cells["kendall"].value for row in report.table("metrics").rows}
    assert tau["chrF"] > 0.5 > tau["BLEU"]  # type: ignore[operator]
    clusters = cells(report, "clusters", "softmax-lexicon")
    assert clusters["raters"].value == 2
    assert clusters["difference"].value == pytest.approx((POINTS[:, 1] - POINTS[:, 0]).mean())


def test_disagreements_are_the_largest_gaps_with_their_texts(tasted: Database) -> None:
    report = build_human(tasted, "tasting")
    bleu = [entry for entry in entries(report, "disagreements") if "BLEU" in numbers(entry)]
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


def test_disputes_are_the_outputs_whose_ratings_lie_furthest_apart(tasted: Database) -> None:
    report = build_human(tasted, "tasting")
    deviations = POINTS.std(axis=2, ddof=1)
    disputes = entries(report, "disputes")
    found = [numbers(entry)["deviation"] for entry in disputes]
    assert found == pytest.approx(sorted(deviations.ravel(), reverse=True)[:8])
    segment, system = place(disputes[0])
    own = POINTS[segment, SYSTEMS.index(system)]
    shown = numbers(disputes[0])
    assert shown["ratings"] == 2
    assert (shown["lowest"], shown["highest"]) == pytest.approx((own.min(), own.max()))
    assert disputes[0].passages[1].text == f"o{segment}-{system}"


def test_disputes_need_two_raters_and_count_a_text_once(filled: Database) -> None:
    items: list[dict[str, Any]] = [
        {"steps": {"anna": [0, 0], "ben": [25, 25]}, "outputs": ["same", "same"]},
        {"steps": {"anna": [3, 9], "ben": [3, 8]}},
        {"steps": {"anna": [1, 2]}},
        {"steps": {"anna": [0, 0], "ben": [25, 25]}, "kind": "repeat"},
    ]
    rated_campaign(filled, items, ratings_per_item=2)
    report = build_human(filled, "tasting")
    assert [text.entry_name(entry) for entry in entries(report, "disputes")] == [
        "segment 1, plain: ratings 2, lowest 1.00, highest 6.00, deviation 3.54",
        "segment 2, beam: ratings 2, lowest 2.60, highest 2.80, deviation 0.14",
    ]
    rated_campaign(filled, items[2:], name="alone")
    assert entries(build_human(filled, "alone"), "disputes") == []


def test_a_disputed_preference_is_listed_once(filled: Database) -> None:
    items = [{"steps": {"anna": [0, 2], "ben": [2, 0]}}, {"steps": {"anna": [1, 1], "ben": [1, 1]}}]
    rated_campaign(filled, items, protocol="preference", ratings_per_item=2)
    assert [text.entry_name(entry) for entry in entries(build_human(filled, "tasting"), "disputes")] == [
        "segment 1, plain: ratings 2, lowest 0.0 %, highest 100.0 %, deviation 70.7 %"
    ]


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
        "0 ratings count. Left out: ratings of controls and tutorial items: 2.",
        "No rating of the systems counts yet.",
    )
    rated_campaign(filled, [{"steps": {"anna": [3, 4]}}], name="rated", systems=SYSTEMS[:2], study_id=study)
    titles = [column.title for column in systems(build_report(filled, study, complete)).columns]
    assert {"human score", "human score, % of baseline", "verdict"} <= set(titles)


def test_a_draft_and_another_study_are_not_in_the_report(filled: Database, fill: Fill) -> None:
    study = fill(filled)
    add_campaign(filled, study, items=3, name="draft", state="draft")
    add_campaign(filled, study, items=3, name="closed", state="closed")
    add_campaign(filled, study, items=3, name="second")
    rated_campaign(filled, side_by_side([[[1], [2]]]), name="elsewhere")
    again = fill(filled)  # the same study, submitted again
    other = fill(filled, config_hash="d" * 60)
    found = build_report(filled, again).section("human").blocks
    assert [section.key for section in found] == ["closed", "second"]
    assert "human" not in {path for path, _ in build_report(filled, other).walk()}
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
        "(1): 2; ratings that a rater revised later: 2; ratings of controls and tutorial items: 2; items "
        "that a rater skipped: 1; items without a rating: 1.",
        "One rater: how others would judge, and how far they would agree, is unknown.",
    )


def test_preferences_are_wins_ties_and_losses(filled: Database) -> None:
    pairs = [[2, 0]] * 6 + [[1, 1]] * 2 + [[0, 2]] * 2
    items: list[dict[str, Any]] = [
        {"systems": [0, 1], "steps": {"anna": pair}, "segment_index": i} for i, pair in enumerate(pairs)
    ]
    items += [{"systems": [1, 2], "steps": {"anna": [0, 2]}, "segment_index": i} for i in range(3)]
    rated_campaign(filled, items, systems=["plain", "beam", "nvs"], protocol="preference")
    report = build_human(filled, "tasting")
    beam = cells(report, "comparisons", "beam")
    assert [beam[key].value for key in ("wins", "ties", "losses", "items")] == [2, 2, 6, 10]
    assert beam["difference"].value == pytest.approx(2 * (2 - 6) / 10)
    assert beam["p_sign"].value == pytest.approx(stats.binomtest(2, 8).pvalue)
    assert cells(report, "comparisons", "nvs")["items"].value == 0
    assert cells(report, "pairs", "nvs")["wins"].value == 3
    assert "percent" not in cells(report, "means", "plain")
    assert cells(report, "means", "plain")["mean"].value == pytest.approx(2 * (6 + 2 / 2) / 10)


def test_the_part_drawn_at_random_stands_by_itself(filled: Database, fill: Fill) -> None:
    steps = side_by_side(drawn_steps(30, MEANS[:3], raters=1), ["anna"])
    for item in steps[20:]:
        item |= {"kind": "random", "weight": 3.0}
    rated_campaign(filled, steps, systems=SYSTEMS[:3], study_id=fill(filled), raters=["anna"])
    report = build_human(filled, "tasting")
    assert cells(report, "random_means", "softmax-nvs")["items"].value == 10
    values = 1 + 0.2 * drawn_steps(30, MEANS[:3], raters=1)[20:, 2, 0]
    assert cells(report, "random_means", "softmax-nvs")["mean"].value == pytest.approx(values.mean())
    weighted = np.average(
        1 + 0.2 * drawn_steps(30, MEANS[:3], raters=1)[:, 2, 0], weights=[1] * 20 + [3] * 10
    )
    assert cells(report, "means", "softmax-nvs")["mean"].value == pytest.approx(weighted)
    assert any(note.startswith("Items have weights") for note in notes(report, "tasting/notes"))
    assert "clusters" not in keys(report)  # one rater an item


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{}],
        [{"steps": {"anna": [3, 9]}}],
        [{"steps": {"anna": [3, 3], "ben": [3, 3]}}] * 3,
        [{"steps": {"anna": [0, 0]}}, {"steps": {"ben": [25, 25]}}],
        [{"systems": [0], "steps": {"anna": [3]}}, {"systems": [1], "steps": {"ben": [4]}}],
    ],
)
@pytest.mark.parametrize("protocol", ["contrastive-da", "da", "preference"])
def test_few_and_equal_ratings_are_told_not_hidden(
    items: list[dict[str, Any]], protocol: str, filled: Database
) -> None:
    if protocol == "preference":
        items = [
            {**item, "steps": {name: [1] * len(steps) for name, steps in item.get("steps", {}).items()}}
            for item in items
        ]
    rated_campaign(filled, items, protocol=protocol)
    report = build_human(filled, "tasting")
    for one in tables(report):
        for row in one.rows:
            for key, cell in row.cells.items():
                assert cell.value is not None or cell.note or cell.words, (one.key, row.name, key)
                assert all(v is None or np.isfinite(v) for v in (cell.value, cell.low, cell.high))


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
    with pytest.raises(InputError, match="'nothing' is not there; campaigns with ratings to report: ready"):
        build_human(filled, "nothing")
    with pytest.raises(InputError, match="'draft' has not been launched"):
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
