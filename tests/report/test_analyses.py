"""Analyses in the report: tables from hand-made rows, states, plots, what is printed, and differences."""

import json
from dataclasses import dataclass
from typing import Any

import analysis_rows
import numpy as np
import pytest
from analysis_rows import row
from scipy import stats
from sqlalchemy import delete
from teatime_study import SPEC, Build, Spec, fill_study

from creamtea.methods.analysis import ANALYSES, CellPlot, PointPlot, RowPlot
from creamtea.report.analyses import NOT_COMPARED
from creamtea.report.build import build_report
from creamtea.report.cells import NO_MARK, NO_SPREAD
from creamtea.report.markdown import to_markdown
from creamtea.report.model import Delta, Document, Facts, Figure, Notes, Row, Section, Table
from creamtea.report.vega import vega_lite
from creamtea.stats.paired import holm
from creamtea.store.database import Database
from creamtea.store.tables import StudyStep

DIFFERENCES = 9  # tables of differences in a report with every analysis
FAILED = {"state": "failed", "error_kind": "deterministic", "error": "a NaN in the logits"}


@pytest.fixture
def spec(spec: Spec) -> Spec:
    return spec | {"analyses": analysis_rows.analyses("test")}


@pytest.fixture(scope="module")
def report(shared_report: Build) -> Document:
    return shared_report(SPEC | {"analyses": analysis_rows.analyses("test")})


@dataclass(frozen=True)
class Found:
    """An analysis as the report shows it."""

    section: Section
    tables: list[Table]
    figures: list[Figure]


def of(report: Document, kind: str) -> Found:
    """The one analysis of a kind."""
    (section,) = [block for block in report.section(f"analyses/{kind}").blocks if isinstance(block, Section)]
    return Found(
        section,
        [block for block in section.blocks if isinstance(block, Table)],
        [block for block in section.blocks if isinstance(block, Figure)],
    )


def kinds(report: Document) -> list[str]:
    return [section.key for section in report.section("analyses").blocks]


def rows_of(analysis: Found, table: int = 0) -> dict[tuple[str, str], Row]:
    return {(row.name, row.setting): row for row in analysis.tables[table].rows}


def drawn_groups(figure: Figure) -> list[str]:
    return list(dict.fromkeys(row["group"] for row in figure.rows))


def test_every_kind_has_a_table_with_values_and_a_plot(report: Document) -> None:
    assert set(ANALYSES.kinds) == set(analysis_rows.analyses("test"))
    assert len(kinds(report)) == len(ANALYSES.kinds)
    for kind in kinds(report):
        analysis = of(report, kind)
        cells = [cell for table in analysis.tables for row in table.rows for cell in row.cells.values()]
        assert cells
        assert all(cell.value is not None or cell.state == "absent" for cell in cells), kind
        assert all(cell.note for cell in cells if cell.value is None)
        assert analysis.figures
        assert all(figure.rows and not figure.missing for figure in analysis.figures), kind


def test_plots_name_measures_of_their_table() -> None:
    for kind in ANALYSES.kinds.values():
        keys = [{measure.column.key for measure in table.measures} for table in kind.tables]
        for plot in kind.plots:
            if isinstance(plot, CellPlot):
                assert {plot.x.key, *plot.measures} <= keys[0] | {"setting"}
            elif isinstance(plot, RowPlot):
                spreads = {f"{key}_deviation" for key in plot.measures if plot.deviations}
                assert {*plot.measures, *spreads} <= keys[plot.table]
            else:
                assert isinstance(plot, PointPlot)
                assert plot.series


def test_a_row_is_a_variant_and_a_setting(report: Document) -> None:
    rows = rows_of(of(report, "beam_sizes"))
    assert list(rows)[:5] == [
        *(("softmax", f"beam {width}") for width in (1, 4, 32, 128)),
        ("scones", "beam 1"),
    ]
    # three seeds: mean, deviation, and the means of their bounds
    cell = rows["scones", "beam 1"].cells["bleu"]
    assert (cell.value, cell.deviation, cell.seeds) == (pytest.approx(30.2), pytest.approx(0.1), 3)
    assert (cell.low, cell.high) == (pytest.approx(28.95), pytest.approx(31.45))


