"""The report from a database filled by hand: complete, and with everything that can be missing."""

import json
from collections import Counter
from importlib.metadata import version
from typing import Any

import pytest
from analysis_rows import row
from blocks import cells, entries, facts, figures, notes, rows_of, systems
from sqlalchemy import select
from teatime_study import Build, Spec, fill_study

from creamtea.errors import InputError
from creamtea.orders.submission import UnreadableStudy
from creamtea.report.build import build_report
from creamtea.report.cells import NO_SPREAD, step_title
from creamtea.report.export import to_values
from creamtea.report.model import Document, PValue
from creamtea.report.text import STATE_WORDS
from creamtea.store.database import Database
from creamtea.store.queries import study_nodes
from creamtea.store.tables import StepRow, StudyRow

UNAVAILABLE = {"state": "failed", "error_kind": "unavailable", "error": "COMET: no model; fetch it once"}
FAILED = {"state": "failed", "error_kind": "deterministic", "error": "the loss is NaN at update 12"}


def test_rows_are_the_systems_the_best_first_with_the_baseline_marked(complete: Document) -> None:
    rows = systems(complete).rows
    assert [(row.name, row.baseline, row.description) for row in rows] == [
        ("scones-greedy", False, "SCONES α=0.5, greedy, bf16"),
        ("softmax-nvs", False, "softmax, NVS λ=0.5, greedy"),
        ("softmax-lexicon", False, "softmax, lexicon k=20, greedy"),
        ("softmax-greedy", True, "softmax, greedy"),
    ]
    section = complete.section("systems/test")
    assert section.facts == ("400 segments", "2 idioms", "baseline softmax-greedy")


def test_columns_are_the_metrics_and_what_is_measured_of_outputs(complete: Document) -> None:
    columns = systems(complete).columns
    assert [column.key for column in columns] == [
        *("bleu", "chrf", "comet", "recall_idiom", "recall_sentence", "selected_size", "length_ratio"),
        *("empty", "latency_p50", "latency_p90", "latency_p99"),
    ]
    assert [column.title for column in columns[:3]] == ["BLEU", "chrF", "COMET"]
    assert columns[0].signature.startswith("nrefs:1|case:mixed")


def test_a_score_has_its_interval_and_of_several_seeds_mean_and_deviation(complete: Document) -> None:
    rows = rows_of(complete)
    one, three = (rows[name].cells["bleu"] for name in ("softmax-greedy", "scones-greedy"))
    assert (one.value, one.low, one.high, one.deviation, one.seeds) == (30.5, 29.0, 32.25, None, 1)
    assert (one.state, one.note, one.delta) == ("ok", "", None)
    # 33.5, 34, 34.5
    assert (three.value, three.low, three.high, three.deviation, three.seeds) == (34.0, 32.5, 35.75, 0.5, 3)


def test_differences_are_corrected_over_the_systems_of_a_metric(complete: Document) -> None:
    deltas = {name: row.cells["bleu"].delta for name, row in rows_of(complete).items()}
    assert deltas.pop("softmax-greedy") is None
    assert {
        name: (d.value, d.p_values["bootstrap"], d.p_sacrebleu, d.p_values["randomization"].corrected)
        for name, d in deltas.items()
        if d is not None
    } == {
        "softmax-lexicon": (-1.0, PValue(0.2, 0.2), 0.1, 0.3),
        "softmax-nvs": (2.0, PValue(0.01, 0.03), 0.005, 0.016),
        "scones-greedy": (2.0, PValue(0.02, 0.04), 0.01, pytest.approx(0.0006)),
    }
    assert [name for name, d in deltas.items() if d is not None and d.significant] == ["softmax-nvs"]


def test_recall_sizes_and_outputs(complete: Document) -> None:
    rows = rows_of(complete)
    keys = ("recall_idiom", "recall_sentence", "selected_size", "length_ratio", "empty")
    assert [rows["softmax-nvs"].cells[key].value for key in keys] == [0.9, 0.95, 150.25, 0.987, 0.25]
    # nothing is left out of a full vocabulary: no step measures that
    assert [rows["scones-greedy"].cells[key].value for key in keys[:3]] == [1.0, 1.0, 4000.0]


def test_an_interval_without_width_is_none(build: Build) -> None:
    """Resamples of segments that are all right cannot differ, although other segments may be wrong."""
    flat = row("recall", 1.0, "sentence", low=1.0, high=1.0)
    changes = {
        "recall/softmax-nvs": {"metrics": [row("recall", 0.9, "idiom"), flat]},
        "score/softmax-nvs": {"metrics": [row("bleu", 100.0, low=100.0, high=100.0)]},
    }
    found = rows_of(build(changes))["softmax-nvs"].cells
    for cell in (found["recall_sentence"], found["bleu"]):
        assert (cell.low, cell.high, cell.note) == (None, None, NO_SPREAD)


