"""Differences over several seeds: which models a spread is over; tables of several studies."""

from typing import Any

import pytest
import scipy.stats
from analysis_rows import row
from blocks import facts, notes, rows_of
from table_rows import step_row
from teatime_study import Build, Spec, fill_study

from creamtea.errors import InputError
from creamtea.report import text
from creamtea.report.across_studies import INCOMPLETE, common_test_sets, compared_systems, comparison_report
from creamtea.report.build import build_report
from creamtea.report.export import table_csv
from creamtea.report.model import ONE_SEED, SEEDS_MISSING, Delta, Document, Table
from creamtea.stats.paired import holm
from creamtea.store.database import Database
from creamtea.store.tables import StudyRow, StudyStep


def scored(system: str, *values: float) -> dict[str, Any]:
    """BLEU of a system's outputs by seed."""
    return {
        f"score/{system}/{seed}/test/bleu": {"metrics": [row("bleu", value)]}
        for seed, value in enumerate(values, 1)
    }


def delta_of(report: Document, system: str, metric: str = "bleu") -> Delta:
    delta = rows_of(report)[system].cells[metric].delta
    assert delta is not None
    return delta


@pytest.fixture
def spec(spec: Spec) -> Spec:
    spec["variants"]["softmax"]["seeds"] = [1, 2, 3]
    return spec


def test_a_spread_over_the_seeds_of_two_variants(build: Build) -> None:
    changes = scored("softmax-greedy", 30, 31, 32) | scored("scones-greedy", 32, 32, 32)
    delta = delta_of(build(changes), "scones-greedy")
    seeds = float(scipy.stats.t.ppf(0.975, 2)) / 3**0.5  # of 30, 31 and 32; three equal scores add nothing
    half = (1 + seeds**2) ** 0.5
    assert (delta.seeds_low, delta.seeds_high) == pytest.approx((2 - half, 2 + half), rel=1e-5)
    assert (delta.low, delta.high) == (1, 3)
    assert delta.p_values["bootstrap"].corrected == 0.04
    assert not delta.significant  # which it is by both tests over segments


def test_a_difference_that_seeds_could_not_undo_is_marked(build: Build) -> None:
    changes = scored("softmax-greedy", 30, 30.1, 30.2) | scored("scones-greedy", 32, 32, 32.1)
    assert delta_of(build(changes), "scones-greedy").significant


SOFTMAX = {"corpus": "toy", "subwords": "bpe", "objective": {"kind": "softmax"}, "seeds": [1, 2, 3]}


@pytest.mark.parametrize(
    ("variant", "paired"),
    [
        (SOFTMAX | {"nvs": {}}, True),  # a lucky seed is lucky for both systems of a variant
        (SOFTMAX | {"start_from": "softmax"}, True),  # and for a model that was fine-tuned from it
        (SOFTMAX, True),  # a head for selection changes no translation model
        (SOFTMAX | {"nvs": {"detach": False}}, False),  # unless it trains the encoder
    ],
)
def test_seeds_of_the_same_translation_models_are_paired(
    variant: Spec, paired: bool, build: Build, spec: Spec
) -> None:
    """Better by 2 ± 1 with each seed, seeds 5 apart: between 1 and 3 where they are paired, and else wide."""
    own = variant != spec["variants"]["softmax"]
    spec["variants"] |= {"other": variant} if own else {}
    spec["systems"]["scones-greedy"] = {"variant": "other" if own else "softmax", "precision": "bf16"}
    changes = scored("softmax-greedy", 30, 35, 40) | scored("scones-greedy", 32, 37, 42)
    delta = delta_of(build(changes), "scones-greedy")
    if paired:
        assert (delta.seeds_low, delta.seeds_high) == pytest.approx((1, 3), rel=1e-5)
    else:
        assert delta.seeds_high - delta.seeds_low > 10


def test_with_one_seed_of_the_baseline_there_is_none_and_several_are_not_marked(complete: Document) -> None:
    one, three = (delta_of(complete, system) for system in ("softmax-nvs", "scones-greedy"))
    assert (one.value, one.seeds_low, one.seeds_high) == (2.0, None, None)
    assert max(p.corrected or 1.0 for p in three.p_values.values()) < 0.05
    assert (three.seeds_low, three.p_seeds, three.note) == (None, None, ONE_SEED)
    assert not three.significant


def test_p_values_with_seeds_are_corrected_over_the_comparisons_that_have_them(build: Build) -> None:
    changes = scored("softmax-greedy", 30, 31, 32) | scored("scones-greedy", 32, 32, 32)
    changes |= scored("softmax-nvs", 32, 33.5, 34) | scored("softmax-lexicon", 29, 30, 31.5)
    report = build(changes)
    deltas = [delta_of(report, system) for system in ("softmax-lexicon", "softmax-nvs", "scones-greedy")]
    p_values = [delta.p_seeds for delta in deltas]
    assert None not in p_values
    assert [delta.p_seeds_corrected for delta in deltas] == holm(p_values)
    assert deltas[1].p_seeds_corrected != deltas[1].p_seeds