def test_search_errors_have_a_row_for_exact_search_and_a_table_of_outcomes(report: Document) -> None:
    errors = of(report, "search_errors")
    assert errors.section.facts == ("the first 20 sentences of test",)
    exact = rows_of(errors)["softmax", "exact"].cells
    assert exact["search_errors"].state == "absent"
    assert "counted against" in exact["search_errors"].note
    assert exact["bleu"].value is not None
    outcomes = rows_of(errors, 1)["softmax", ""].cells
    keys = ("proved", "improved", "limit", "log_prob_gap", "log_prob_gap_deviation")
    assert [outcomes[key].value for key in keys] == [0.9, 0.06, 0.04, 6.0, 3.25]


def test_the_empty_string_is_analysed_by_system_with_and_without_empty_outputs(report: Document) -> None:
    table = of(report, "empty_string").tables[0]
    assert table.heading == "system"
    # those with a full vocabulary
    assert [row.name for row in table.rows] == ["softmax-greedy", "scones-greedy"]
    without, both = (table.rows[0].cells[key] for key in ("empty_higher", "empty_preferred"))
    interval = stats.binomtest(200, 1000).proportion_ci(method="wilson")
    assert (without.low, without.value, without.high) == pytest.approx((interval.low, 0.2, interval.high))
    assert both.value == 0.22


@pytest.mark.parametrize(
    ("metric", "measured", "missing", "note"),
    [
        # of an earlier version, without counts
        (row("empty_preferred", 0.2), "empty_preferred", "empty_higher", "not measured ("),
        (
            row("log_prob_gap", 2.5, detail={"deviation": None}),
            "log_prob_gap",
            "log_prob_gap_deviation",
            "one sentence alone has no deviation",
        ),
    ],
)
def test_what_a_step_has_not_left_says_so(
    metric: dict[str, Any], measured: str, missing: str, note: str, build: Build
) -> None:
    report = build({"empty_string/empty_string/softmax-greedy": {"metrics": [metric]}})
    cells = rows_of(of(report, "empty_string"))["softmax-greedy", ""].cells
    assert cells[measured].value == metric["value"]
    assert cells[missing].state == "absent"  # the next run does not try again, as it does what is unavailable
    assert cells[missing].note.startswith(note)


@pytest.mark.slow
def test_means_over_idioms_are_there_where_an_idiom_is_repeated(build: Build, spec: Spec) -> None:
    def settings(count: int, distinct: int, seed: int) -> list[str]:
        spec["analyses"] = {"recall_at_size": spec["analyses"]["recall_at_size"]}
        spec["test_sets"]["test"]["seed"] = seed  # other steps than before
        macro = row("recall_macro", 0.5, "idiom", detail={"idioms": distinct})
        counts = [row("segments", 400), row("idioms", count)]
        report = build({"test_set": {"metrics": counts}, "recall/": {"metrics": [macro]}})
        analysis = of(report, "recall_at_size")
        assert len(analysis.figures) == len({r.setting.split(", ")[1] for r in analysis.tables[0].rows})
        return [r.setting for r in analysis.tables[0].rows if "k=10," in r.setting]

    assert settings(0, 0, 11) == ["k=10, sentences"]
    once = ["k=10, sentences", "k=10, idioms", "k=10, idioms in context"]
    assert settings(2, 2, 12) == once
    means = ["k=10, mean over idioms", "k=10, mean over idioms in context"]
    assert sorted(settings(3, 2, 13)) == sorted(once + means)


def test_what_has_not_run_or_failed_says_so_in_cells_and_plots(build: Build, spec: Spec) -> None:
    changes = {
        "beam_sizes/beam_sizes/scones/1": FAILED,
        "beam_sizes/beam_sizes/scones/2": {"state": "pending"},
        "beam_sizes/beam_sizes/softmax": {"state": "running"},
        "calibration/calibration/softmax": FAILED,
        "calibration/calibration/scones/2": {"metrics": []},
    }
    report = build(changes, state="failed")
    beams = of(report, "beam_sizes")
    one = rows_of(beams)["scones", "beam 4"].cells["bleu"]
    assert (one.state, one.seeds) == ("partial", 1)
    assert "1 of 3 seeds; seed 1: a NaN in the logits; seed 2: not run yet (beam sizes: scones" in one.note
    assert rows_of(beams)["softmax", "beam 4"].cells["bleu"].state == "running"
    assert beams.figures[0].missing == ("softmax (running)",)
    assert drawn_groups(beams.figures[0]) == ["scones"]
    calibration = of(report, "calibration")
    assert calibration.figures[0].missing == ("softmax (failed)",)
    assert drawn_groups(calibration.figures[0]) == [f"scones, seed {seed}" for seed in (1, 2, 3)]


