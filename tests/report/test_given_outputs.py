"""Reports on outputs that no model of the study made, alone and beside a trained system's, with ratings."""

from itertools import pairwise
from typing import Any

import pytest
from analysis_rows import row
from blocks import rows_of
from hypothesis import given
from hypothesis import strategies as st
from planned_studies import Result, planned_study
from rated_campaigns import rated_campaign

from creamtea.report.build import build_report
from creamtea.report.export import to_values
from creamtea.report.html import to_html
from creamtea.report.markdown import to_markdown
from creamtea.report.model import Document
from creamtea.report.terminal import make_console, render
from creamtea.store.database import Database
from creamtea.store.tables import Hypothesis, SegmentScore
from creamtea.study.plan import PlannedNode
from creamtea.words import Piece, differences

SEGMENTS = 6
GIVEN: dict[str, Any] = {
    "name": "given",
    "languages": {"source": "en", "target": "de"},
    "systems": {
        "gpt": {"outputs": {"test": "gpt.de"}},
        "nllb": {"outputs": {"test": "nllb.de"}},
        "human": {"reference": 1},
    },
    "test_sets": {"test": {"kind": "files", "source": "test.en", "target": "test.de"}},
    "baseline": "gpt",
    "metrics": [{"kind": "bleu"}],
}
MIXED: dict[str, Any] = GIVEN | {
    "name": "mixed",
    "corpora": {"grammar": {"kind": "synthetic"}},
    "subwords": {"joint": {}},
    "variants": {"softmax": {"corpus": "grammar", "subwords": "joint", "objective": {"kind": "softmax"}}},
    "systems": {
        **GIVEN["systems"],
        "beam+width=2": {"variant": "softmax", "search": {"kind": "beam", "width": 2}},
        "beam+width=4": {"variant": "softmax", "search": {"kind": "beam", "width": 4}},
    },
    "latency": {"test_set": "test", "baselines": ["beam+width=2"]},
}


def result(node: PlannedNode, **texts: str) -> Result:
    """`texts`: the first line of some outputs, by their place; those of others differ."""
    p = {"p_two_sided": 0.5, "p_value": 0.5, "p_randomization": 0.5}
    match node.node.split("/")[0]:
        case "test_set":
            return Result(metrics=[row("segments", SEGMENTS), row("idioms", 0)])
        case "outputs":
            text = Hypothesis(step_key=node.key, index=0, text=texts.get(node.node, node.node))
            return Result(metrics=[row("empty", 0.0)], texts=[text])
        case "decode":
            return Result(metrics=[row("empty", 0.0), row("selected_size", 99.0)])
        case "score":
            scores = [SegmentScore(step_key=node.key, index=n, value=float(n)) for n in range(SEGMENTS)]
            metrics = [row("bleu", 30.0, low=29.0, high=31.0), row("length_ratio", 1.0)]
            return Result(metrics=metrics, texts=scores)
        case "pairs":
            pairs = [(i, j) for j in range(len(node.labels["systems"])) for i in range(j)]
            return Result(
                metrics=[row("delta", 0.0, f"{i}/{j}", low=-1.0, high=1.0, detail=p) for i, j in pairs]
            )
        case "compare":
            return Result(metrics=[row("delta", 1.0, "bleu", low=0.0, high=2.0, detail=p)])
    return Result()


def report_of(database: Database, spec: dict[str, Any]) -> Document:
    """With a campaign of all its systems that are given."""
    study = planned_study(database, spec, result)
    items = [{"steps": {"anna": [10, 5, 20 + n], "ben": [9, 6 + n, 25]}} for n in range(SEGMENTS)]
    rated_campaign(database, items, study_id=study, systems=("gpt", "nllb", "human"), name=spec["name"])
    return build_report(database, study)


