"""The empty string and beam sizes: hand-computed cases, and whole steps."""

import math
from pathlib import Path

import pytest
import step_files
from step_context import Context
from step_files import Folders, decoded, outputs_folder, read_rows

from creamtea.errors import StepError
from creamtea.methods.analyses.search import BeamSizes, EmptyString
from creamtea_workers.analysis.rows import SegmentStatistics
from creamtea_workers.steps import search

LANGUAGES = {"source": "en", "target": "de"}
SOURCES = ["the cat sat on the mat", "", "a dog", "she took the cake in the park"]


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


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return step_files.input_folders(tmp_path, SOURCES, objective={"kind": "entmax"})


def test_empty_outputs_have_the_score_of_the_empty_string(folders: Folders, tmp_path: Path) -> None:
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
    folders["decode"] = [outputs_folder(tmp_path, ["x"])]
    with pytest.raises(StepError, match="do not line up"):
        Context(EmptyString.step, {"precision": "fp32"}, folders).run()


def test_a_row_and_a_point_for_every_beam(tmp_path: Path) -> None:
    references = ["a dog ran in the park", "the cat sat on the mat", "it rains"]
    outputs = {1: references, 4: ["a dog ran in the park", "", "it"], 16: ["", "", ""]}
    segments = [{"source": "x", "reference": reference} for reference in references]
    folders = {
        "test_set": [step_files.test_set_folder(tmp_path, segments)],
        "decode": [outputs_folder(tmp_path, texts, f"decode{width}") for width, texts in outputs.items()],
    }
    params = {"widths": list(outputs), "metric": {"kind": "bleu"}, "languages": LANGUAGES}
    result = Context(BeamSizes.step, params, folders).run()

    rows = {(row.name, row.subject): row for row in result.metrics}
    assert set(rows) == {(n, s) for n in ("bleu", "length_ratio", "empty") for s in ("1", "4", "16")}
    assert rows["bleu", "1"].value == pytest.approx(100.0)
    assert [rows["length_ratio", s].value for s in ("1", "4", "16")] == [1.0, 7 / 14, 0.0]
    assert [rows["empty", s].value for s in ("1", "4", "16")] == [0.0, 1 / 3, 1.0]
    assert all(row.low is not None and row.high is not None for row in rows.values())
    points = [(point.series, point.x, point.y) for point in result.points]
    assert points == [(row.name, float(row.subject), row.value) for row in result.metrics]