def test_curves_of_cells_are_over_the_setting_or_over_another_measure(report: Document) -> None:
    (bleu, _) = of(report, "beam_sizes").figures
    softmax = [row for row in bleu.rows if row["group"] == "softmax"]
    assert [(row["x"], row["label"]) for row in softmax] == [
        (width, f"beam {width}") for width in (1, 4, 32, 128)
    ]
    errors, quality, length, _, _ = of(report, "search_errors").figures
    first = length.rows[0]["group"]
    assert [row["label"] for row in length.rows if row["group"] == first] == ["beam 1", "beam 4", "exact"]
    assert [row["x"] for row in errors.rows if row["group"] == first] == [1, 4]
    assert [(row["x"], row["label"]) for row in quality.rows if row["group"] == first][-1] == (8, "exact")
    shown = quality.spec["layer"][0]["encoding"]["x"]["axis"]
    assert (shown["values"], shown["labelExpr"]) == ([1, 4, 8], 'datum.value == 8 ? "exact" : datum.label')
    sentences = of(report, "recall_at_size").figures[0]
    assert drawn_groups(sentences) == ["softmax, NVS", "softmax, lexicon"]
    sizes = [pytest.approx(12 * k**0.8, abs=0.01) for k in (10, 100, 1000)]
    assert [row["x"] for row in sentences.rows if row["group"] == "softmax, NVS"] == sizes


# ---------------------------------------------------------------- figures


def test_beams_are_on_a_logarithmic_axis_with_their_widths_as_ticks(report: Document) -> None:
    for figure in of(report, "beam_sizes").figures:
        x = figure.spec["layer"][0]["encoding"]["x"]
        assert (x["scale"]["type"], x["axis"]["values"]) == ("log", [1, 4, 32, 128])
    bleu = of(report, "beam_sizes").figures[0]
    assert bleu.spec["layer"][1]["mark"]["type"] == "rule"  # intervals


def test_the_reliability_diagram_has_the_diagonal_and_shares_in_per_cent(report: Document) -> None:
    figure = of(report, "calibration").figures[0]
    assert figure.spec["layer"][0]["data"]["values"] == [{"x": 0.0, "y": 0.0}, {"x": 100.0, "y": 100.0}]
    first, *_, last = figure.rows
    assert (first["x"], first["y"]) == (pytest.approx(5.0), pytest.approx(3.0))
    # 93 of 100 positions of the last bin are right: Wilson's interval, as of any share
    assert (last["label"], last["y"]) == ("100", pytest.approx(93.0))
    assert (last["low"], last["high"]) == (pytest.approx(86.25, abs=0.01), pytest.approx(96.57, abs=0.01))


def test_exact_search_has_a_row_a_variant_with_intervals_and_deviations(report: Document) -> None:
    *_, outcomes, log_probabilities = of(report, "search_errors").figures
    first = outcomes.rows[0]
    shown = {"group": "proved", "label": "softmax", "y": 90.0, "low": 87.0, "high": 94.0}
    assert {key: first[key] for key in shown} == pytest.approx(shown)
    encoding = outcomes.spec["layer"][1]["encoding"]
    assert encoding["y"]["scale"]["domain"] == ["softmax", "scones"]
    assert encoding["yOffset"]["scale"]["domain"] == ["proved", "improved", "limit"]
    # Figure 6: mean and standard deviation over sentences
    spread = {
        (row["group"], row["label"]): (row["y"], row["low"], row["high"]) for row in log_probabilities.rows
    }
    assert spread["best", "softmax"] == (-9.5, -12.0, -7.0)
    assert spread["empty string", "softmax"] == (-15.5, -19.5, -11.5)
    assert spread["gap", "scones"] == pytest.approx((20.0, 16.75, 23.25))
    titles = [field["title"] for field in log_probabilities.spec["layer"][1]["encoding"]["tooltip"]]
    assert titles[-2:] == ["one deviation from", "one deviation to"]
    assert log_probabilities.spec["layer"][1]["encoding"]["x"]["title"] == "log-probability, nats"


