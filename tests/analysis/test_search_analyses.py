"""Analyses of searches: search errors, the empty string, beam sizes and depth-limited search, by hand and as
whole steps."""

import math
from pathlib import Path
from typing import Any

import pytest
import step_files
from step_context import Context, FolderCheckpoints
from step_files import Folders, decoded, metric, outputs_folder, read_rows
from toy_models import OBJECTIVES, Slow, TableModel, batch_of

from creamtea.contract.step import StepCancelled, StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.search import BeamSizes, DepthLimited, EmptyString, SearchErrors
from creamtea_workers.analysis.rows import SegmentStatistics
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.search.base import length_limit
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.exact import SearchBudget
from creamtea_workers.search.translator import TrainedModel
from creamtea_workers.steps import search
from creamtea_workers.steps.search import SearchedOutput

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
    best, own = [-1.0, -1.0, -1.0, -math.inf, -2.0], [-1.0009, -1.0011, -1.0002, -math.inf, -math.inf]
    exact = list(map(SearchedOutput, best, [9, 9, 0, 30, 4]))
    beam = list(map(SearchedOutput, own, [9, 9, 0, 30, 30]))
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
    assert [output.score for output in search.read_outputs(folder, test_set)] == [-math.inf, -0.5]


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


def test_a_sentence_without_a_finished_translation_has_no_gap() -> None:
    rows = search.probability_rows([-1.0, -math.inf], [-3.0, -2.0], 1)
    (gap,) = [row for row in rows if row.name == "log_prob_gap"]
    assert gap.value == 2.0


# ---------------------------------------------------------------- the empty string and beam sizes


def test_the_empty_string_by_hand() -> None:
    never = -math.inf
    outputs, empty, lengths = (
        [-5.0, -5.0, -3.0, -4.0, -6.0],
        [-4.0, -7.0, -3.0, never, never],
        [3, 2, 0, 5, 1],
    )
    rows = {row.name: row for row in search.empty_string_rows(outputs, empty, lengths, SegmentStatistics())}
    assert rows["empty_preferred"].value == 2 / 5  # the first, and the third, whose output is empty
    assert rows["empty_preferred"].detail["output_empty"] == 1
    assert rows["empty_impossible"].value == 2 / 5
    gap = rows["log_prob_gap"]
    assert gap.value == pytest.approx((-1 + 2 + 0) / 3)
    assert gap.detail["infinite"] == 2
    assert gap.detail["deviation"] == pytest.approx(math.sqrt((16 + 25 + 1) / 9 / 2))
    assert rows["log_prob_output"].value == pytest.approx(-23 / 5)
    assert rows["log_prob_empty"].value == pytest.approx(-14 / 3)
    points = search.gap_histogram(outputs, empty)  # bars of 0.5
    found = [(point.x, point.y, point.label) for point in points]
    assert found == [(-0.75, 0.2, "-1 to -0.5"), (0.25, 0.2, "0 to 0.5"), (2.25, 0.2, "2 to 2.5")]


def test_where_the_empty_string_is_never_possible_there_is_no_gap() -> None:
    rows = {row.name: row for row in search.empty_string_rows([-1.0], [-math.inf], [4], SegmentStatistics())}
    assert rows["empty_impossible"].value == 1.0
    assert rows["log_prob_gap"].value is None
    assert rows["log_prob_gap"].note
    assert search.gap_histogram([-1.0], [-math.inf]) == []


@pytest.mark.parametrize(
    ("spread", "width"), [(0.0, 0.5), (19.4, 0.5), (39.0, 1.0), (40.0, 2.0), (300.0, 10.0), (900.0, 50.0)]
)
def test_bars_are_few_and_of_round_widths(spread: float, width: float) -> None:
    assert search.bar_width(spread) == width


def test_empty_outputs_have_the_score_of_the_empty_string(tmp_path: Path) -> None:
    sources = ["the cat sat on the mat", "", "a dog", "she took the cake in the park"]
    folders = step_files.input_folders(tmp_path, sources, objective={"kind": "entmax"})
    hypotheses = decoded(folders, tmp_path / "decode", search={"kind": "beam", "width": 5})
    given = Context(EmptyString.step, {"precision": "fp32"}, {**folders, "decode": [tmp_path / "decode"]})
    result = given.run()
    rows = read_rows(given.output / "empty_string.jsonl")
    assert [row["index"] for row in rows] == [0, 1, 2, 3]
    assert [row["output"] for row in rows] == [row["score"] for row in hypotheses]
    empty = [n for n, row in enumerate(hypotheses) if row["length"] == 0]
    assert empty  # the toy model likes to stop at once
    assert all(rows[n]["empty"] == pytest.approx(hypotheses[n]["score"], abs=1e-5) for n in empty)
    preferred = result.metrics[0]
    # a beam may lose </s> at the first step, and then end below the empty string
    lower = [n for n, row in enumerate(rows) if n not in empty and row["empty"] > row["output"]]
    assert preferred.value == (len(empty) + len(lower)) / 4
    assert preferred.detail["output_empty"] == len(empty)
    assert preferred.low is not None


