"""What came out: the first block of a report says what its tables show."""

import itertools
import re
from copy import deepcopy
from dataclasses import replace

import pytest
from blocks import in_terminal, systems
from teatime_study import SPEC, Build, Spec, latency_rows

from creamtea.contract.step import Column
from creamtea.report.answer import REVERSIBLE, TITLE, _listed, comparison_answer
from creamtea.report.export import to_values
from creamtea.report.markdown import to_markdown
from creamtea.report.model import ONE_SEED, Cell, Delta, Document, Figure, Notes, Row, Table
from creamtea.report.tables import clusters, ranked, wins


def sentences(report: Document) -> tuple[str, ...]:
    notes, *_ = report.section("answer/test").blocks
    assert isinstance(notes, Notes)
    return notes.paragraphs


def test_the_answer_says_what_the_tables_show(tasted_report: Document) -> None:
    reason = ONE_SEED.removeprefix("not marked: ")
    assert sentences(tasted_report) == (
        "scones-greedy has the highest score: 34.0 BLEU [32.5, 35.8]; "
        "+2.0 BLEU [1.0, 3.0] against the baseline softmax-greedy.",
        f"Not told apart from it ({reason}): all others.",
        "Better than the baseline softmax-greedy: softmax-nvs.",
        "Scores are means over 1 to 3 trainings, as many as a variant has.",
        "People, against softmax-greedy: undecided: softmax-nvs; worse: softmax-lexicon "
        "(120 of 120 item ratings (100 %) by 2 raters).",
        "Fastest: softmax-nvs (10.0 ms per sentence; 33 % [31, 36] of softmax-greedy); its quality is "
        "−1.5 BLEU [−2.5, −0.5] against scones-greedy.",
        "Idiom recall in context: softmax-lexicon 60.0 % [55.0, 64.0]; softmax-nvs 90.0 % [85.0, 94.0].",
    )


def test_a_mean_without_all_trainings_names_its_systems(build: Build) -> None:
    report = build({"score/scones-greedy/2/test/bleu": {"state": "failed", "metrics": []}}, state="failed")
    told = "Scores are means over 1 to 2 trainings; not all trainings of scones-greedy have a score."
    assert told in sentences(report)


def test_an_ensembles_score_is_not_called_a_mean(build: Build, spec: Spec) -> None:
    spec["systems"]["scones-greedy"]["ensemble"] = True
    assert not [told for told in sentences(build()) if "trainings" in told]


@pytest.fixture(scope="module")
def one_seed(shared_report: Build) -> Document:
    spec = deepcopy(SPEC)
    for variant in spec["variants"].values():
        variant["seeds"] = [1]
    return shared_report(spec)


def test_the_best_is_told_apart_from_others_by_tests_of_all_pairs(one_seed: Document) -> None:
    told = sentences(one_seed)
    assert told[:5] == (
        "scones-greedy has the highest score: 33.5 BLEU [32.0, 35.2]; +2.0 BLEU [1.0, 3.0] (significant) "
        "against the baseline softmax-greedy.",
        "Not told apart from it: softmax-nvs.",
        "It is better than softmax-lexicon and softmax-greedy.",
        "Also better than the baseline softmax-greedy: softmax-nvs.",
        REVERSIBLE,
    )
    # the difference from the baseline is that of the table: all pairs have other resamples and corrections
    (best,) = [row for row in systems(one_seed).rows if row.name == "scones-greedy"]
    delta = best.cells["bleu"].delta
    assert f"+{delta.value:.1f} BLEU [{delta.low:.1f}, {delta.high:.1f}] (significant)" in told[0]


@pytest.mark.parametrize(
    ("score_of_c", "first"),
    [(35.0, "b has the lowest score: 30.0 TER."), (30.0, "b has, like c, the lowest score: 30.0 TER.")],
)
def test_of_errors_the_lowest_score_is_the_best(score_of_c: float, first: str) -> None:
    column = Column("ter", "TER", 1, "lower", group="quality")
    rows = tuple(
        Row(name, {"ter": Cell("ok", value=value)}, baseline=name == "a", against="" if name == "a" else "a")
        for name, value in (("a", 40.0), ("b", 30.0), ("c", score_of_c))
    )
    notes = comparison_answer(Table("systems", "", "system", (column,), rows), {}, ["a", "b", "c"])
    assert notes.paragraphs[0] == first