def test_selection_in_context_and_word_by_word_have_curves_with_intervals(report: Document) -> None:
    (figure,) = of(report, "nvs_context").figures
    assert drawn_groups(figure) == ["softmax, in context", "softmax, word by word"]
    in_context = [row for row in figure.rows if row["group"] == "softmax, in context"]
    assert [row["x"] for row in in_context] == [150.5, 110.5, 170.5]
    assert in_context[0]["label"] == "λ=0.9, in context"
    assert [in_context[0][key] for key in ("y", "low", "high")] == pytest.approx([62.0, 59.0, 66.0])


def test_a_plot_without_points_has_no_figure(build: Build, spec: Spec) -> None:
    report = build({"": {"state": "pending"}}, state="queued")
    drawn = [figure for kind in kinds(report) for figure in of(report, kind).figures]
    assert drawn
    assert all(figure.missing and not figure.rows for figure in drawn)


# ---------------------------------------------------------------- by part, metric and test set


def test_buckets_have_tables_and_figures_of_their_own(report: Document) -> None:
    found = of(report, "buckets")
    assert [table.title for table in found.tables] == ["By length of the source", "By idioms"]
    length, idiom = found.tables
    assert [column.title for column in length.columns] == [
        *("BLEU, 1–5 words (90)", "BLEU, 6–12 words (180)"),
        *("chrF, 1–5 words (90)", "chrF, 6–12 words (180)"),
    ]
    first = idiom.rows[0].cells["bleu-idiom-2"]
    assert None not in (first.value, first.low, first.high)
    by_length, by_idiom = (
        vega_lite(next(figure for figure in found.figures if figure.title == f"BLEU by {what}"))
        for what in ("length of the source", "idioms")
    )
    for figure, tick, joined in ((by_length, "6–12 words", True), (by_idiom, "without", False)):
        text = json.dumps(figure)
        assert f"datum.value == 2 ? {json.dumps(json.dumps(tick))[1:-1]}" in text
        assert ('"line"' in text) == joined


def test_the_answer_names_the_hardest_part_for_the_best_system(report: Document) -> None:
    notes, *_ = report.section("answer/test").blocks
    assert isinstance(notes, Notes)
    (row,) = (row for row in of(report, "buckets").tables[0].rows if row.name == "scones-greedy")
    cell, easier = row.cells["bleu-length-2"], row.cells["bleu-length-1"]
    assert None not in (cell.value, easier.value)
    assert f"{cell.value:.1f}" < f"{easier.value:.1f}"
    bounds = f"[{cell.low:.1f}, {cell.high:.1f}]"
    by = "by length of the source: 6–12 words (180)"
    assert f"Hardest for scones-greedy, {by}: {cell.value:.1f} BLEU {bounds}." in notes.paragraphs


def test_the_only_part_with_a_score_is_not_the_hardest(build: Build) -> None:
    parts = [
        part | ({} if part["subject"] in ("all", "length/1", "idiom/1") else {"value": None})
        for part in analysis_rows.of_buckets("bleu", 1.0, 0.0)
    ]
    notes, *_ = build({"buckets/": {"metrics": parts}}).section("answer/test").blocks
    assert isinstance(notes, Notes)
    assert not any(line.startswith("Hardest") for line in notes.paragraphs)


def test_a_bucket_of_right_outputs_has_no_interval(build: Build) -> None:
    parts = [
        part | {"value": 100.0, "low": 100.0, "high": 100.0}
        for part in analysis_rows.of_buckets("bleu", 1.0, 0.0)
    ]
    rows = of(build({"buckets/": {"metrics": parts}}), "buckets").tables[0].rows
    cell = rows[0].cells["bleu-length-1"]
    assert (cell.value, cell.low, cell.note) == (100.0, None, NO_SPREAD)


@pytest.mark.parametrize("score", [0.0, 100.0])
def test_of_parts_with_one_score_none_is_the_hardest(score: float, build: Build) -> None:
    parts = [part | {"value": score} for part in analysis_rows.of_buckets("bleu", 1.0, 0.0)]
    notes, *_ = build({"buckets/": {"metrics": parts}}).section("answer/test").blocks
    assert isinstance(notes, Notes)
    assert not any(line.startswith("Hardest") for line in notes.paragraphs)