def test_latency_is_a_share_of_the_baselines_and_an_untimed_system_says_so(complete: Document) -> None:
    rows = rows_of(complete)
    cells = [rows[name].cells["latency_p50"] for name in ("softmax-greedy", "softmax-lexicon", "softmax-nvs")]
    expected = [(30.0, 100.0), (20.0, pytest.approx(66.67, abs=0.01)), (10.0, pytest.approx(33.33, abs=0.01))]
    assert [(cell.value, cell.percents["softmax-greedy"].value) for cell in cells] == expected
    untimed = rows["scones-greedy"].cells["latency_p90"]
    assert (untimed.state, untimed.note) == ("absent", "the study does not time this system")


def test_corpora_training_and_provenance(complete: Document) -> None:
    (corpus,) = complete.table("corpora").rows
    assert corpus.cells["train_kept"].value == 11950
    dropped = {key: cell.value for key, cell in corpus.cells.items() if key.startswith("dropped")}
    by_reason = {"empty": 0, "too_long": 10, "ratio": 0, "duplicate": 40}
    assert dropped == {f"dropped_{reason}": count for reason, count in by_reason.items()}
    runs = complete.table("trainings").rows
    shown = [(run.name, run.setting) for run in runs]
    assert shown == [("softmax", "seed 1"), ("scones", "seed 1"), ("scones", "seed 2"), ("scones", "seed 3")]
    assert {name: cell.value for name, cell in runs[0].cells.items()} == {
        "updates": 2000,
        "dev_loss": 1.25,
        "dev_bleu": 31.0,
        "seconds": 318.25,
        "tokens_per_second": 6300.5,
        "parameters": 1.9e6,
        "left_out": 0,
    }
    known = facts(complete, "versions")
    assert known["seeds"] == ("softmax: 1", "scones: 1, 2, 3")
    assert known["hardware"] == ("training: cpu, 2 threads", "latency: a CPU")
    assert known["config hash"] == "c0ffee" * 10
    assert known["COMET on test"] == "model:tiny"
    assert "plug-ins" not in known
    assert entries(complete, "failures") == []


def test_trainings_show_the_score_by_which_their_model_is_selected(build: Build, spec: Spec) -> None:
    spec["variants"]["scones"]["training"] = {"select_by": "levenshtein"}
    distance = {"metrics": [row("dev_levenshtein", 0.07)]}
    table = build({"train/scones/": distance}).table("trainings")
    assert [column.title for column in table.columns[:4]] == [
        *("updates", "dev loss", "dev BLEU", "dev Levenshtein distance")
    ]
    softmax, scones = table.rows[0].cells, table.rows[1].cells
    assert (softmax["dev_bleu"].value, scones["dev_levenshtein"].value) == (31.0, 0.07)
    assert softmax["dev_levenshtein"].state == scones["dev_bleu"].state == "absent"
    assert scones["dev_bleu"].note == "scones is selected by levenshtein"


def test_plug_ins_and_trainings_whose_weights_a_resume_may_change_are_in_the_provenance(
    build: Build,
) -> None:
    changes = {
        "corpus/": {"facts": {"plugins": {"creamtea-lab": "1.0"}}},
        "train/scones/1": {"facts": {"plugins": {"creamtea-lab": "1.0", "another": "2.1"}}},
        "train/softmax": {"facts": {"device": "H200", "threads": 2, "deterministic": False}},
    }
    known = facts(build(changes), "versions")
    assert known["plug-ins"] == ("another 2.1", "creamtea-lab 1.0")
    assert known["hardware"][0] == "training: H200, 2 threads, not deterministic"
    assert "training: cpu, 2 threads" in known["hardware"]


def test_curves_of_training_and_recall(complete: Document) -> None:
    drawn = figures(complete)
    names = {(path, row["run"]) for path, one in drawn.items() if "learning" in path for row in one.rows}
    assert ("figures/learning/dev_bleu", "scones, seed 3") in names
    assert len(names) == 3 * 4
    for scope in ("sentence", "idiom"):
        groups = Counter(row["selection"] for row in drawn[f"figures/test/recall/{scope}"].rows)
        assert groups == {"lexicon": 2, "NVS, softmax": 1, None: 4}


