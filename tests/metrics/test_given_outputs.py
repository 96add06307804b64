"""Outputs of files and references, and scores against several references, beside sacreBLEU itself."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics import BLEU, CHRF
from scored_texts import comparing, outputs, scoring, segments
from step_context import Context

from creamtea.errors import StepError
from creamtea.steps.systems import OUTPUTS
from creamtea_workers.corpora.text import read_jsonl

Read = Callable[..., tuple[list[dict[str, Any]], Any]]
FIRST = ["ein Haus am See", "er geht heute nicht", "sie singt ein Lied"]
SECOND = ["das Haus beim See", "heute geht er nicht mehr", "ein Lied singt sie"]
TEXTS = ["das Haus am See", "heute geht er nicht", "sie singt Lieder gern"]
METRICS = {"bleu": BLEU(), "chrf": CHRF()}


@pytest.fixture
def test_set(tmp_path: Path) -> Path:
    return segments(tmp_path, FIRST, more_references=[[text] for text in SECOND])


@pytest.fixture
def read(tmp_path: Path, test_set: Path) -> Read:
    def run(content: bytes = b"", **params: Any) -> tuple[list[dict[str, Any]], Any]:
        path = tmp_path / "gpt.de"
        path.write_bytes(content)
        if not params.get("reference"):
            params |= {"file": "gpt.de", "digests": {"gpt.de": hashlib.sha256(content).hexdigest()}}
        context = Context(OUTPUTS, params, {"test_set": [test_set]}, locations={"gpt.de": str(path)})
        result = context.run()
        return read_jsonl(context.output / "hypotheses.jsonl"), result

    return run


def test_lines_become_hypotheses_without_what_only_a_model_gives(read: Read) -> None:
    rows, result = read("eins\rund\x85zwei\r\n\n drei\u2028vier".encode())
    assert [row["text"] for row in rows] == ["eins und zwei", "", " drei vier"]
    assert {(row["score"], row["length"], row["selected_size"]) for row in rows} == {(None, None, None)}
    assert [(metric.name, metric.value) for metric in result.metrics] == [("empty", pytest.approx(1 / 3))]


def test_a_reference_is_an_output(read: Read) -> None:
    assert [row["text"] for row in read(reference=2)[0]] == SECOND


def test_a_test_sets_limit_takes_the_first_lines(read: Read) -> None:
    assert len(read(b"1\n2\n3\n4\n", limit=3)[0]) == 3


def test_a_wrong_number_of_lines_is_an_error_with_both_counts(read: Read) -> None:
    with pytest.raises(StepError, match=r"gpt\.de has 2 lines and the test set 3 segments"):
        read(b"1\n2\n")


@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("without", [None, 1, 2])
def test_scores_are_sacrebleus_of_the_references_that_count(
    tmp_path: Path, test_set: Path, kind: str, without: int | None
) -> None:
    context = scoring(test_set, outputs(tmp_path, TEXTS), {"kind": kind}, without_reference=without)
    score, *_ = context.run().metrics
    references = [lines for number, lines in enumerate((FIRST, SECOND), 1) if number != without]
    theirs = METRICS[kind].corpus_score(TEXTS, references)
    assert score.value == pytest.approx(theirs.score, rel=1e-12)
    assert score.detail["signature"] == str(METRICS[kind].get_signature())
    assert ("other reference" in score.note) == (without is not None)


def test_a_metric_of_one_reference_says_so(tmp_path: Path, test_set: Path) -> None:
    score, *_ = scoring(test_set, outputs(tmp_path, TEXTS), {"kind": "wer"}).run().metrics
    assert score.note == "against one reference of 2, the first"


def test_a_comparison_uses_all_references(tmp_path: Path, test_set: Path) -> None:
    folders = [outputs(tmp_path, FIRST)], [outputs(tmp_path, TEXTS)]
    (delta,) = comparing(test_set, *folders, {"kind": "chrf"}, samples=100, trials=100).run().metrics
    scores = [CHRF().corpus_score(lines, [FIRST, SECOND]).score for lines in (FIRST, TEXTS)]
    assert delta.value == pytest.approx(scores[1] - scores[0])
