"""Search errors: shares and probabilities by hand, and of real searches."""

import math
from pathlib import Path

import pytest
import step_files
from step_context import Context
from step_files import Folders, decoded, metric, read_rows

from creamtea.contract.step import StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.search import SearchErrors
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.search.base import length_limit
from creamtea_workers.steps import search
from creamtea_workers.steps.search import SearchedOutputs

SOURCES = ["the cat sat on the mat", "a dog", "she took the cake in the park", "cats ran"]
BLEU = {"metric": {"kind": "bleu"}, "languages": {"source": "de", "target": "en"}}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    segments = [{"source": source, "reference": "the cat ran"} for source in SOURCES]
    return step_files.input_folders(tmp_path, segments)


def written(output: Path, scores: list[float], lengths: list[int], outcomes: list[str] | None = None) -> Path:
    """A decode step's files, made by hand."""
    output.mkdir()
    rows = [
        {"text": "the cat" if length else "", "score": score, "length": length, "selected_size": 9}
        for score, length in zip(scores, lengths, strict=True)
    ]
    write_jsonl(output / "hypotheses.jsonl", ({"index": n, **row} for n, row in enumerate(rows)))
    if outcomes is not None:
        found = [
            {"index": n, "outcome": outcome, "expansions": 10 * (n + 1), "beam_score": -9.0}
            for n, outcome in enumerate(outcomes)
        ]
        write_jsonl(output / "exact.jsonl", found)
    return output


def run(folders: Folders, widths: list[int]) -> StepResult:
    return Context(SearchErrors.step, {"widths": widths, **BLEU}, folders).run()


def test_errors_are_what_rounding_does_not_explain() -> None:
    exact = SearchedOutputs([-1.0, -1.0, -1.0, -math.inf, -2.0], [9, 9, 0, 30, 4])
    beam = SearchedOutputs([-1.0009, -1.0011, -1.0002, -math.inf, -math.inf], [9, 9, 0, 30, 30])
    assert search.search_errors(beam, exact) == [False, True, True, False, True]


def test_shares_and_probabilities(folders: Folders, tmp_path: Path) -> None:
    outcomes = ["proved", "proved", "improved", "limit"]
    folders["exact"] = [written(tmp_path / "exact", [-1.0, -2.0, -3.0, -4.0], [3, 0, 3, 3], outcomes)]
    folders["decode"] = [
        written(tmp_path / "beam1", [-5.0, -2.0, -6.0, -4.0], [3, 0, 3, 3]),
        written(tmp_path / "beam4", [-1.0, -2.0, -6.0, -4.0], [3, 0, 3, 3]),
    ]
    result = run(folders, [1, 4])
    assert metric(result, "search_errors", "1").value == 0.5  # of the two that are proved
    assert metric(result, "search_errors", "4").value == 0.0
    assert metric(result, "search_errors_at_least", "1").value == 0.5  # of all four
    assert metric(result, "search_errors_at_least", "4").value == 0.25
    shares = {name: metric(result, name).value for name in ("proved", "improved", "limit", "unproved")}
    assert shares == {"proved": 0.5, "improved": 0.25, "limit": 0.25, "unproved": 0.5}
    assert metric(result, "expansions").value == 25.0
    assert metric(result, "empty", "exact").value == 0.25
    best, empty = metric(result, "log_prob_best"), metric(result, "log_prob_empty")
    assert best.value == -2.5
    assert best.detail["deviation"] == pytest.approx(math.sqrt(5 / 3))
    assert metric(result, "log_prob_gap").value == pytest.approx(-2.5 - (empty.value or 0.0))
    curve = [(point.x, point.y, point.label) for point in result.points if point.series == "search_errors"]
    assert curve == [(1.0, 0.5, ""), (4.0, 0.0, "")]
    shown = [(point.x, point.label) for point in result.points if point.series == "bleu"]
    assert shown == [(1.0, ""), (4.0, ""), (8.0, "exact")]


def test_nothing_proved_is_told(folders: Folders, tmp_path: Path) -> None:
    folders["exact"] = [written(tmp_path / "exact", [-1.0] * 4, [3] * 4, ["limit"] * 4)]
    folders["decode"] = [written(tmp_path / "beam1", [-1.0] * 4, [3] * 4)]
    found = metric(run(folders, [1]), "search_errors", "1")
    assert found.value is None
    assert "raise max_states" in found.note


def test_an_output_without_an_end_has_no_score(folders: Folders, tmp_path: Path) -> None:
    cut = length_limit(2.0, 3)
    folder = written(tmp_path / "beam1", [-0.5, -0.5], [cut, cut - 1])
    rows, sources = [{"index": 0}, {"index": 1}], [[4, 5, 6]] * 2
    test_set = EncodedTestSet(step_files.subwords_of(folders), rows, sources)
    assert search.read_outputs(folder, test_set).scores == [-math.inf, -0.5]


def test_a_real_search(folders: Folders, tmp_path: Path) -> None:
    exact = decoded(folders, tmp_path / "exact", search={"kind": "exact", "max_states": 100})
    beams = [decoded(folders, tmp_path / f"{n}", search={"kind": "beam", "width": n}) for n in (1, 4)]
    folders |= {"exact": [tmp_path / "exact"], "decode": [tmp_path / "1", tmp_path / "4"]}
    result = run(folders, [1, 4])
    proved = [row["outcome"] == "proved" for row in read_rows(tmp_path / "exact" / "exact.jsonl")]
    assert any(proved)
    for width, beam in zip(("1", "4"), beams, strict=True):
        scores = [(row["score"], best["score"]) for row, best in zip(beam, exact, strict=True)]
        missed = sum(p for (found, best), p in zip(scores, proved, strict=True) if best > found + 0.01)
        assert metric(result, "search_errors", width).value == pytest.approx(missed / sum(proved))
    assert metric(result, "log_prob_gap").value >= 0  # the best of all is no worse than the empty string


def test_decodings_of_another_test_set(folders: Folders, tmp_path: Path) -> None:
    folders["exact"] = [written(tmp_path / "exact", [-1.0], [3], ["limit"])]
    with pytest.raises(StepError, match="do not line up"):
        run(folders, [])


def test_a_sentence_without_a_finished_translation_has_no_gap() -> None:
    rows = search.probability_rows([-1.0, -math.inf], [-3.0, -2.0], 1)
    (gap,) = [row for row in rows if row.name == "log_prob_gap"]
    assert gap.value == 2.0
