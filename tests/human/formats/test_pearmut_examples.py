"""Campaigns in the shapes of the examples in Pearmut's repository: what is kept of them, and what is named.

Their texts and scores are made up here.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import find_format
from creamtea.human.formats.record import Content

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def item(name: str, *systems: str, **more: Any) -> dict[str, Any]:
    return {
        "item_id": name,
        "src": f"Tea {name}",
        "tgt": {one: f"Tee {name} {one}" for one in systems},
        **more,
    }


def rule(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"warning": "Look again.", "score": [low, high], **more}


def campaign(protocol: str, *documents: list[dict[str, Any]], **info: Any) -> dict[str, Any]:
    """Of one user."""
    known = {"assignment": "task-based", "protocol": protocol, **info}
    return {"info": known, "campaign_id": "tea", "data": [list(documents)]}


def answered(written: dict[str, Any], score: int | None = 50, **more: Any) -> list[dict[str, Any]]:
    """A line for each document."""
    parts = [("", written["data"][0]), ("welcome_", written.get("data_welcome", []))]
    return [
        {
            "annotation": [
                {one: {"score": score, "error_spans": [], **more} for one in part["tgt"]}
                if "tgt" in part
                else "yes"
                for part in document
            ],
            "actions": [],
            "item": document,
            "user_id": "ann",
            "item_i": f"{name}{number}" if name else number,
        }
        for name, documents in parts
        for number, document in enumerate(documents)
    ]


def read(
    folder: Path, written: dict[str, Any], lines: list[Any] | None = None, protocol: str | None = None
) -> tuple[Content, list[str]]:
    (folder / "tea.json").write_text(json.dumps(written, indent=1))
    lines = answered(written) if lines is None else lines
    (folder / "tea.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    facts = ImportFacts("tea", protocol, campaign_file=folder / "tea.json")
    content, not_kept = find_format("pearmut").read(folder / "tea.jsonl", facts, NOW)
    return content, [str(part) for part in not_kept]


def kinds(content: Content) -> dict[str, int]:
    found = [str(one.kind) for one in content.items]
    return {kind: found.count(kind) for kind in sorted(set(found))}


def test_instructions_and_settings_are_named(tmp_path: Path) -> None:
    """As contrastive.json and dynamic.json have them; of one item once, however often it was rated."""
    first = item("1", "A", "B", instructions="<b>Rate</b>", comment="draft")
    more = {"textfield": "hidden", "show_model_names": True, "dynamic_models": 2}
    written = campaign("ESA", [first, item("2", "A", "B", instructions="")], **more, shuffle=None)
    content, left = read(tmp_path, {**written, "token": "x", "show_progress": False}, answered(written) * 2)
    assert kinds(content) == {"rated": 4}
    assert left == [
        "instructions of items (1)",
        "values of 'comment' in items (1)",
        "settings of Pearmut: textfield, show_model_names, dynamic_models, show_progress (4)",
    ]


@pytest.mark.parametrize("usual", [True, False])
def test_choices_that_are_the_protocols_are_not_lost(tmp_path: Path, usual: bool) -> None:
    severities = ["Minor", "Major"] if usual else ["Neutral", "Minor", "Major", "Critical"]
    _, left = read(tmp_path, campaign("ESA", [item("1", "A")], mqm_severities=severities))
    assert left == ([] if usual else ["settings of Pearmut: mqm_severities (1)"])


def test_what_can_be_skipped_is_practice(tmp_path: Path) -> None:
    """The last document of tutorials/cesa_*.json has no rules: its outputs are of no system."""
    taught = item("1", "tutorial", skippable=True, validation={"tutorial": rule(90, 100, error_spans=[])})
    free = [item("2", "tutorial-A", "tutorial-B", skippable=True)]
    content, left = read(tmp_path, campaign("cESA", [taught], free, [item("3", "A", "B")]))
    assert kinds(content) == {"rated": 1, "tutorial": 1}
    assert content.systems == ("A", "B")
    assert left == ["answers to practice and checks that any answer passes (2)"]


def test_practice_alone_has_no_ratings(tmp_path: Path) -> None:
    """attention_checks.json, tutorials/esa_deen.json: it ended with a traceback."""
    checked = item("1", "A", "B", validation={"A": rule(80, 90, allow_skip=True), "B": rule(40, 60)})
    with pytest.raises(
        InputError, match=r"tea.jsonl: no ratings of systems in it; found practice and checks"
    ):
        read(tmp_path, campaign("ESA", [checked]))


def test_forms_are_counted_with_their_questions(tmp_path: Path) -> None:
    """user_info_form.json"""
    form = [{"text": "Welcome", "form": None}, {"text": "Age?", "form": "number"}]
    written = {**campaign("DA", [item("1", "A")]), "data_welcome": [form]}
    assert read(tmp_path, written)[1] == ["questions of forms (2)", "answers to forms (2)"]


def test_other_sliders_are_no_scores(tmp_path: Path) -> None:
    """likert_custom_scales.json, and xstsrp.json of a protocol that is none of Pearmut's."""
    sliders = [{"name": "Fluency", "min": 0, "max": 5, "step": 1}]
    written = campaign("DA", [item("1", "A")], sliders=sliders)
    lines = answered(written, None, sliders={"Fluency": 4})
    with pytest.raises(
        InputError, match=r"no ratings .* values of other scales .* settings of Pearmut: sliders"
    ):
        read(tmp_path, written, lines)
    written["info"]["protocol"] = "XSTSRP"
    with pytest.raises(InputError, match="protocol XSTSRP: answers given in Pearmut are of da, esa"):
        read(tmp_path, written, lines)
    with pytest.raises(InputError, match="values of other scales"):
        read(tmp_path, written, lines, "da")


