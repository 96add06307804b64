"""Several baselines: of the latency, of systems by themselves; and what is significant by which test."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from math import exp
from typing import Any

import pytest
from analysis_rows import row
from blocks import figure, notes, rows_of
from teatime_study import SPEC, Build, Spec, latency_rows

from creamtea.report import text
from creamtea.report.cells import NO_SPREAD, correct
from creamtea.report.model import Delta, Document, Percent, PValue

PERCENTILES = ("latency_p50", "latency_p90", "latency_p99")


def timed(*names: str, **detail: int) -> list[dict[str, Any]]:
    """Rows of the three systems' times, with more detail."""
    times = [30.0, 20.0, 10.0]
    return [row | {"detail": row["detail"] | detail} for name in names for row in latency_rows(name, times)]


def test_latency_is_a_percentage_of_each_baseline(build: Build, spec: Spec) -> None:
    spec["latency"]["baselines"] = ["softmax-greedy", "softmax-lexicon"]
    report = build()
    nvs = rows_of(report)["softmax-nvs"].cells["latency_p50"]  # 10 ms; the baselines 30 and 20 ms
    assert nvs.percents["softmax-lexicon"] == Percent(50.0, 48.0, 53.0)
    assert [text.percent(share) for share in nvs.percents.values()] == ["33 % [31, 36]", "50 % [48, 53]"]
    lexicon = rows_of(report)["softmax-lexicon"].cells["latency_p99"]  # 29 ms of 39 ms
    assert [text.percent(share) for share in lexicon.percents.values()] == ["74 % [72, 77]", "100 %"]
    assert "% of softmax-greedy / softmax-lexicon" in notes(report, "reading/notes")[1]
    drawn = figure(report, "quality/bleu")
    titles = [field["title"] for field in drawn.spec["layer"][2]["encoding"]["tooltip"]]
    assert titles[-2:] == ["of softmax-greedy", "of softmax-lexicon"]
    assert drawn.rows[2]["percent1"] == "50 % [48, 53]"
    # a step of an earlier version has no means, and nothing has further baselines
    assert not [path for path, _ in report.walk() if path.endswith(("/latency", "/further"))]


def test_a_baseline_without_a_time_is_left_out(build: Build, spec: Spec) -> None:
    spec["latency"]["baselines"] = ["scones-greedy", "softmax-greedy"]  # scones-greedy is not timed
    assert list(rows_of(build())["softmax-nvs"].cells["latency_p50"].percents) == ["softmax-greedy"]


def test_percentages_that_an_earlier_version_measured_have_no_interval(build: Build, spec: Spec) -> None:
    spec["latency"]["baselines"] = ["softmax-greedy", "softmax-lexicon"]
    old = [row | {"detail": {}} for row in timed(*PERCENTILES)]
    nvs = rows_of(build({"latency": {"metrics": old}}))["softmax-nvs"].cells["latency_p90"]
    assert [text.percent(share) for share in nvs.percents.values()] == ["33 %", "50 %"]


def test_the_time_of_captures_is_said(build: Build) -> None:
    """Each system's is in the detail of its rows."""
    rows = timed("latency_p50", sentences=20, capture_seconds=0.75)
    note = notes(build({"latency": {"metrics": rows}}), "reading/notes")[1]
    assert "; capturing CUDA graphs took 2.2 s, which are not counted." in note


@pytest.mark.parametrize(
    ("sentences", "batch_size", "told"),
    [(99, 1, "p99 of 99 sentences"), (100, 1, ""), (396, 4, "p99 of 99 batches"), (400, 4, "")],
)
def test_p99_of_few_times_is_nearly_their_maximum(
    build: Build, sentences: int, batch_size: int, told: str
) -> None:
    rows = timed("latency_p90", "latency_p99", sentences=sentences, batch_size=batch_size, repetitions=5)
    cells = rows_of(build({"latency": {"metrics": rows}}))["softmax-nvs"].cells
    assert cells["latency_p99"].note == (told and f"{told} is nearly the maximum")
    assert cells["latency_p90"].note == ""


