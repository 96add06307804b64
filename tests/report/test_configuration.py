"""The configuration: systems and variants in words, changes since another run, the YAML as run."""

import json
import re
from typing import Any

import pytest
import yaml
from teatime_study import SPEC, Build, Spec, fill_study

from creamtea.report.build import report_of
from creamtea.report.cells import StudyResults
from creamtea.report.configuration import describe_system, spec_table, without_secrets
from creamtea.report.export import to_values
from creamtea.report.html import to_html
from creamtea.report.markdown import to_markdown
from creamtea.report.model import Document, Facts, Notes, Texts
from creamtea.report.model_card import _data, _front_matter
from creamtea.store.database import Database
from creamtea.store.queries import find_study
from creamtea.study.spec import Study


def changes(report: Document) -> dict[str, dict[str, str]]:
    table = report.table("configuration/specs")
    return {row.name: {key: cell.words for key, cell in row.cells.items()} for row in table.rows}


def test_the_report_says_what_each_variant_is_and_has_the_yaml(
    tasted_report: Document, tasted_page: str
) -> None:
    section = tasted_report.section("configuration")
    variants, text = section.blocks
    assert section.folded
    assert isinstance(variants, Facts)
    assert isinstance(text, Texts)
    words = {fact.label: fact.value for fact in variants.facts}
    assert isinstance(words["scones"], tuple)
    assert words["scones"][0] == "SCONES α=0.5"
    assert words["scones"][1].startswith("Transformer: encoder_layers 3, decoder_layers 3, width 128")
    assert words["scones"][2:] == (
        "text: toy, subwords bpe",
        "batch: 4,096 target subwords",
        "learning rate 0.002, inverse sqrt, warm-up 400",
        "at most 100,000 updates, patience 5",
        "seeds 1, 2, 3",
    )
    (passage,) = text.entries[0].passages
    study = Study.model_validate(yaml.safe_load(passage.text))
    assert study == Study.model_validate(SPEC)
    for shown in (to_markdown(tasted_report), tasted_page):
        assert "Configuration" in shown
        assert "warm-up 400" in shown
        assert {"test_sets:", "lines: 4"} <= {line.strip() for line in shown.splitlines()}


def test_nobody_reads_the_secrets_of_a_studys_campaigns(build: Build, spec: Spec) -> None:
    """Readers of a report may be raters: they would be paid without rating."""
    for code in ("C0DE1", "C0DE2"):
        raters = {"completion_code": code, "contact": "dora@example.org", "instructions": "Read twice."}
        spec["campaigns"] = {"tea": {"test_set": "test", "systems": ["softmax-greedy"], "raters": raters}}
        report = build()
    for shown in (to_markdown(report), to_html(report), json.dumps(to_values(report))):
        assert "Read twice." in shown
        assert not re.search("C0DE|dora@", shown)


def test_a_block_with_the_name_of_a_secret_is_none() -> None:
    kept, given = without_secrets(
        {"systems": {"contact": {"search": "greedy"}}, "raters": {"contact": "dora"}}
    )
    assert kept == {"systems": {"contact": {"search": "greedy"}}, "raters": {"contact": ""}}
    assert given == ["raters.contact"]


def test_a_later_run_of_the_same_name_says_what_changed(build: Build, database: Database, spec: Spec) -> None:
    first = build()
    assert not changed(first)
    spec["variants"]["scones"]["training"] = {"warmup": 7}
    spec["systems"]["softmax-greedy"]["search"] = {"kind": "beam", "width": 4}
    spec["description"] = "another"  # changes no result
    report = build()
    found = changes(report)
    assert found["variants.scones.training.warmup"] == {f"number {first.number}": "400", "this run": "7"}
    assert all(path.startswith(("variants.scones", "systems.softmax-greedy")) for path in found)
    (_, notes, _) = build().section("configuration").blocks
    assert isinstance(notes, Notes)
    assert "the same as in the earlier run" in notes.paragraphs[0]
    with database.session() as session:  # a bundle has no other submissions
        assert not changed(report_of(session, find_study(session, "teatime"), alone=True))


def changed(report: Document) -> bool:
    return any(block.key in ("specs", "changes") for block in report.section("configuration").blocks)


def test_settings_in_which_studies_differ_are_found_at_any_depth() -> None:
    table = spec_table(
        {
            "a": {"name": "a", "x": {"y": [1, 2], "z": "same"}, "only": {"deep": {"k": 2, "seed": None}}},
            "b": {"name": "b", "x": {"y": [1], "z": "same"}},
            "c": {"name": "c", "x": {"y": [1], "z": "same"}},
        },
        "",
    )
    assert {row.name: [cell.words for cell in row.cells.values()] for row in table.rows} == {
        "x.y": ["[1, 2]", "[1]", "[1]"],
        "only": ["{deep: {k: 2}}", "–", "–"],
    }
    assert spec_table({"a": {"name": "a"}, "b": {"name": "b"}}, "") is None