def test_of_two_systems_the_difference_is_said_once(build: Build, spec: Spec) -> None:
    spec["variants"]["scones"]["seeds"] = spec["variants"]["softmax"]["seeds"] = [1]
    spec["systems"] = {name: spec["systems"][name] for name in ("softmax-greedy", "scones-greedy")}
    del spec["latency"]
    assert sentences(build()) == (
        "scones-greedy has the highest score: 33.5 BLEU [32.0, 35.2]; +2.0 BLEU [1.0, 3.0] (significant) "
        "against the baseline softmax-greedy.",
        REVERSIBLE,
    )


def test_a_matrix_has_every_two_systems_with_wins_and_clusters(one_seed: Document) -> None:
    table = one_seed.table("systems/test/pairs")
    assert [row.name for row in table.rows] == [row.name for row in systems(one_seed).rows]
    numbers = {row.name: (row.cells["cluster"].value, row.cells["wins"].value) for row in table.rows}
    assert numbers == {
        "scones-greedy": (1, 2),
        "softmax-nvs": (1, 1),
        "softmax-lexicon": (1, 0),
        "softmax-greedy": (1, 0),
    }
    first, *_, last = table.rows
    ours, theirs = first.cells["against_softmax-greedy"], last.cells["against_scones-greedy"]
    assert (ours.words, theirs.words) == ("better", "worse")
    assert theirs.delta == ours.delta.scaled(-1)
    assert (theirs.delta.value, theirs.delta.low, theirs.delta.high) == (-3.5, -4.5, -2.5)
    # Holm's correction is over the six pairs
    assert {p.corrected for p in ours.delta.p_values.values()} == {0.006}


def test_a_cluster_ends_where_all_above_beat_all_below() -> None:
    metric = Column("m", "m", 1, "higher")
    names = ["a", "b", "c", "d"]
    for beaten in itertools.product((False, True), repeat=6):
        tested = {}
        for (one, other), won in zip(itertools.combinations(names, 2), beaten, strict=True):
            tested[one, other] = Delta("ok", value=1.0, significant=won)
            tested[other, one] = tested[one, other].scaled(-1)
        ends = [
            all(wins(one, other, tested, metric) for one in names[:at] for other in names[at:])
            for at in range(1, 4)
        ]
        assert clusters(names, tested, metric) == [1 + sum(ends[:at]) for at in range(4)]


def test_a_study_without_tests_of_all_pairs_says_what_was_not_tested(build: Build, spec: Spec) -> None:
    report = build({"pairs/": {"state": "pending", "metrics": []}})
    assert "No test has compared it with: softmax-nvs, softmax-lexicon." in sentences(report)
    assert not any(path.endswith("/pairs") for path, _ in report.walk())


def test_times_that_may_be_the_same_are_no_order(build: Build) -> None:
    times = [10.0, 10.04, 30.0]  # the first two cannot be told apart: 100 % of each other
    rows = [
        row for name in ("latency_p50", "latency_p90", "latency_p99") for row in latency_rows(name, times)
    ]
    told = sentences(build({"latency": {"metrics": rows}}))
    (speed,) = (sentence for sentence in told if sentence.startswith("Fastest"))
    assert speed.startswith(
        "Fastest: softmax-greedy (10.0 ms per sentence); not told apart from it: softmax-lexicon"
    )


def test_times_beside_the_baselines_may_be_the_same(build: Build) -> None:
    """Without the baseline's, the times of the other two are 98 to 103 % of each other."""
    rows = [
        row
        for name in ("latency_p50", "latency_p90", "latency_p99")
        for row in latency_rows(name, [30, 10.1, 10])
    ]
    told = sentences(build({"latency": {"metrics": rows}}))
    assert any("softmax-greedy); not told apart from it: softmax-lexicon" in sentence for sentence in told)


def test_nothing_is_said_of_scores_that_are_not_there(build: Build) -> None:
    report = build({"score/": {"state": "pending", "metrics": []}})
    assert sentences(report)[0] == "No system has a BLEU score yet."


