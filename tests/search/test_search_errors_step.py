import json
import math
from pathlib import Path
from typing import Any

import pytest
import step_files
from step_context import Context
from step_files import read_rows

from creamtea.contract.step import MetricRow, StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.search import SearchErrors
from creamtea.steps.systems import DECODE
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.search.base import length_limit
from creamtea_workers.steps import search
from creamtea_workers.steps.search import SearchedOutputs

SOURCES = ["the cat sat on the mat", "a dog", "she took the cake in the park", "cats ran"]
BLEU = {"metric": {"kind": "bleu"}, "languages": {"source": "de", "target": "en"}}


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, list[Path]]:
    subwords = step_files.subwords_folder(tmp_path)
    segments = [{"source": source, "reference": "the cat ran"} for source in SOURCES]
    return {
        "test_set": [step_files.test_set_folder(tmp_path, segments)],
        "subwords": [subwords],
        "train": [step_files.model_folder(tmp_path, step_files.vocabulary_size(subwords))],
    }


def decoded(folders: dict[str, list[Path]], output: Path, search: dict[str, Any]) -> Path:
    params = {"selection": {"kind": "full"}, "search": search, "precision": "fp32", "batch_size": 4}
    Context(DECODE, params, folders, output).run()
    return output


def written(output: Path, scores: list[float], lengths: list[int], outcomes: list[str] | None = None) -> Path:
    """A decode step's files, made by hand."""
    output.mkdir()
    rows = [
        {
            "index": n,
            "text": "the cat" if length else "",
            "score": score,
            "length": length,
            "selected_size": 9,
        }
        for n, (score, length) in enumerate(zip(scores, lengths, strict=True))
    ]
    (output / "hypotheses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if outcomes is not None:
        found = [
            {"index": n, "outcome": outcome, "expansions": 10 * (n + 1), "beam_score": -9.0}
            for n, outcome in enumerate(outcomes)
        ]
        (output / "exact.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    return output


def run(folders: dict[str, list[Path]], widths: list[int]) -> StepResult:
    return Context(SearchErrors.step, {"widths": widths, **BLEU}, folders).run()


def row(result: StepResult, name: str, subject: str = "") -> MetricRow:
    (found,) = [row for row in result.metrics if (row.name, row.subject) == (name, subject)]
    return found


def test_errors_are_what_rounding_does_not_explain() -> None:
    exact = SearchedOutputs([-1.0, -1.0, -1.0, -math.inf, -2.0], [9, 9, 0, 30, 4])
    beam = SearchedOutputs([-1.0009, -1.0011, -1.0002, -math.inf, -math.inf], [9, 9, 0, 30, 30])
    assert search.search_errors(beam, exact) == [False, True, True, False, True]


def test_shares_and_probabilities(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    outcomes = ["proved", "proved", "improved", "limit"]
    folders["exact"] = [written(tmp_path / "exact", [-1.0, -2.0, -3.0, -4.0], [3, 0, 3, 3], outcomes)]
    folders["decode"] = [
        written(tmp_path / "beam1", [-5.0, -2.0, -6.0, -4.0], [3, 0, 3, 3]),
        written(tmp_path / "beam4", [-1.0, -2.0, -6.0, -4.0], [3, 0, 3, 3]),
    ]
    result = run(folders, [1, 4])
    assert row(result, "search_errors", "1").value == 0.5  # of the two that are proved
    assert row(result, "search_errors", "4").value == 0.0
    assert row(result, "search_errors_at_least", "1").value == 0.5  # of all four
    assert row(result, "search_errors_at_least", "4").value == 0.25
    shares = {name: row(result, name).value for name in ("proved", "improved", "limit", "unproved")}
    assert shares == {"proved": 0.5, "improved": 0.25, "limit": 0.25, "unproved": 0.5}
    assert row(result, "expansions").value == 25.0
    assert row(result, "empty", "exact").value == 0.25
    best, empty = row(result, "log_prob_best"), row(result, "log_prob_empty")
    assert best.value == -2.5
    assert best.detail["deviation"] == pytest.approx(math.sqrt(5 / 3))
    assert row(result, "log_prob_gap").value == pytest.approx(-2.5 - (empty.value or 0.0))
    curve = [(point.x, point.y, point.label) for point in result.points if point.series == "search_errors"]
    assert curve == [(1.0, 0.5, ""), (4.0, 0.0, "")]
    shown = [(point.x, point.label) for point in result.points if point.series == "bleu"]
    assert shown == [(1.0, ""), (4.0, ""), (8.0, "exact")]


def test_nothing_proved_is_told(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    folders["exact"] = [written(tmp_path / "exact", [-1.0] * 4, [3] * 4, ["limit"] * 4)]
    folders["decode"] = [written(tmp_path / "beam1", [-1.0] * 4, [3] * 4)]
    found = row(run(folders, [1]), "search_errors", "1")
    assert found.value is None
    assert "raise max_states" in found.note


def test_an_output_without_an_end_has_no_score(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    cut = length_limit(2.0, 3)
    folder = written(tmp_path / "beam1", [-0.5, -0.5], [cut, cut - 1])
    subwords = SubwordModel.load(folders["subwords"][0] / "subwords.model")
    test_set = EncodedTestSet(subwords, [{"index": 0}, {"index": 1}], [[4, 5, 6], [4, 5, 6]])
    assert search.read_outputs(folder, test_set).scores == [-math.inf, -0.5]


def test_a_real_search(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    exact = {"kind": "exact", "max_states": 100}
    folders["exact"] = [decoded(folders, tmp_path / "exact", exact)]
    folders["decode"] = [
        decoded(folders, tmp_path / f"beam{n}", {"kind": "beam", "width": n}) for n in (1, 4)
    ]
    result = run(folders, [1, 4])
    best = [row["score"] for row in read_rows(folders["exact"][0] / "hypotheses.jsonl")]
    proved = [row["outcome"] == "proved" for row in read_rows(folders["exact"][0] / "exact.jsonl")]
    assert any(proved)
    for width, folder in zip(("1", "4"), folders["decode"], strict=True):
        scores = [row["score"] for row in read_rows(folder / "hypotheses.jsonl")]
        missed = [p for s, b, p in zip(scores, best, proved, strict=True) if b > s + 0.01]
        assert row(result, "search_errors", width).value == pytest.approx(sum(missed) / sum(proved))
    gap = row(result, "log_prob_gap").value
    assert gap >= 0  # the best of all is no worse than the empty string


def test_decodings_of_another_test_set(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    folders["exact"] = [written(tmp_path / "exact", [-1.0], [3], ["limit"])]
    with pytest.raises(StepError, match="do not line up"):
        run(folders, [])


def test_a_sentence_without_a_finished_translation_has_no_gap() -> None:
    rows = search.probability_rows([-1.0, -math.inf], [-3.0, -2.0], 1)
    (gap,) = [row for row in rows if row.name == "log_prob_gap"]
    assert gap.value == 2.0