def test_batches_have_a_speed_which_the_figure_shows(build: Build, spec: Spec) -> None:
    spec["latency"]["batch_size"] = 4
    speeds = [10.64, 5.0, 2.76]  # sentences per second
    rows = timed(*PERCENTILES, "latency_mean", "latency_mean_p90")
    report = build({"latency": {"metrics": rows + latency_rows("sentences_per_second", speeds)}})
    titles = {column.key: column for column in report.table("systems/test/systems").columns}
    assert titles["latency_p90"].note == "p90 of a batch of 4 sentences"
    assert titles["sentences_per_second"].better == "higher"
    greedy = rows_of(report)["softmax-greedy"].cells["sentences_per_second"]
    half = 0.75 / 10.64
    bounds = (10.64 * exp(-half), 10.64 * exp(half))  # 10.64 ± 0.75 on the scale of logarithms
    assert (greedy.value, greedy.low, greedy.high) == pytest.approx((10.64, *bounds))
    nvs = rows_of(report)["softmax-nvs"].cells["sentences_per_second"]
    assert [text.percent(share) for share in nvs.percents.values()] == ["26 % [24, 29]"]
    assert (
        "milliseconds per batch of 4 sentences, 1 thread, 20 sentences" in notes(report, "reading/notes")[1]
    )
    drawn = figure(report, "quality/bleu")
    assert [row["latency"] for row in drawn.rows[:3]] == speeds
    axis = drawn.spec["layer"][2]["encoding"]["x"]["title"]
    assert axis == "sentences per second (test)"
    means = report.table("latency")
    assert [row.name for row in means.rows] == ["softmax-greedy", "softmax-lexicon", "softmax-nvs"]
    cells = means.rows[1].cells
    assert (cells["latency_mean"].value, cells["latency_mean_p90"].value) == (20.0, 20.0)
    assert cells["latency_mean_p50"].state == "absent"  # this fixture has not measured it
    assert means.about.startswith("Of a batch of 4 sentences: means over repetitions")


MEASURED = (*PERCENTILES, "latency_mean", "sentences_per_second")


def test_what_was_timed_is_told_of_a_test_set_smaller_than_the_study_asks(build: Build, spec: Spec) -> None:
    spec["latency"] |= {"sentences": 128, "batch_size": 64, "repetitions": 5}
    rows = timed(*MEASURED, sentences=30, batch_size=64, repetitions=3, threads=2)
    report = build({"latency": {"metrics": rows}})
    note = notes(report, "reading/notes")[1]
    assert "per batch of 30 sentences, 2 threads, 30 sentences of test × 3 repetitions" in note
    columns = {column.key: column for column in report.table("systems/test/systems").columns}
    assert columns["latency_p50"].note == "p50 of a batch of 30 sentences"
    assert report.table("latency").about.startswith("Of a batch of 30 sentences")
    # an earlier version has stored intervals of medians over three repetitions
    cells = rows_of(report)["softmax-nvs"].cells
    assert (cells["latency_p50"].low, cells["latency_p50"].percents["softmax-greedy"].low) == (None, None)
    assert cells["latency_p50"].note == "no interval of the median of fewer than 5 repetitions"
    assert report.table("latency").rows[2].cells["latency_mean"].low is not None


def test_intervals_of_means_of_two_repetitions_stay_above_zero(build: Build) -> None:
    percents = [{"value": 190.5, "low": -11.0, "high": 392.0}] * 3
    rows = [
        row | {"low": row["value"] - 40, "high": row["value"] + 40, "detail": {"percent_of": percents}}
        for row in timed(*MEASURED)
    ]
    cells = build({"latency": {"metrics": rows}}).table("latency").rows[2].cells
    for key in ("latency_mean", "sentences_per_second"):
        assert cells[key].low == pytest.approx(10 * exp(-4))
        assert cells[key].percents["softmax-greedy"].low == pytest.approx(190.5 * exp(-201.5 / 190.5))