def test_a_report_of_files_alone_has_nothing_of_models(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    report = report_of(database, GIVEN)
    rows = rows_of(report)
    assert not {"selected_size", "recall_sentence"} & set(rows["gpt"].cells)
    assert (rows["gpt"].baseline, rows["nllb"].against, rows["human"].against) == (True, "gpt", "")
    assert rows["nllb"].cells["bleu"].delta is not None
    human = rows["human"].cells
    assert [human[name].state for name in ("bleu", "length_ratio", "empty")] == ["absent", "absent", "ok"]
    assert "only reference" in human["bleu"].note
    assert human["bleu"].delta is None
    keys = {path for path, _ in report.walk()}
    assert not {"provenance/trainings", "provenance/corpora", "figures/learning"} & keys
    assert any("people_and_metrics" in path for path in keys)
    render(report, make_console())
    for page in (capsys.readouterr().out, to_markdown(report), to_html(report), str(to_values(report))):
        assert "outputs from a file" in page
        assert "measures no latency" not in page


def test_beside_a_trained_system_what_models_have_is_absent_with_the_reason(database: Database) -> None:
    report = report_of(database, MIXED)
    rows = rows_of(report)
    cell = rows["nllb"].cells["latency_p50"]
    assert (cell.state, cell.value) == ("absent", None)
    assert "no model" in cell.note
    measured = {name for row in rows.values() for name in row.cells}
    assert not {"selected_size", "recall_sentence"} & measured, "no system selects subwords"
    assert any("parameters" in path for path, _ in report.walk())
    to_html(report)


@pytest.mark.parametrize("alike", [True, False])
def test_only_files_with_the_same_text_are_said_to_be_the_same(database: Database, alike: bool) -> None:
    """Their scores are the same here."""
    texts = {"outputs/gpt/test": "eins", "outputs/nllb/test": "eins" if alike else "zwei"}
    study = planned_study(database, GIVEN, lambda node: result(node, **texts))
    said = [warning.kind for warning in build_report(database, study).warnings()]
    assert ("same-outputs" in said) == alike


def test_of_given_outputs_nothing_is_trained_longer(database: Database) -> None:
    def near_zero(node: PlannedNode) -> Result:
        found = result(node)
        for metric in found.metrics:
            if metric["name"] in ("bleu", "length_ratio"):
                metric["value"] = 0.5
        return found

    report = build_report(database, planned_study(database, MIXED, near_zero))
    remedies = {
        ("nllb" in warning.line(), warning.kind): warning.remedy
        for warning in report.warnings()
        if warning.kind in ("near-zero", "length")
    }
    for kind in ("near-zero", "length"):
        assert "train" in remedies[False, kind]
        assert "train" not in remedies[True, kind]


# ---------------------------------------------------------------- differences between hypotheses


def marked(text: str, other: str) -> str:
    return "".join(f"<{piece.text}>" if piece.marked else piece.text for piece in differences(text, other))


@pytest.mark.parametrize(
    ("text", "other", "shown"),
    [
        ("Ein Hund läuft.", "Ein Hund läuft.", "Ein Hund läuft."),
        ("Ein Hund läuft.", "Eine Katze läuft.", "<Ein Hund> läuft."),
        ("Ein Hund läuft!", "Ein Hund läuft.", "Ein Hund läuft<!>"),
        ("a b c d", "a c d", "a <b> c d"),
        ("a  b", "a b", "a  b"),  # white space alone is no difference
        ("ein Hund", "", "<ein Hund>"),
        ("", "ein Hund", ""),
        ("Hund", "hund", "<Hund>"),
        ("我喝茶", "我喝咖啡", "我喝<茶>"),  # no spaces: character by character
        ("ที่นี่", "ที่นั่น", "ที่<นี่>"),  # and a Thai letter keeps its vowel signs and tone marks
        ("か\u3099く", "か\u309aく", "<か\u3099>く"),
        ("ខ្មែរ", "ខ្មោច", "<ខ្មែរ>"),  # Khmer: the letter below and the vowel belong to the first letter
        ("<b>bold</b> & *x*", "bold", "<<b>>bold<</b> & *x*>"),  # markup is text like any other
        (" a b ", "b", " <a> b "),
        ("हिन्दी में", "हिन्दू में", "<हिन्दी> में"),  # vowel signs are of the word
        ("می\u200cخواهم", "می\u200cخواهد", "<می\u200cخواهم>"),
        ("❤️a", "❤️b", "❤️<a>"),  # a mark of no letter begins no word
    ],
)
def test_differing_words_are_marked(text: str, other: str, shown: str) -> None:
    assert marked(text, other) == shown


texts = st.text(alphabet="ab,. \u3000我ß\u0301ก\u0e35", max_size=20)


@given(texts, texts)
def test_pieces_put_together_are_the_text_and_a_marked_one_has_a_word_that_differs(
    text: str, other: str
) -> None:
    pieces = differences(text, other)
    assert "".join(piece.text for piece in pieces) == text
    assert all(one.marked != two.marked for one, two in pairwise(pieces))
    assert all(piece.text.strip() == piece.text for piece in pieces if piece.marked)
    assert differences(text, text) == ([Piece(text, False)] if text else [])
