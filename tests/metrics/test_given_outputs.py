"""Outputs of files and references, and scores against several references, beside sacreBLEU itself."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics import BLEU, CHRF
from step_context import Context

from creamtea.errors import StepError
from creamtea.steps.systems import COMPARE, OUTPUTS, SCORE

Fixture = Callable[..., Any]
SEGMENTS = [
    {"index": 0, "source": "a", "reference": "ein Haus am See", "more_references": ["das Haus beim See"]},
    {
        "index": 1,
        "source": "b",
        "reference": "er geht heute nicht",
        "more_references": ["heute geht er nicht mehr"],
    },
    {"index": 2, "source": "c", "reference": "sie singt ein Lied", "more_references": ["ein Lied singt sie"]},
]
TEXTS = ["das Haus am See", "heute geht er nicht", "sie singt Lieder gern"]
FIRST = [str(row["reference"]) for row in SEGMENTS]
SECOND = [row["more_references"][0] for row in SEGMENTS]
METRICS = {"bleu": BLEU(), "chrf": CHRF()}


@pytest.fixture
def test_set(tmp_path: Path) -> Path:
    folder = tmp_path / "several"
    folder.mkdir()
    rows = (json.dumps({**row, "idioms": []}) + "\n" for row in SEGMENTS)
    (folder / "segments.jsonl").write_text("".join(rows))
    return folder


@pytest.fixture
def read(tmp_path: Path, test_set: Path) -> Callable[..., tuple[list[dict[str, Any]], Any]]:
    def run(content: bytes = b"", **params: Any) -> tuple[list[dict[str, Any]], Any]:
        path = tmp_path / "gpt.de"
        path.write_bytes(content)
        if not params.get("reference"):
            params |= {"file": "gpt.de", "digests": {"gpt.de": hashlib.sha256(content).hexdigest()}}
        context = Context(OUTPUTS, params, {"test_set": [test_set]}, locations={"gpt.de": str(path)})
        result = context.run()
        lines = (context.output / "hypotheses.jsonl").read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines], result

    return run


def test_lines_become_hypotheses_without_what_only_a_model_gives(read: Fixture) -> None:
    rows, result = read("eins\rund\x85zwei\r\n\n drei\u2028vier".encode())
    assert [row["text"] for row in rows] == ["eins und zwei", "", " drei vier"]
    assert {(row["score"], row["length"], row["selected_size"]) for row in rows} == {(None, None, None)}
    assert [(metric.name, metric.value) for metric in result.metrics] == [("empty", pytest.approx(1 / 3))]


def test_a_reference_is_an_output(read: Fixture) -> None:
    assert [row["text"] for row in read(reference=2)[0]] == SECOND


def test_a_test_sets_limit_takes_the_first_lines(read: Fixture) -> None:
    assert len(read(b"1\n2\n3\n4\n", limit=3)[0]) == 3


def test_a_wrong_number_of_lines_is_an_error_with_both_counts(read: Fixture) -> None:
    with pytest.raises(StepError, match=r"gpt\.de has 2 lines and the test set 3 segments"):
        read(b"1\n2\n")


@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("without", [None, 1, 2])
def test_scores_are_sacrebleus_of_the_references_that_count(
    make_context: Fixture, test_set: Path, decode_folder: Fixture, kind: str, without: int | None
) -> None:
    params = {"metric": {"kind": kind}, "without_reference": without}
    folders = {"test_set": [test_set], "decode": [decode_folder(TEXTS)]}
    score, *_ = make_context(SCORE, params, folders).run().metrics
    references = [lines for number, lines in enumerate((FIRST, SECOND), 1) if number != without]
    theirs = METRICS[kind].corpus_score(TEXTS, references)
    assert score.value == pytest.approx(theirs.score, rel=1e-12)
    assert score.detail["signature"] == str(METRICS[kind].get_signature())
    assert ("other reference" in score.note) == (without is not None)


def test_a_metric_of_one_reference_says_so(
    make_context: Fixture, test_set: Path, decode_folder: Fixture
) -> None:
    folders = {"test_set": [test_set], "decode": [decode_folder(TEXTS)]}
    score, *_ = make_context(SCORE, {"metric": {"kind": "wer"}}, folders).run().metrics
    assert score.note == "against one reference of 2, the first"


def test_a_comparison_uses_all_references(
    make_context: Fixture, test_set: Path, decode_folder: Fixture
) -> None:
    folders = {
        "test_set": [test_set],
        "baseline": [decode_folder(FIRST, "first")],
        "system": [decode_folder(TEXTS)],
    }
    significance = {"samples": 100, "trials": 100}
    params = {"metric": {"kind": "chrf"}, "significance": significance}
    (delta,) = make_context(COMPARE, params, folders).run().metrics
    theirs = CHRF()
    scores = [theirs.corpus_score(lines, [FIRST, SECOND]).score for lines in (FIRST, TEXTS)]
    assert delta.value == pytest.approx(scores[1] - scores[0])