def test_markup_in_texts_stays_as_it_is_written(tmp_path: Path) -> None:
    """html.json: places count every character of the text, those of tags too."""
    text = "<b>Tee</b> und <br> Milch\n<div>x</div>"
    written = campaign("ESA", [{"item_id": "1", "src": "<h1>Tea</h1>", "tgt": {"A": text}}])
    lines = answered(written)
    span = {"start_i": text.index("Milch"), "end_i": text.index("Milch") + 4, "severity": "minor"}
    lines[0]["annotation"][0]["A"]["error_spans"] = [span]
    content, left = read(tmp_path, written, lines)
    (only,) = content.items
    assert (only.source, only.outputs) == ("<h1>Tea</h1>", (text,))
    (score,) = content.answers[0].scores
    assert score.payload is not None
    (marked,) = score.payload["spans"]
    assert text[marked["start"] : marked["end"] + 1] == "Milch"
    assert left == []


def test_a_campaign_is_no_answers(tmp_path: Path) -> None:
    (tmp_path / "tea.json").write_text(json.dumps(campaign("ESA", [item("1", "A")]), indent=1))
    with pytest.raises(
        InputError, match=r"tea.json, line 1: a campaign of Pearmut, without answers: give them"
    ):
        find_format("pearmut").read(tmp_path / "tea.json", ImportFacts("tea", "esa"), NOW)


def test_answers_before_version_1_are_refused(tmp_path: Path) -> None:
    """data/outputs/annotation_demo_esa.jsonl"""
    old = {"user_id": "al", "item_i": 0, "annotation": {"A": {"score": 85, "error_spans": []}}, "comment": ""}
    with pytest.raises(
        InputError, match="line 1: annotation: found an object, as Pearmut wrote before version 1"
    ):
        read(tmp_path, campaign("ESA", [item("1", "A")]), [old])


def test_a_download_may_be_indented(tmp_path: Path) -> None:
    lines = answered(campaign("DA", [item("1", "A"), item("2", "A")]))
    (tmp_path / "tea.json").write_text(json.dumps({"tea": lines}, indent=1))
    content, left = find_format("pearmut").read(tmp_path / "tea.json", ImportFacts("tea", "da"), NOW)
    assert (kinds(content), left) == ({"rated": 2}, ())
