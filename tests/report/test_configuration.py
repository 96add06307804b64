"""The configuration in the report: variants in words, what differs from another run, and the YAML as run."""

from __future__ import annotations

from typing import Any

import yaml
from teatime_study import SPEC, Fill

from creamtea.report.build import build_report, report_of
from creamtea.report.configuration import spec_table
from creamtea.report.html import to_html
from creamtea.report.markdown import to_markdown
from creamtea.report.model import Document, Facts, Notes, Texts
from creamtea.store.database import Database
from creamtea.store.queries import find_study
from creamtea.study.spec import Study


def changes(report: Document) -> dict[str, dict[str, str]]:
    table = report.table("configuration/specs")
    return {row.name: {key: cell.words for key, cell in row.cells.items()} for row in table.rows}


def test_the_report_says_what_each_variant_is_and_has_the_yaml(filled: Database, fill: Fill) -> None:
    fill(filled)
    report = build_report(filled, "teatime")
    section = report.section("configuration")
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
    for shown in (to_markdown(report), to_html(report)):
        assert "Configuration" in shown
        assert "warm-up 400" in shown
        assert {"test_sets:", "lines: 4"} <= {line.strip() for line in shown.splitlines()}


def test_a_later_run_of_the_same_name_says_what_changed(
    filled: Database, fill: Fill, spec: dict[str, Any]
) -> None:
    first = fill(filled)
    assert not changed(build_report(filled, "teatime"))
    spec["variants"]["scones"]["training"] = {"warmup": 7}
    spec["systems"]["softmax-greedy"]["search"] = {"kind": "beam", "width": 4}
    spec["description"] = "another"  # changes no result
    fill(filled, spec)
    report = build_report(filled, "teatime")
    found = changes(report)
    assert found["variants.scones.training.warmup"] == {f"number {first}": "400", "this run": "7"}
    assert all(path.startswith(("variants.scones", "systems.softmax-greedy")) for path in found)
    fill(filled, spec)
    (_, notes, _) = build_report(filled, "teatime").section("configuration").blocks
    assert isinstance(notes, Notes)
    assert "is that of the earlier run" in notes.paragraphs[0]
    with filled.session() as session:  # a bundle has no other submissions
        assert not changed(report_of(session, find_study(session, "teatime"), alone=True))


def changed(report: Document) -> bool:
    return any(block.key in ("specs", "changes") for block in report.section("configuration").blocks)


def test_settings_in_which_studies_differ_are_found_at_any_depth() -> None:
    table = spec_table(
        {
            "a": {"name": "a", "x": {"y": [1, 2], "z": "same"}, "only": {"deep": None}},
            "b": {"name": "b", "x": {"y": [1], "z": "same"}},
            "c": {"name": "c", "x": {"y": [1], "z": "same"}},
        },
        "",
    )
    assert table is not None
    assert {row.name: [cell.words for cell in row.cells.values()] for row in table.rows} == {
        "x.y": ["[1, 2]", "[1]", "[1]"],
        "only": ['{"deep": null}', "–", "–"],
    }
    assert spec_table({"a": {"name": "a"}, "b": {"name": "b"}}, "") is None