def test_of_a_cancelled_study_that_comes_first(build: Build) -> None:
    cancelled = {"state": "cancelled", "metrics": []}
    report = build(dict.fromkeys(("score/", "compare/", "pairs/"), cancelled))
    told, *_ = sentences(report)
    (missing,) = report.section("missing").blocks
    assert [entry.name for entry in missing.entries] == ["score, compare, pairs: cancelled"]
    cells = [row.cells["bleu"].note for row in systems(report).rows]
    assert len({note.rpartition(": ")[2] for note in cells}) == 1
    assert re.fullmatch(r"Cancelled: \d+ steps did not run to the end\.", told)


def test_of_a_failed_study_the_first_failure_comes_first(build: Build) -> None:
    failed = {"state": "failed", "error_kind": "deterministic", "error": "the loss is NaN.\nTraceback"}
    upstream = {"state": "failed", "error_kind": "upstream", "error": "train failed", "metrics": []}
    later = dict.fromkeys(("decode/", "score/", "compare/", "pairs/", "recall/", "latency"), upstream)
    failure, quality, *_ = sentences(build({"train/": failed, **later}))
    assert failure == "Failed: train: softmax, seed 1: the loss is NaN."
    assert quality == "No system has a BLEU score."


def test_of_many_names_a_sentence_has_the_first() -> None:
    names = [f"system-{number}" for number in range(60)]
    assert _listed(names) == f"{', '.join(names[:6])} and 54 more"
    assert _listed(names, 60) == "all others"
    assert _listed(names[:8], 60, " and ") == f"{', '.join(names[:7])} and system-7"
    assert _listed(names[:1]) == "system-0"


def test_the_picture_has_the_best_system_first_and_marks_the_baseline(tasted_report: Document) -> None:
    picture = tasted_report.section("answer/test").blocks[1]
    assert isinstance(picture, Figure)
    found = picture.spec["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert found == ["scones-greedy", "softmax-nvs", "softmax-lexicon", "softmax-greedy (baseline)"]
    cells = {row.name: row.cells["bleu"] for row in systems(tasted_report).rows}
    for row in picture.rows:
        cell = cells[row["system"]]
        assert (row["value"], row["low"], row["high"]) == (cell.value, cell.low, cell.high)
    assert [row["system"] for row in picture.rows if row["baseline"]] == ["softmax-greedy"]


def test_the_picture_names_what_has_no_score(build: Build) -> None:
    report = build({"score/scones-greedy": {"state": "pending", "metrics": []}})
    picture = report.section("answer/test").blocks[1]
    assert isinstance(picture, Figure)
    assert picture.missing == ("scones-greedy (pending)",)
    assert "scones-greedy" not in {row["system"] for row in picture.rows}


def test_every_printer_begins_with_the_answer(tasted_report: Document, tasted_page: str) -> None:
    for shown in (in_terminal(tasted_report, 180), to_markdown(tasted_report), tasted_page):
        assert 0 < shown.index(TITLE) < shown.index("has the highest score") < shown.index("0.8125")
    assert to_values(tasted_report)["sections"][0]["key"] == "answer"


def test_the_table_has_the_best_system_first_by_a_metric_that_may_count_errors() -> None:
    def row(name: str, value: float | None) -> Row:
        return Row(name, {"m": Cell("ok", value=value)})

    rows = (row("none", None), row("b", 2.0), row("human", 9.0), row("a", 1.0))
    higher = Table("t", "", "system", (Column("m", "m", 1, "higher"),), rows)
    assert [own.name for own in ranked(higher, {"human"}).rows] == ["b", "a", "human", "none"]
    lower = replace(higher, columns=(Column("m", "m", 1, "lower"),))
    assert [own.name for own in ranked(lower, {"human"}).rows] == ["a", "b", "human", "none"]


def test_a_campaigns_own_report_begins_with_what_people_say(tasting: Document) -> None:
    notes, *_ = tasting.sections[0].blocks
    assert isinstance(notes, Notes)
    first, unbeaten, verdicts = notes.paragraphs
    assert first.startswith("People rated softmax-")
    assert unbeaten.endswith(" (WMT's rule for ranks).")
    assert "worse: softmax-lexicon" in verdicts