def test_an_ensemble_is_one_system(build: Build, spec: Spec) -> None:
    assert "ensemble" not in notes(build(), "reading/notes")[0]
    spec["systems"]["scones-greedy"]["ensemble"] = True
    report = build()
    assert delta_of(report, "scones-greedy").seeds_low is None
    assert "An ensemble counts as one seed" in notes(report, "reading/notes")[0]


@pytest.mark.parametrize("of", ["softmax", "scones"])
def test_an_ensemble_is_unsure_as_one_seed_is_except_against_its_own_models(
    of: str, build: Build, spec: Spec
) -> None:
    """The baseline has three seeds of softmax."""
    spec["systems"]["scones-greedy"] = {"variant": of, "ensemble": True}
    delta = delta_of(build(), "scones-greedy")
    assert max(p.corrected or 1.0 for p in delta.p_values.values()) < 0.05
    assert (delta.significant, delta.note) == ((True, "") if of == "softmax" else (False, ONE_SEED))


def test_while_a_seed_has_no_score_there_is_none(build: Build) -> None:
    report = build({"score/softmax-greedy/3/test/bleu": {"metrics": []}})
    delta = delta_of(report, "scones-greedy")
    assert (delta.seeds_low, delta.significant, delta.note) == (None, False, SEEDS_MISSING)
    assert max(p.corrected or 0.0 for p in delta.p_values.values()) < 0.05
    assert delta_of(report, "scones-greedy", "chrf").seeds_low is not None


def test_it_is_shown_below_the_other_and_told_in_the_notes(build: Build) -> None:
    report = build(scored("softmax-greedy", 30, 35, 40) | scored("softmax-nvs", 32, 37, 42))
    table = report.table("systems/test/systems")
    cell = rows_of(report)["softmax-nvs"].cells["bleu"]
    found = text.shown(cell, table.columns[0]).change
    assert found == ("+2.0*", "[1.0, 3.0]", "p=0.030/0.016", "with seeds", "[1.0, 3.0]", "p<0.001")
    assert "both are below 0.05, and so is p “with seeds”. Where" in notes(report, "reading/notes")[0]
    heading = table_csv(table).splitlines()[0]
    assert {"bleu_delta_seeds_low", "bleu_delta_p_seeds_corrected"} <= set(heading.split(","))


FOUND = {
    **{"name": "delta", "subject": "bleu", "value": 2.0, "low": 1.0, "high": 3.0, "note": ""},
    "detail": {"p_two_sided": 0.5, "p_value": 0.5, "p_randomization": 0.5},
}


def compared_of(database: Database, *numbers: int) -> tuple[Any, str]:
    """Return the systems of studies with one common test set, compared, and the key of BLEU."""
    with database.session() as session:
        studies = [session.get_one(StudyRow, number) for number in numbers]
        ((key, common),) = common_test_sets(session, studies).items()
        compared = compared_systems(session, key, common)
    return compared, next(column.key for column in compared.table.columns if column.key.startswith("bleu"))


def test_two_studies_of_the_same_models_are_paired_by_them(database: Database, spec: Spec) -> None:
    first = fill_study(database, spec, scored("softmax-greedy", 30, 35, 40))
    # the same trainings with another search; and other trainings
    spec["systems"]["softmax-greedy"]["search"] = {"kind": "beam", "width": 4}
    changes = scored("softmax-greedy", 32, 37, 42) | scored("scones-greedy", 30, 35, 40)
    second = fill_study(database, spec | {"name": "again"}, changes)
    compared, bleu = compared_of(database, first, second)
    places = {(f"again: {system}", bleu): FOUND for system in ("softmax-greedy", "scones-greedy")}
    rows = {row.name: row for row in compared.against("teatime: softmax-greedy", places).rows}
    beam, scones = (rows[f"again: {name}"].cells[bleu].delta for name in ("softmax-greedy", "scones-greedy"))
    assert (beam.seeds_low, beam.seeds_high) == pytest.approx((1, 3), rel=1e-5)
    assert scones.seeds_low < -5


def test_across_studies_a_system_without_the_outputs_of_a_seed_says_so(
    database: Database, spec: Spec
) -> None:
    first = fill_study(database, spec)
    failed = {"state": "failed", "error_kind": "deterministic", "error": "a NaN in the logits"}
    spec["variants"]["softmax"]["objective"] = {"kind": "softmax", "label_smoothing": 0.2}
    second = fill_study(database, spec | {"name": "again"}, {"decode/softmax-greedy/2/test": failed})
    compared, bleu = compared_of(database, first, second)
    sound, lost = "again: scones-greedy", "again: softmax-greedy"
    for baseline, results in (("teatime: softmax-greedy", {(sound, bleu): FOUND}), (lost, {})):
        rows = {row.name: row for row in compared.against(baseline, results).rows}
        without = lost if results else sound
        assert rows[without].cells[bleu].delta == Delta("unavailable", INCOMPLETE)


