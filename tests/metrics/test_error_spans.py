"""Scorers that find errors: from the page that explains them to the file of a score step."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.error_spans import SPANS_FILE, read_error_spans
from creamtea.errors import StepUnavailable
from creamtea.methods.metrics import Command
from creamtea.scorers import find_scorer
from creamtea.steps.systems import SCORE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scorers.md"
BLOCK = re.compile(r"^```\w+ (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {block["file"]: block["text"] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}
OUTPUTS = ["der der Hund", "", "Tee 𝔱𝔢𝔢 𝔱𝔢𝔢"]
Fixture = Callable[..., Any]


@pytest.fixture
def score(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_context: Fixture,
    test_set_folder: Fixture,
    decode_folder: Fixture,
) -> Fixture:
    """A score step with the page's scorer, or another program in its place."""
    folder = tmp_path / "opt"
    folder.mkdir()
    scorers = FILES["scorers-with-errors.yaml"].replace("/opt/overlap/bin/python", sys.executable)
    (folder / "scorers.yaml").write_text(scorers.replace("/opt/overlap", str(folder)))
    monkeypatch.setenv("CREAMTEA_SCORERS", str(folder / "scorers.yaml"))

    def run(program: str = FILES["repeats.py"]) -> Path:
        (folder / "repeats.py").write_text(program, encoding="utf-8")
        metric = Command(kind="command", scorer="repeats")
        pins = find_scorer("repeats", False).pins().model_dump()
        folders = {"test_set": [test_set_folder(["a", "b", "c"])], "decode": [decode_folder(OUTPUTS)]}
        params = {"metric": metric.of_step().model_dump(mode="json"), "scorer": pins}
        context = make_context(SCORE, params, folders)
        context.run()
        return context.output / SPANS_FILE

    return run


def saying(*lines: dict[str, Any]) -> str:
    """A program that gives these answers."""
    return "import json, sys\nsys.stdin.read()\n" + "".join(
        f"print({json.dumps(json.dumps(line))})\n" for line in lines
    )


def test_the_scorer_of_the_page_finds_errors(score: Fixture) -> None:
    rows = [json.loads(line) for line in score().read_text().splitlines()]
    assert rows == [
        {"index": 0, "spans": [{"start": 4, "end": 6, "severity": "minor"}]},
        {"index": 1, "spans": []},
        {"index": 2, "spans": [{"start": 8, "end": 10, "severity": "minor"}]},
    ]
    for row in rows:
        for span in row["spans"]:
            assert OUTPUTS[row["index"]][span["start"] : span["end"] + 1] in ("der", "𝔱𝔢𝔢")


def test_a_scorer_without_errors_leaves_no_file(score: Fixture) -> None:
    assert not score(saying(*({"index": n, "score": 1} for n in range(3)))).exists()


WRONG = [
    ([{"start": 0, "end": 12, "severity": "minor"}], "ends at character 12 of an output of 12"),
    ([{"start": 0, "end": 3, "severity": "bad"}], r'severity: found "bad", allowed one of .*minor, major'),
    ([{"start": 0, "severity": "minor"}], "a start without an end"),
    ([{"start": 5, "end": 4, "severity": "minor"}], "ends before it begins"),
    ([{"start": -1, "end": 4, "severity": "minor"}], "start"),
    ([{"start": "0", "end": 4, "severity": "minor"}], "start"),
    ([{"start": 0, "end": 4}], "severity: required key is missing"),
    ([{"severity": "minor", "category": "Fluency"}], "category"),
    ([{"severity": "minor", "weight": 5}], "weight"),
    ("none", "spans"),
]


@pytest.mark.parametrize(("spans", "message"), WRONG)
def test_what_no_error_can_be(spans: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_error_spans(spans, OUTPUTS[0])


def test_an_empty_output_has_omissions_only() -> None:
    assert read_error_spans([{"severity": "major"}], "") == [{"severity": "major"}]
    with pytest.raises(ValueError, match="of an output of 0"):
        read_error_spans([{"start": 0, "end": 0, "severity": "major"}], "")


def test_a_scorer_with_a_wrong_error_has_no_scores(score: Fixture) -> None:
    wrong = {"index": 0, "score": 1, "spans": [{"start": 0, "end": 99, "severity": "minor"}]}
    with pytest.raises(StepUnavailable, match=r"gave segment 0 errors that cannot be: .*character 99"):
        score(saying(wrong))


def test_errors_of_some_outputs_only(score: Fixture) -> None:
    lines = [{"index": 0, "score": 1, "spans": []}, {"index": 1, "score": 1}, {"index": 2, "score": 1}]
    with pytest.raises(StepUnavailable, match=r"`spans` with 1 of 3 scores; .* segment 1: .*an empty list"):
        score(saying(*lines))


@given(
    st.text(max_size=30),
    st.lists(
        st.tuples(st.integers(0, 35), st.integers(0, 35), st.sampled_from(["minor", "major"])), max_size=4
    ),
)
def test_what_is_read_lies_in_the_output(output: str, spans: list[tuple[int, int, str]]) -> None:
    given = [{"start": start, "end": end, "severity": severity} for start, end, severity in spans]
    if all(start <= end < len(output) for start, end, _ in spans):
        assert read_error_spans(given, output) == given
    else:
        with pytest.raises(ValueError):
            read_error_spans(given, output)