def objective(kind: str, **settings: Any) -> dict[str, Any]:
    return {"objective": {"kind": kind, **settings}}


def search(kind: str, **settings: Any) -> dict[str, Any]:
    return {"search": {"kind": kind, **settings}}


def nvs(**settings: Any) -> dict[str, Any]:
    return {"selection": {"kind": "nvs", **settings}}


SMOOTHED = {"label_smoothing": 0.1}
MBR = {"samples": 16, "utility": "bleu", "temperature": 0.5}


@pytest.mark.parametrize(
    ("variant", "system", "words"),
    [
        ({}, {}, "softmax, greedy"),
        (objective("softmax", **SMOOTHED), {}, "softmax ε=0.1, greedy"),
        (objective("softmax", **SMOOTHED, smoothing="unigram"), {}, "softmax ε=0.1 unigram, greedy"),
        (objective("softmax", smoothing="unigram"), {}, "softmax, greedy"),
        (objective("scones", alpha=0.2, **SMOOTHED), {}, "SCONES α=0.2 λ=0.1, greedy"),
        (objective("entmax", alpha=1.25), {}, "1.25-entmax, greedy"),
        (objective("entmax", **SMOOTHED, smoothing="unigram"), {}, "1.5-entmax ε=0.1 unigram, greedy"),
        ({"architecture": {"preset": "base"}}, {}, "softmax, base, greedy"),
        ({"architecture": {"preset": "deep", "dropout": 0.3}}, {}, "softmax, deep (20+2 SSRU), greedy"),
        ({"architecture": {"kind": "ssru", "width": 256}}, {}, "softmax, 3+3 SSRU, width 256, greedy"),
        ({"start_from": "root"}, {}, "softmax, adapted from root, greedy"),
        ({"nvs": {}}, nvs(), "softmax, NVS λ=0.9, greedy"),
        ({"nvs": {}}, nvs(threshold=0.99, context="word"), "softmax, NVS λ=0.99 word by word, greedy"),
        ({}, {"selection": {"kind": "lexicon", "k": 20}}, "softmax, lexicon k=20, greedy"),
        ({}, search("beam", width=5) | {"precision": "int8"}, "softmax, beam 5 / length^1, int8"),
        ({}, search("beam", length_normalization=0.6), "softmax, beam 4 / length^0.6"),
        ({}, search("exact"), "softmax, exact"),
        ({}, search("exact", depth=3), "softmax, exact up to 3 subwords"),
        ({}, search("sample", top_k=10), "softmax, sample top-10"),
        ({}, search("mbr", **MBR), "softmax, MBR of 16 samples T=0.5 by BLEU"),
    ],
)
def test_systems_in_words(variant: dict[str, Any], system: dict[str, Any], words: str, spec: Spec) -> None:
    plain = {"corpus": "toy", "subwords": "bpe", "objective": {"kind": "softmax"}}
    spec |= {
        "variants": {"root": plain, "one": {**plain, **variant}},
        "systems": {"one": {"variant": "one", **system}},
        "baseline": "one",
        "latency": None,
    }
    assert describe_system(Study.model_validate(spec), "one") == words


def test_an_architecture_that_all_variants_have_is_not_repeated(spec: Spec) -> None:
    for variant in spec["variants"].values():
        variant["architecture"] = {"preset": "base"}
    assert describe_system(Study.model_validate(spec), "softmax-greedy") == "softmax, greedy"


# ---------------------------------------------------------------- the first lines of a model's card


def test_the_data_of_a_fine_tuned_model_are_all_that_it_was_trained_on(
    database: Database, spec: Spec
) -> None:
    spec["corpora"]["idioms"] = {"kind": "synthetic", "seed": 7}
    plain = {"subwords": "bpe", "objective": {"kind": "softmax"}}
    spec["variants"]["adapted"] = {**plain, "corpus": "idioms", "start_from": "softmax"}
    spec["systems"]["scones-greedy"] = {"variant": "adapted"}
    study = fill_study(database, spec)
    with database.session() as session:
        material = StudyResults(session, study, Study.model_validate(spec))
        corpora, trainings = _data(material, "scones-greedy", 1)
        own = _data(material, "softmax-greedy", 1)
        assert [[row.name for row in block.rows] for block in own] == [["toy"], ["softmax"]]  # type: ignore[attr-defined]
    assert {row.name for row in corpora.rows} == {"toy", "idioms"}
    assert {row.name for row in trainings.rows} == {"softmax", "adapted"}


@pytest.mark.parametrize("pair", [("en", "no"), ("de", "de"), ("zh-Hant", "no")])
def test_languages_are_texts(pair: tuple[str, str]) -> None:
    lines = _front_matter("ctranslate2", pair).strip("-\n")
    assert yaml.safe_load(lines)["language"] == list(dict.fromkeys(pair))