@pytest.fixture(scope="module")
def own(shared_report: Build) -> Document:
    """Two test sets; the lexicon is compared with NVS, which alone is on both."""
    spec = deepcopy(SPEC)
    spec["test_sets"]["other"] = spec["test_sets"]["test"] | {"seed": 9}
    for system in ("softmax-greedy", "scones-greedy"):
        spec["systems"][system]["test_sets"] = ["test"]
    spec["systems"]["softmax-lexicon"]["baseline"] = "softmax-nvs"
    spec["systems"]["softmax-nvs"]["baseline"] = "softmax-nvs"
    return shared_report(spec)


def test_a_table_has_the_systems_that_translate_its_test_set(own: Document) -> None:
    assert list(rows_of(own, "other")) == ["softmax-nvs", "softmax-lexicon"]
    # and those that are timed on it
    assert set(rows_of(own)) == {"softmax-greedy", "softmax-lexicon", "softmax-nvs", "scones-greedy"}


def test_differences_are_from_the_systems_own_baseline(own: Document) -> None:
    rows = rows_of(own)
    assert {name: (row.baseline, row.against) for name, row in rows.items()} == {
        "softmax-greedy": (True, ""),
        "softmax-lexicon": (False, "softmax-nvs"),
        "softmax-nvs": (True, ""),
        "scones-greedy": (False, "softmax-greedy"),
    }
    assert rows["softmax-lexicon"].description.endswith("; compared with softmax-nvs")
    assert "compared" not in rows["scones-greedy"].description
    assert rows["softmax-nvs"].cells["bleu"].delta is None
    assert rows["softmax-lexicon"].cells["bleu"].delta is not None
    assert notes(own, "reading/notes")[0].startswith(
        "Δ: difference from softmax-greedy, or from what the row names"
    )


def test_a_baseline_may_itself_be_compared_with_another(build: Build, spec: Spec) -> None:
    spec["systems"]["softmax-nvs"]["baseline"] = "softmax-lexicon"
    spec["systems"]["scones-greedy"]["baseline"] = "softmax-nvs"
    rows = rows_of(build())
    assert {name: row.against for name, row in rows.items()} == {
        "softmax-greedy": "",
        "softmax-lexicon": "softmax-greedy",
        "softmax-nvs": "softmax-lexicon",
        "scones-greedy": "softmax-nvs",
    }
    assert [name for name, row in rows.items() if row.baseline] == ["softmax-greedy"]


def test_further_comparisons_have_a_table_and_are_corrected_with_the_others(build: Build, spec: Spec) -> None:
    spec["systems"]["scones-greedy"]["more_baselines"] = ["softmax-nvs", "softmax-lexicon"]
    report = build()
    table = report.table("systems/test/further")
    assert [(row.name, row.setting, row.against) for row in table.rows] == [
        ("scones-greedy", "against softmax-nvs", "softmax-nvs"),
        ("scones-greedy", "against softmax-lexicon", "softmax-lexicon"),
    ]
    assert [column.key for column in table.columns] == ["bleu", "chrf", "comet"]
    own, cell = rows_of(report)["scones-greedy"].cells["bleu"], table.rows[0].cells["bleu"]
    assert (cell.value, cell.low, cell.high) == (own.value, own.low, own.high)
    assert text.shown(cell, table.columns[0]).change[:3] == ("+2.0", "[1.0, 3.0]", "p=0.080/0.001")
    assert own.delta.p_values["bootstrap"].corrected == pytest.approx(
        0.08
    )  # four times 0.02: the fifth test has 0.2
    assert "or from what the row names" in notes(report, "reading/notes")[0]