def test_recall_curves_of_contexts_and_of_lexica_are_told_apart(build: Build, spec: Spec) -> None:
    plain = {"corpus": "toy", "subwords": "bpe", "objective": {"kind": "softmax"}}
    spec["corpora"]["idioms"] = spec["corpora"]["toy"] | {"seed": 7}
    spec["variants"]["adapted"] = plain | {"corpus": "idioms", "start_from": "softmax"}
    lexicon, alone = {"kind": "lexicon", "k": 20}, {"kind": "nvs", "context": "word"}
    spec["systems"] |= {
        "softmax-words": {"variant": "softmax", "selection": alone},
        "adapted-lexicon": {"variant": "adapted", "selection": lexicon},
    }
    del spec["latency"]
    spec["recall"] = {"batch": 16}
    empty = {"metrics": []}
    changes = {
        f"{kind}/{s}": empty for kind in ("score", "recall", "compare") for s in ("softmax-words", "adapted")
    }
    rows = figures(build(changes))["figures/test/recall/sentence"].rows
    groups = dict.fromkeys(row["selection"] for row in rows if row["selection"])
    selections = (
        "lexicon, toy/bpe",
        "NVS, softmax",
        "NVS word by word, softmax",
        "lexicon, idioms/bpe of toy",
    )
    assert list(groups) == [f"{name}{shared}" for name in selections for shared in ("", ", batches of 16")]


def test_json_has_everything_and_comes_back_equal(complete: Document) -> None:
    values = to_values(complete)
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert {"label": "started", "value": "2026-03-04T05:06:00+00:00", "code": False} in values["facts"]
    (table, *_) = values["sections"][1]["blocks"][0]["blocks"]
    assert (table["type"], table["key"]) == ("table", "systems")
    assert table["rows"][1]["cells"]["bleu"]["delta"]["p_values"]["bootstrap"] == {
        "value": 0.01,
        "corrected": 0.03,
    }


# ---------------------------------------------------------------- what is missing


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"": {"state": "pending"}},
        {"": {"state": "running"}},
        {"": {"state": "cancelled"}},
        {"": FAILED},
        {"": {**FAILED, "error": None}},
        {"": {"metrics": []}},
        {"score": UNAVAILABLE, "decode/scones": FAILED, "latency": {"state": "pending"}},
    ],
)
def test_no_cell_is_empty_without_saying_why(build: Build, changes: dict[str, Any]) -> None:
    for cell in cells(build(changes, state="failed")):
        assert cell.state in ("ok", "partial", *STATE_WORDS)
        assert (cell.value is not None) == (cell.state in ("ok", "partial"))
        assert cell.note or cell.state == "ok"
        if cell.delta is not None:
            assert cell.delta.note or cell.delta.value is not None


def test_an_unavailable_metric_says_why_and_leaves_the_others(build: Build) -> None:
    places = ("score/softmax-nvs/1/test/comet", "score/scones-greedy/2/test/comet")
    blocked = {**UNAVAILABLE, "error": f"did not run, because {places[0]} is unavailable"}
    report = build({**dict.fromkeys(places, UNAVAILABLE), "compare/softmax-nvs/test/comet": blocked})
    rows = rows_of(report)
    cell = rows["softmax-nvs"].cells["comet"]
    assert (cell.state, cell.value, cell.note) == ("unavailable", None, UNAVAILABLE["error"])
    assert (cell.delta.state, cell.delta.note) == ("unavailable", blocked["error"])
    assert rows["softmax-nvs"].cells["bleu"].state == "ok"
    # of three seeds two have a score: a mean of two that says so
    partial = rows["scones-greedy"].cells["comet"]
    assert (partial.state, partial.value, partial.seeds) == ("partial", 0.8125, 2)
    assert partial.note == f"2 of 3 seeds; seed 2: {UNAVAILABLE['error']}"
    failures = [entry.name for entry in entries(report, "failures")]
    assert failures == ["score: unavailable", "compare: unavailable"]


def test_the_gravest_state_and_every_reason_of_several_seeds(build: Build) -> None:
    changes = {f"decode/scones-greedy/{seed}": FAILED for seed in (2, 3)}
    changes["decode/scones-greedy/1"] = {"state": "pending"}
    cell = rows_of(build(changes, state="failed"))["scones-greedy"].cells["empty"]
    assert cell.state == "failed"
    waits = "not run yet (decode: scones-greedy, seed 1, test)"
    assert cell.note == f"seed 1: {waits}; seeds 2, 3: {FAILED['error']}"


def test_a_comparison_that_is_missing_counts_in_the_correction(build: Build) -> None:
    """Or a mark would go away once it is made."""
    rows = rows_of(build({"compare/scones-greedy/test/bleu": FAILED}, state="failed"))
    nvs, scones = (rows[name].cells["bleu"].delta for name in ("softmax-nvs", "scones-greedy"))
    assert nvs.p_values["bootstrap"].corrected == 0.03  # of three comparisons
    assert (scones.state, scones.note, scones.value) == ("failed", FAILED["error"], None)