def test_columns_are_named_after_the_studys_own_metrics(build: Build, spec: Spec) -> None:
    spec["metrics"] = [{"kind": "bleu", "lowercase": True}, {"kind": "chrf", "word_order": 2}]
    report = build()
    (length, _) = of(report, "buckets").tables
    titles = [column.title for column in length.columns]
    assert [title.split(",")[0] for title in titles] == [*["BLEU (lower-cased)"] * 2, *["chrF++"] * 2]
    beams = of(report, "beam_sizes")
    assert "BLEU (lower-cased)" in [column.title for column in beams.tables[-1].columns]
    assert "BLEU (lower-cased)" in json.dumps(vega_lite(beams.figures[0]))


def test_what_columns_mean_is_said_once_for_analyses_of_one_kind(build: Build, spec: Spec) -> None:
    spec["analyses"]["again"] = spec["analyses"]["calibration"]
    section = build().section("analyses/calibration")
    assert [block.key for block in section.blocks] == ["calibration", "again", "columns"]
    columns = section.blocks[-1]
    assert isinstance(columns, Facts)
    assert [fact.label for fact in columns.facts] == ["ECE", "accuracy", "confidence"]


def test_only_the_analyses_of_a_chosen_test_set_are_printed(build: Build, spec: Spec) -> None:
    spec["test_sets"]["other"] = spec["test_sets"]["test"] | {"seed": 9}
    spec["analyses"]["calibration"]["test_set"] = "other"
    report = build()
    assert "#### calibration" in to_markdown(report.only("other"))
    assert "#### calibration" not in to_markdown(report.only("test"))
    assert "### Calibration" not in to_markdown(report.only("test"))


def test_the_interval_of_a_difference_of_two_measures_covers_the_seeds(spec: Spec, build: Build) -> None:
    """Seeds of +6, -4 and +4 points have narrow intervals over segments each, and so has their mean."""
    spec["analyses"] = {"recall_at_size": spec["analyses"]["recall_at_size"]}
    spec["variants"]["softmax"]["seeds"] = [1, 2, 3]
    report = build(
        {
            f"recall_at_size/recall_at_size/softmax/{seed}": {
                "metrics": [
                    row(name, value, "k=10/sentence", low=value - 0.01, high=value + 0.01)
                    for name in ("recall_difference", "recall_nvs")
                ]
            }
            for seed, value in ((1, 0.06), (2, -0.04), (3, 0.04))
        }
    )
    cells = rows_of(of(report, "recall_at_size"))["softmax", "k=10, sentences"].cells
    seeds = float(stats.t.ppf(0.975, 2)) * float(np.std([0.06, -0.04, 0.04], ddof=1)) / 3**0.5
    half = (0.01**2 + seeds**2) ** 0.5
    difference, recall = cells["recall_difference"], cells["recall_nvs"]
    assert (difference.low, difference.high) == pytest.approx((0.02 - half, 0.02 + half))
    assert (recall.low, recall.high) == pytest.approx((0.01, 0.03)), (
        "over segments alone, beside its deviation"
    )


# ---------------------------------------------------------------- differences between rows


KINDS = ("beam_sizes", "search_errors")


@pytest.fixture
def seeded(spec: Spec, build: Build) -> Build:
    """`build` with these analyses alone, and three seeds of each variant."""
    spec["analyses"] = {kind: spec["analyses"][kind] for kind in KINDS}
    spec["variants"]["softmax"]["seeds"] = [1, 2, 3]
    return build


def table(report: Document, kind: str, key: str) -> Table:
    (found,) = [table for table in of(report, kind).tables if table.key == key]
    return found


def deltas(shown: Table, column: str) -> dict[str, Delta | None]:
    return {f"{row.name}, {row.setting}": row.cells[column].delta for row in shown.rows}


def delta_of(report: Document, against: str, column: str, name: str) -> Delta:
    """Of the beam sizes. `against`: "baselines" or "settings"."""
    delta = deltas(table(report, "beam_sizes", f"variant-beam-{against}"), column)[name]
    assert delta is not None
    return delta


def test_each_setting_is_compared_with_the_baselines_and_each_variant_with_beam_4(report: Document) -> None:
    between = table(report, "beam_sizes", "variant-beam-baselines")
    assert between.title == "Differences from softmax"
    assert [row.setting for row in between.rows] == [f"beam {w} against softmax" for w in (1, 4, 32, 128)]
    assert [row.against for row in between.rows] == [f"softmax, beam {w}" for w in (1, 4, 32, 128)]
    assert {row.name for row in between.rows} == {"scones"}
    over = table(report, "beam_sizes", "variant-beam-settings")
    assert over.title == "Differences from beam 4"
    of_bleu = deltas(over, "bleu")
    assert list(of_bleu) == [
        f"{name}, beam {width} against beam 4" for name in ("softmax", "scones") for width in (1, 32, 128)
    ]
    longer = delta_of(report, "baselines", "length_ratio", "scones, beam 32 against softmax")
    assert longer.value == pytest.approx(0.5)
    # p-values of a column are corrected together
    tests = [delta.p_values["bootstrap"] for delta in of_bleu.values() if delta is not None]
    assert [test.value for test in tests] == [0.2, 0.075, 0.025] * 2
    assert [test.corrected for test in tests] == holm([0.2, 0.075, 0.025] * 2)