def test_of_a_further_comparison_the_seeds_are_known(build: Build, spec: Spec) -> None:
    beam = {"variant": "scones", "search": {"kind": "beam"}, "more_baselines": ["scones-greedy"]}
    spec["systems"]["softmax-lexicon"] = beam
    delta = build().table("further").rows[0].cells["bleu"].delta
    assert delta is not None  # the scores of both differ by the same with each seed
    assert (delta.seeds_low, delta.seeds_high) == pytest.approx((-2.0, 0.0))


def delta_with(**p_values: float) -> Delta:
    return Delta("ok", value=1.0, p_values={test: PValue(p) for test, p in p_values.items()})


def corrected(deltas: Sequence[Delta], test: str) -> list[float | None]:
    return [delta.p_values[test].corrected for delta in deltas]


def test_significant_is_what_is_so_by_both_tests_after_holm() -> None:
    pairs = [(0.01, 0.02), (0.02, 0.001), (0.001, 0.2)]
    deltas = correct([delta_with(bootstrap=p, randomization=q) for p, q in pairs])
    assert corrected(deltas, "bootstrap") == pytest.approx([0.02, 0.02, 0.003])
    assert corrected(deltas, "randomization") == pytest.approx([0.04, 0.003, 0.2])
    assert [d.significant for d in deltas] == [True, True, False]


@pytest.mark.parametrize(
    ("low", "high", "seeds", "bounds"),
    [
        (1.0, 1.0 + 1e-13, (), (None, None)),
        (1.0, 1.0, (1.0, 1.0), (None, None)),
        (1.0, 1.0, (-0.5, 2.5), (-0.5, 2.5)),
        (0.5, 1.5, (0.5, 1.5), (0.5, 1.5)),
    ],
)
def test_an_interval_without_width_is_none(
    low: float, high: float, seeds: Sequence[float], bounds: tuple[float | None, float | None]
) -> None:
    """Twenty copies of one sentence differ by the same in each resample: that says nothing of others."""
    seeds_low, seeds_high = seeds or (None, None)
    given = replace(
        delta_with(bootstrap=0.001), low=low, high=high, seeds_low=seeds_low, seeds_high=seeds_high
    )
    (delta,) = correct([given])
    assert delta.bounds == bounds
    assert delta.excludes_zero == (bounds[0] == 0.5)
    assert (delta.note == NO_SPREAD) == (low != 0.5)
    assert delta.significant


def test_comparisons_of_an_earlier_version_are_marked_by_the_bootstrap() -> None:
    (old,) = correct([delta_with(bootstrap=0.01)])
    assert (list(old.p_values), old.significant) == (["bootstrap"], True)
    (none,) = correct([Delta("pending", "not yet")])
    assert (none.p_values, none.significant) == ({}, False)
    one = delta_with(bootstrap=0.02, randomization=0.02)
    for state, family in (("running", 2), ("failed", 2), ("unavailable", 1), ("absent", 1)):
        found, _ = correct([one, Delta(state, "none")])
        assert [p.corrected for p in found.p_values.values()] == pytest.approx([0.02 * family] * 2)


def test_a_mean_over_idioms_is_a_column_where_an_idiom_is_repeated(build: Build, spec: Spec) -> None:
    def with_idioms(distinct: int) -> Document:
        detail = {"idioms": distinct}
        means = {"recall": 0.75, "recall_macro": 0.5}
        found = [row(name, value, "idiom", detail=detail) for name, value in means.items()]
        return build({"recall/": {"metrics": found}})

    # the test set has two
    assert "recall_macro" not in rows_of(with_idioms(2))["softmax-nvs"].cells
    spec["recall"] = {"k": [1]}
    spec["test_sets"]["test"]["seed"] = 9
    report = with_idioms(1)
    rows = rows_of(report)
    assert rows["softmax-nvs"].cells["recall_macro"].value == 0.5
    assert rows["softmax-greedy"].cells["recall_macro"].value == 1.0
    assert "2 idioms (1 different)" in report.section("systems/test").facts