def test_a_test_set_without_the_baseline_is_shown_and_not_tested(database: Database, spec: Spec) -> None:
    spec["test_sets"]["more"] = {"kind": "synthetic", "corpus": "toy", "lines": 5}
    for system in spec["systems"].values():
        system["test_sets"] = ["test"]
    spec["systems"]["scones-greedy"] |= {"test_sets": ["more"], "baseline": "scones-greedy"}
    studies = [fill_study(database, spec | {"name": name}) for name in ("one", "two")]
    with database.session() as session:
        rows = [session.get_one(StudyRow, number) for number in studies]
        report = comparison_report(session, rows, lambda _: FOUND)
        with pytest.raises(InputError, match="baseline nobody: no such system; there are one: scones-greedy"):
            comparison_report(session, rows, lambda _: FOUND, "nobody")
    tables = {section.title: section.blocks for section in report.sections if section.key[:7] == "systems"}
    assert any(row.baseline for row in tables["test"][0].rows)
    table, *_, notes = tables["more"]
    assert all(cell.delta is None for row in table.rows for cell in row.cells.values())
    assert notes.paragraphs[0].startswith("Nothing is tested here.")


# ---------------------------------------------------------------- tables of several studies


def compared(database: Database, *numbers: int) -> tuple[Document, Table]:
    """A report of studies with one common test set, and its table of systems."""
    with database.session() as session:
        studies = [session.get_one(StudyRow, number) for number in numbers]
        report = comparison_report(session, studies, lambda _: {"error": "not tested"})
    (table,) = (block for _, block in report.walk() if isinstance(block, Table) and block.key == "compared")
    return report, table


def test_lengths_in_other_tokens_are_another_column_and_each_is_explained(
    database: Database, spec: Spec
) -> None:
    first = fill_study(database, spec)
    bleu, *others = spec["metrics"]
    changes = {
        f"score/{system}/{seed}/test/bleu-intl": {
            "metrics": [row("bleu-intl", 20.0), row("length_ratio", 0.5)]
        }
        for system in spec["systems"]
        for seed in (1, 2, 3)
    }
    in_other_tokens = spec | {"name": "again", "metrics": [bleu | {"tokenize": "intl"}, *others]}
    second = fill_study(database, in_other_tokens, changes)
    report, table = compared(database, first, second)
    lengths = [column.key for column in table.columns if column.title == "length"]
    cells = {row.name: [row.cells[key].value for key in lengths] for row in table.rows}
    assert cells["teatime: scones-greedy"] == [0.987, None]
    assert cells["again: scones-greedy"] == [None, 0.5]
    meanings = facts(report, "columns")
    assert "BLEU (intl)" in meanings["length"]
    assert meanings["chrF"] == "nc:6"


def test_files_of_one_path_with_other_contents_and_versions_are_told(database: Database, spec: Spec) -> None:
    """Such studies have equal settings and unequal results."""
    first = fill_study(database, spec)
    second = fill_study(database, spec | {"name": "again"}, code_version="0.0.9")
    with database.transaction() as session:
        for number, digest in ((first, "a" * 64), (second, "b" * 64)):
            digests = {"train.en": digest, "train.de": "c" * 64, f"{number}.txt": digest}
            session.add(step_row(digest, "corpus", state="succeeded", params={"digests": digests}))
            session.flush()
            place = {"node": "corpus/other", "position": 99, "labels": {}}
            session.add(StudyStep(study_id=number, step_key=digest, **place))
    report, _ = compared(database, first, second)
    (settings,) = (block for _, block in report.walk() if isinstance(block, Table) and block.key == "specs")
    rows = {row.name: [cell.words for cell in row.cells.values()] for row in settings.rows}
    assert rows.pop("code version")[1] == "0.0.9"
    assert rows == {"contents of train.en (SHA-256)": ["a" * 12, "b" * 12]}


def test_pairs_that_one_study_tests_are_told_as_its_own_report_tests_them(
    database: Database, spec: Spec
) -> None:
    del spec["variants"]["softmax"]["seeds"]
    first = fill_study(database, spec)
    greedy = {"softmax-greedy": {"variant": "softmax"}}
    fewer = {"name": "again", "systems": greedy, "metrics": [{"kind": "bleu"}], "latency": None}
    worse = {"score/": {"metrics": [row("bleu", 20.0), row("length_ratio", 1.0)]}}
    report, _ = compared(database, first, fill_study(database, spec | fewer, worse))
    said = notes(report, "answer-0/sentences")
    (untold,) = (
        line for line in notes(build_report(database, first), "answer/test/sentences") if "Not told" in line
    )
    own = "teatime: softmax-nvs, teatime: softmax-lexicon, teatime: softmax-greedy"
    assert untold.replace("all others", own) in said
    assert "No test has compared it with: again: softmax-greedy." in said
    assert not any(line.startswith("Groups") for line in said)  # most pairs of two studies are not tested


@pytest.mark.parametrize(("segments", "told"), [(4, True), (30, False)])
def test_few_segments_are_told_of_several_studies_too(
    segments: int, told: bool, database: Database, spec: Spec
) -> None:
    changes = {"test_set/test": {"metrics": [row("segments", float(segments))]}}
    report, _ = compared(
        database, fill_study(database, spec, changes), fill_study(database, spec | {"name": "again"}, changes)
    )
    assert [warning.kind for warning in report.warnings()] == ["few-segments"] * told