def test_outputs_of_another_test_set_are_refused(folders: Folders, tmp_path: Path) -> None:
    folders |= {"exact": [written(tmp_path / "exact", [-1.0], [3], ["limit"])], "decode": []}
    with pytest.raises(StepError, match="do not line up"):
        run(folders, [])
    folders["decode"] = [outputs_folder(tmp_path, ["x"])]
    with pytest.raises(StepError, match="do not line up"):
        Context(EmptyString.step, {"precision": "fp32"}, folders).run()


def test_a_row_and_a_point_for_every_beam(tmp_path: Path) -> None:
    references = ["a dog ran in the park", "the cat sat on the mat", "it rains"]
    outputs = {1: references, 4: ["a dog ran in the park", "", "it"], 16: ["", "", ""]}
    segments = [{"source": "x", "reference": reference} for reference in references]
    folders = {
        "test_set": [step_files.segments_folder(tmp_path, segments)],
        "decode": [outputs_folder(tmp_path, texts, f"decode{width}") for width, texts in outputs.items()],
    }
    params = {"widths": list(outputs), **BLEU}
    result = Context(BeamSizes.step, params, folders).run()

    rows = {(row.name, row.subject): row for row in result.metrics}
    assert set(rows) == {(n, s) for n in ("bleu", "length_ratio", "empty") for s in ("1", "4", "16")}
    assert rows["bleu", "1"].value == pytest.approx(100.0)
    assert [rows["length_ratio", s].value for s in ("1", "4", "16")] == [1.0, 7 / 14, 0.0]
    assert [rows["empty", s].value for s in ("1", "4", "16")] == [0.0, 1 / 3, 1.0]
    assert all(row.low is not None and row.high is not None for row in rows.values())
    points = [(point.series, point.x, point.y) for point in result.points]
    assert points == [(row.name, float(row.subject), row.value) for row in result.metrics]


# ---------------------------------------------------------------- depth-limited search


LENGTHS = [1, 2, 3]
ENOUGH = SearchBudget(100_000, only_first=True)


def judge(
    model: TableModel, objective: str, numbers: list[int], budget: SearchBudget
) -> list[search.Verdict]:
    trained = TrainedModel(model, OBJECTIVES[objective], step_files.model_config(5), "fp32")
    return search.judge(trained, [[n] for n in numbers], 2, LENGTHS, budget, lambda: None)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_shortest_that_outscores_the_beam(objective: str) -> None:
    model, numbers = TableModel(5, seed=3, end=-2.5), list(range(1, 13))
    verdicts = judge(model, objective, numbers, ENOUGH)
    limit = length_limit(2.0, 1)
    beams = BeamSearch(2)(batch_of(model, objective, numbers, [limit] * 12))
    seen = set()
    for number, beam, verdict in zip(numbers, beams, verdicts, strict=True):
        slow = list(Slow(model, OBJECTIVES[objective], number, range(5)).enumerate(4))
        bar = beam.score + 1e-4 * (len(beam.tokens) + 1) if beam.finished else float("-inf")
        better = [len(tokens) - 1 for score, tokens in slow if score > bar]
        expected = min((length for length in LENGTHS if min(better, default=9) <= length), default=None)
        assert verdict.shortest == expected
        assert verdict.undecided == []
        seen.add(expected)
    assert len(seen) > 1


def test_what_a_limit_leaves_open() -> None:
    model, numbers = TableModel(5, seed=3, end=-2.5), list(range(1, 31))
    whole, limited = (
        judge(model, "scones", numbers, budget) for budget in (ENOUGH, SearchBudget(2, only_first=True))
    )
    assert any(verdict.undecided for verdict in limited)
    for certain, verdict in zip(whole, limited, strict=True):
        for length in LENGTHS:
            assert not (verdict.is_better(length) and verdict.is_undecided(length))
            if not verdict.is_undecided(length):
                assert verdict.is_better(length) == certain.is_better(length)


DEPTHS: dict[str, Any] = {"lengths": [2, 1], "width": 2, "max_states": 50}


def test_rows_rise_with_the_length_and_a_stopped_step_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = step_files.input_folders(tmp_path, ["the cat sat", "a dog", "she took the cake", ""] * 3)
    result = Context(DepthLimited.step, DEPTHS, folders).run()
    named = {(row.name, row.subject): row.value for row in result.metrics}
    assert set(named) == {(n, s) for n in ("shorter_better", "undecided") for s in ("1", "2")}
    assert (named["shorter_better", "1"] or 0.0) <= (named["shorter_better", "2"] or 0.0)
    assert [(point.x, point.y) for point in result.points] == [
        (1.0, named["shorter_better", "1"]),
        (2.0, named["shorter_better", "2"]),
    ]

    monkeypatch.setattr(search, "SAVE_EVERY", -1.0)
    monkeypatch.setattr(search, "_DEPTH_BATCH", 3)

    class Stopped(Context):
        def progress(self, done: float, total: float, message: str = "") -> None:
            if done >= 6:
                raise StepCancelled

    kept = FolderCheckpoints()
    with pytest.raises(StepCancelled):
        Stopped(DepthLimited.step, DEPTHS, folders, checkpoints=kept).run()
    again = Context(DepthLimited.step, DEPTHS, folders, checkpoints=kept)
    assert again.run() == result
    assert again.progresses[0][0] == 6
