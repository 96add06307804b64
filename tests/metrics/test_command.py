"""Metrics of the machine's scorers, from the page that explains them to scores, comparisons and errors."""

import ast
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scored_texts import comparing, outputs, scoring, segments
from step_context import Context
from step_files import read_rows

from creamtea.document.mistakes import parsed
from creamtea.error_spans import SPANS_FILE, read_error_spans
from creamtea.errors import StepError, StepUnavailable
from creamtea.methods.metrics import Command, Metric
from creamtea.scorers import Scorer, content_digest, find_scorer, read_scorers
from creamtea_workers.corpora.text import write_jsonl

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scorers.md"
BLOCK = re.compile(r"^```\w+ (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {block["file"]: block["text"] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}
REFERENCES = ["der Hund rennt", "zwei Katzen", "Tee"]
OUTPUTS = ["der Hund läuft", "", "Tee"]
OVERLAPS = [2 / 3, 0.0, 1.0]
OVERLAP = Command(kind="command", scorer="overlap")
TEA = Command(kind="command", scorer="overlap", model="tea")
Score = Callable[..., Context]


def metrics_of(page_file: str) -> list[Any]:
    return [parsed(Metric, block) for block in yaml.safe_load(FILES[page_file])["metrics"]]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scorers of the page, set up as the page says, with this Python; their file."""
    folder = tmp_path / "opt"
    folder.mkdir()
    for name in ("score.py", "repeats.py"):
        (folder / name).write_text(FILES[name], encoding="utf-8")
    scorers: dict[str, Any] = {}
    for name in ("scorers.yaml", "scorers-with-errors.yaml"):
        text = FILES[name].replace("/opt/overlap/bin/python", sys.executable)
        scorers |= yaml.safe_load(text.replace("/opt/overlap", str(folder)))["scorers"]
    file = folder / "scorers.yaml"
    file.write_text(yaml.safe_dump({"scorers": scorers}))
    monkeypatch.setenv("CREAMTEA_SCORERS", str(file))
    return file


def pins_of(metric: Command) -> dict[str, Any]:
    return find_scorer(metric.scorer, metric.model is not None).pins().model_dump()


@pytest.fixture
def score(machine: Path, tmp_path: Path) -> Score:
    """A step, which has not run."""

    def make(metric: Command = OVERLAP, texts: list[str] = OUTPUTS, **params: Any) -> Context:
        params = {"scorer": pins_of(metric)} | params
        given = metric.of_step().model_dump(mode="json")
        return scoring(segments(tmp_path, REFERENCES), outputs(tmp_path, texts), given, **params)

    return make


def test_the_scorer_of_the_page_scores_and_its_scores_are_compared(
    score: Score, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, metric = metrics_of("study.yaml")
    context = score(metric)
    (row,) = context.run().metrics
    assert row.name == metric.row() == "command"
    assert row.value == pytest.approx(sum(OVERLAPS) / 3)
    assert row.low < row.value < row.high
    lines = read_rows(context.output / "segment_scores.jsonl")
    assert [line["value"] for line in lines] == pytest.approx(OVERLAPS)
    digest = pins_of(OVERLAP)["digest"]
    assert row.detail["signature"] == f"scorer:overlap|version:1.0|digest:{digest[:12]}"
    column = metric.column(row.detail["signature"])
    found = (column.key, column.title, column.digits, column.better)
    assert found == ("overlap", "word overlap", 3, "higher")

    better = shutil.copytree(context.output, tmp_path / "better")
    write_jsonl(better / "segment_scores.jsonl", ({**line, "value": line["value"] + 0.25} for line in lines))
    monkeypatch.delenv("CREAMTEA_SCORERS")  # nothing runs again
    (row,) = comparing(None, [context.output], [better], OVERLAP.model_dump(mode="json")).run().metrics
    assert (row.value, row.low, row.high) == pytest.approx((0.25, 0.25, 0.25))


def test_a_worker_without_the_planned_scorer_refuses(
    machine: Path, score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = score()
    script = machine.with_name("score.py")
    script.write_text(script.read_text() + "# changed\n")
    with pytest.raises(StepUnavailable, match=r"planned with another scorer overlap .*version 1.0 there, 1"):
        context.run()
    machine.write_text(machine.read_text() + "    environment: {TOKEN: 12345678}\n")
    with pytest.raises(StepUnavailable, match="`creamtea validate` there") as caught:
        context.run()
    assert "12345678" not in str(caught.value)
    monkeypatch.delenv("CREAMTEA_SCORERS")
    with pytest.raises(StepUnavailable, match=r"the worker lacks the scorer: .*CREAMTEA_SCORERS"):
        context.run()


def with_model(machine: Path, program: str, *arguments: str, **environment: str) -> None:
    """Give the page's scorer a model and more arguments, and let it do more."""
    machine.with_name("score.py").write_text(FILES["score.py"] + program)
    file = yaml.safe_load(machine.read_text())
    file["scorers"]["overlap"]["command"] += ["{model}", *arguments]
    file["scorers"]["overlap"]["environment"] = environment
    machine.write_text(yaml.safe_dump(file))


def test_the_model_is_where_the_worker_has_it_and_what_is_given_reaches_the_program(
    machine: Path, score: Score, tmp_path: Path
) -> None:
    model = tmp_path / "tea"
    model.write_text("leaves")
    digest = content_digest(model)
    program = (
        "from os import environ as seen\n"
        "facts = {'model': sys.argv[1], 'shell': sys.argv[2], 'tea': seen['TEA'],\n"
        "    'threads': seen['OMP_NUM_THREADS'], 'gpus': seen['CUDA_VISIBLE_DEVICES']}\n"
        "print(json.dumps({'facts': facts, 'signature': 'own'}))\n"
    )
    with_model(machine, program, "$HOME; `id`", TEA="green")
    result = score(TEA, digests={"tea": digest}, locations={"tea": str(model)}).run()
    told = {name: result.facts[name] for name in ("model", "tea", "threads", "gpus", "shell")}
    assert told == {"model": str(model), "tea": "green", "threads": "1", "gpus": "", "shell": "$HOME; `id`"}
    (row,) = result.metrics
    assert row.detail["signature"].endswith(f"|model:tea|model-digest:{digest[:12]}|own")


def test_a_model_that_changes_while_it_is_used_fails_the_step(
    machine: Path, score: Score, tmp_path: Path
) -> None:
    model = tmp_path / "tea"
    model.write_text("leaves")
    with_model(machine, "open(sys.argv[1], 'a').write('!')\n")
    context = score(TEA, digests={"tea": content_digest(model)}, locations={"tea": str(model)})
    with pytest.raises(StepError, match="the model tea has changed since the study was planned: submit it"):
        context.run()
    assert model.read_text() == "leaves!"


def test_the_examples_of_the_page_fit_together(tmp_path: Path) -> None:
    """They have not been run with their models; their syntax and their settings are right."""
    for name, text in FILES.items():
        if name.endswith(".py"):
            ast.parse(text)
    file = tmp_path / "scorers.yaml"
    file.write_text(FILES["scorers-of-three.yaml"])
    scorers = read_scorers(file)
    metrics = metrics_of("study-of-three.yaml")
    shown = [metric.name() for metric in metrics]
    assert shown == ["bleurt-BLEURT-20", "metricx-metricx-24-hybrid-large-v2p6", "xcomet-XCOMET-XL"]
    for metric in metrics:
        assert isinstance(scorers[metric.scorer], Scorer)
        assert scorers[metric.scorer].takes_model
    assert [metric.column().better for metric in metrics] == ["higher", "lower", "higher"]


# ---------------------------------------------------------------- scorers that find errors


MARKED = ["der der Hund", "", "Tee 𝔱𝔢𝔢 𝔱𝔢𝔢"]


@pytest.fixture
def found_errors(machine: Path, score: Score) -> Callable[..., Path]:
    """The file of errors, by the page's scorer or by a program that gives these lines."""

    def run(*lines: dict[str, Any]) -> Path:
        if lines:
            said = "".join(f"print({json.dumps(json.dumps(line))})\n" for line in lines)
            machine.with_name("repeats.py").write_text(f"import sys\nsys.stdin.read()\n{said}")
        context = score(Command(kind="command", scorer="repeats"), MARKED)
        context.run()
        return shutil.copytree(context.output, machine.parent / "output") / SPANS_FILE

    return run


def test_the_scorer_of_the_page_finds_errors(found_errors: Callable[..., Path]) -> None:
    rows = read_rows(found_errors())
    assert rows == [
        {"index": 0, "spans": [{"start": 4, "end": 6, "severity": "minor"}]},
        {"index": 1, "spans": []},
        {"index": 2, "spans": [{"start": 8, "end": 10, "severity": "minor"}]},
    ]
    marked = [MARKED[row["index"]][s["start"] : s["end"] + 1] for row in rows for s in row["spans"]]
    assert marked == ["der", "𝔱𝔢𝔢"]


def test_a_scorer_without_errors_leaves_no_file(found_errors: Callable[..., Path]) -> None:
    assert not found_errors(*({"index": n, "score": 1} for n in range(3))).exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [{"index": 0, "score": 1, "spans": [{"start": 0, "end": 99, "severity": "minor"}]}],
            r"gave segment 0 impossible errors: .*character 99",
        ),
        (
            [{"index": 0, "score": 1, "spans": []}, *({"index": n, "score": 1} for n in (1, 2))],
            r"`spans` with 1 of 3 scores; .* segment 1: .*an empty list",
        ),
    ],
)
def test_a_scorer_with_wrong_errors_has_no_scores(
    found_errors: Callable[..., Path], lines: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(StepUnavailable, match=message):
        found_errors(*lines)


WRONG = [
    ([{"start": 0, "end": 12, "severity": "minor"}], "ends at character 12 of an output of 12"),
    ([{"start": 0, "end": 3, "severity": "bad"}], r'severity: found "bad", allowed one of .*minor, major'),
    ([{"start": 0, "severity": "minor"}], "only one of start and end"),
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
        read_error_spans(spans, MARKED[0])


def test_an_empty_output_has_omissions_only() -> None:
    assert read_error_spans([{"severity": "major"}], "") == [{"severity": "major"}]
    with pytest.raises(ValueError, match="of an output of 0"):
        read_error_spans([{"start": 0, "end": 0, "severity": "major"}], "")


PLACES = st.tuples(st.integers(0, 35), st.integers(0, 35), st.sampled_from(["minor", "major"]))


@given(st.text(max_size=30), st.lists(PLACES, max_size=4))
def test_what_is_read_lies_in_the_output(output: str, spans: list[tuple[int, int, str]]) -> None:
    given = [{"start": start, "end": end, "severity": severity} for start, end, severity in spans]
    if all(start <= end < len(output) for start, end, _ in spans):
        assert read_error_spans(given, output) == given
    else:
        with pytest.raises(ValueError):
            read_error_spans(given, output)