def test_exact_search_has_no_errors_to_compare(report: Document) -> None:
    shown = table(report, "search_errors", "variant-search-settings")
    assert deltas(shown, "search_errors")["softmax, exact against beam 4"] is None
    assert deltas(shown, "bleu")["softmax, exact against beam 4"] is not None


def scored(subject: str, system: list[float], baseline: list[float]) -> dict[str, Any]:
    detail = {"p_value": 0.001, "p_two_sided": 0.001, "scores": {"system": system, "baseline": baseline}}
    return {"metrics": [row("delta", 2.0, subject, low=1.0, high=3.0, detail=detail)]}


BEAM_128 = "softmax, beam 128 against beam 4"
PAIRED = {"differences/beam_sizes/softmax": scored("bleu/128", [32, 37, 42], [30, 35, 40])}


def test_intervals_cover_the_seeds_of_both_as_between_systems(seeded: Build) -> None:
    changes = {"differences/beam_sizes/scones/softmax": scored("bleu/128", [32, 32, 32], [29, 30, 31])}
    delta = delta_of(seeded(changes), "baselines", "bleu", "scones, beam 128 against softmax")
    seeds = float(stats.t.ppf(0.975, 2)) / 3**0.5  # of 29, 30 and 31; three equal scores add nothing
    half = (1 + seeds**2) ** 0.5
    assert (delta.seeds_low, delta.seeds_high) == pytest.approx((2 - half, 2 + half), rel=1e-5)
    assert (delta.low, delta.high) == (1, 3)
    assert not delta.significant  # which it is over sentences


def test_over_settings_the_same_models_are_paired_by_seed(seeded: Build) -> None:
    delta = delta_of(seeded(PAIRED), "settings", "bleu", BEAM_128)
    assert (delta.seeds_low, delta.seeds_high) == pytest.approx((1, 3), rel=1e-5)
    assert delta.significant


def test_a_difference_of_two_near_zero_is_not_marked(seeded: Build) -> None:
    low = {"metrics": [row("bleu", 0.5, width) for width in (1, 4, 32, 128)]}
    delta = delta_of(seeded(PAIRED | {"beam_sizes/beam_sizes/softmax": low}), "settings", "bleu", BEAM_128)
    assert (delta.significant, delta.note) == (False, NO_MARK)


def test_a_comparison_that_failed_says_why(seeded: Build) -> None:
    failed = {"state": "failed", "error_kind": "deterministic", "error": "different numbers of segments"}
    report = seeded({"differences/beam_sizes/scones/softmax": failed})
    delta = delta_of(report, "baselines", "bleu", "scones, beam 4 against softmax")
    assert (delta.state, delta.note) == ("failed", "different numbers of segments")


def test_results_of_an_earlier_version_say_that_they_are_not_compared(database: Database, spec: Spec) -> None:
    fill_study(database, spec)
    with database.transaction() as writing:
        writing.execute(delete(StudyStep).where(StudyStep.node.startswith("differences/")))
    report = build_report(database, "teatime")
    for kind in KINDS:
        blocks = of(report, kind).section.blocks
        assert not [block for block in blocks if "Differences" in getattr(block, "title", "")]
        assert [block.paragraphs for block in blocks if isinstance(block, Notes)] == [(NOT_COMPARED,)]


def test_one_variant_alone_has_nothing_to_be_compared_with(build: Build, spec: Spec) -> None:
    alone = {"kind": "depth_limited", "test_set": "test", "lengths": [1, 2], "variants": ["softmax"]}
    spec["analyses"] = {"depth_limited": alone}
    blocks = of(build(), "depth_limited").section.blocks
    assert [block.key for block in blocks if isinstance(block, Table)] == ["variant-length"]
    assert not [block for block in blocks if isinstance(block, Notes)]