def test_failures_name_causes_before_what_they_brought_down(build: Build) -> None:
    upstream = {"state": "failed", "error_kind": "upstream", "error": "did not run, because train/… failed"}
    failures = entries(
        build({"decode/softmax-greedy": upstream, "train/softmax": FAILED}, state="failed"), "failures"
    )
    assert [(failure.name, failure.passages[-1].text) for failure in failures] == [
        ("train: failed", "train: softmax, seed 1"),
        ("decode: not run: an earlier step failed", "decode: softmax-greedy, seed 1, test"),
    ]
    assert failures[0].passages[0].text == FAILED["error"]


def test_a_step_that_failed_when_it_ran_again_is_named_and_keeps_its_scores(build: Build) -> None:
    place = "score/softmax-nvs/1/test/comet"
    again = {**FAILED, "state": "succeeded", "error_kind": "infrastructure"}
    report = build({place: again}, state="failed")
    assert rows_of(report)["softmax-nvs"].cells["comet"].state == "ok"
    [failure] = entries(report, "failures")
    assert failure.name.startswith("score: failed when it ran again")
    assert failure.passages[0].text == FAILED["error"]


def test_a_study_without_idioms_latency_or_bleu_has_no_columns_for_them(build: Build, spec: Spec) -> None:
    spec["metrics"] = [{"kind": "chrf"}]
    del spec["latency"]
    report = build({"test_set": {"metrics": [row("segments", 400), row("idioms", 0)]}})
    keys = [column.key for column in systems(report).columns]
    assert keys == ["chrf", "recall_sentence", "selected_size", "empty"]
    assert notes(report, "reading/notes")[1] == "The study measures no latency."


def test_outcomes_that_as_many_steps_have_stand_by_their_names(build: Build) -> None:
    changes = {
        "decode/softmax-greedy": FAILED,
        "decode/softmax-lexicon": UNAVAILABLE,
        "decode/softmax-nvs": {"state": "failed", "error_kind": "upstream"},
        "train/softmax": {"state": "cancelled"},
    }
    (steps,) = (fact.value for fact in build(changes).facts if fact.label == "steps")
    assert steps == "42 succeeded, 1 cancelled, 1 failed, 1 not run, 1 unavailable"


def test_an_empty_database_says_what_to_do(database: Database) -> None:
    with pytest.raises(
        InputError, match=r"the database has no study yet; `creamtea run STUDY\.yaml` makes one"
    ):
        build_report(database, "demo")


def test_each_step_has_words_of_its_own(database: Database, spec: Spec) -> None:
    spec["systems"]["scones-greedy"]["more_baselines"] = ["softmax-nvs"]
    study = fill_study(database, spec)
    with database.session() as session:
        titles = {node.name: step_title(node) for node in study_nodes(session, study)}
    against = "compare: scones-greedy, against softmax"
    wanted = {
        "train/scones/2": "train: scones, seed 2",
        "score/softmax-nvs/1/test/bleu": "score: softmax-nvs, seed 1, test, bleu",
        "compare/scones-greedy/test/bleu": f"{against}-greedy, test, bleu",
        "compare/scones-greedy/test/bleu/softmax-nvs": f"{against}-nvs, test, bleu",
    }
    assert wanted.items() <= titles.items()
    assert len(set(titles.values())) == len(titles)


@pytest.mark.parametrize(
    ("plugins", "said"),
    [
        (
            {"tea-searches": "1.2"},
            r"study 'teatime' \(number 1\) was planned with the plug-in tea-searches .*not installed here",
        ),
        ({"numpy": "0.1"}, f"version {version('numpy')} is installed here"),
        ({}, "planned by creamtea 0.1"),
        ({"numpy": version("numpy")}, "planned by creamtea 0.1"),
    ],
)
def test_a_study_with_a_search_that_nobody_knows_names_its_plug_in_or_its_version(
    plugins: dict[str, str], said: str, database: Database
) -> None:
    fill_study(database)
    with database.transaction() as session:
        (study,) = session.scalars(select(StudyRow))
        system = {**study.spec["systems"]["scones-greedy"], "search": {"kind": "steeped"}}
        study.spec = {**study.spec, "systems": {**study.spec["systems"], "scones-greedy": system}}
        for step in session.scalars(select(StepRow).where(StepRow.kind == "decode")):
            step.resources = {**step.resources, "plugins": plugins}
    with pytest.raises(UnreadableStudy, match=f"(?s){said}"):
        build_report(database, "teatime")
