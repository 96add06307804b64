"""Metrics of the machine's scorers, from the page that explains them to scores and comparisons."""

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

from creamtea.contract.step import StepResult
from creamtea.document.mistakes import parsed
from creamtea.errors import StepError, StepUnavailable
from creamtea.methods.metrics import Command, Metric
from creamtea.scorers import Scorer, content_digest, find_scorer, read_scorers
from creamtea.steps.systems import COMPARE, SCORE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scorers.md"
BLOCK = re.compile(r"^```\w+ (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {block["file"]: block["text"] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}
REFERENCES = ["der Hund rennt", "zwei Katzen", "Tee"]
OUTPUTS = ["der Hund läuft", "", "Tee"]
OVERLAPS = [2 / 3, 0.0, 1.0]
Fixture = Callable[..., Any]


def metrics_of(page_file: str) -> list[Any]:
    return [parsed(Metric, block) for block in yaml.safe_load(FILES[page_file])["metrics"]]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scorer of the page, set up as the page says, with this Python; the scorers' file."""
    folder = tmp_path / "opt"
    folder.mkdir()
    (folder / "score.py").write_text(FILES["score.py"], encoding="utf-8")
    text = FILES["scorers.yaml"].replace("/opt/overlap/bin/python", sys.executable)
    file = folder / "scorers.yaml"
    file.write_text(text.replace("/opt/overlap", str(folder)))
    monkeypatch.setenv("CREAMTEA_SCORERS", str(file))
    return file


@pytest.fixture
def score(make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture) -> Fixture:
    def run(metric: Command, locations: dict[str, str] | None = None, **more: Any) -> tuple[StepResult, Path]:
        given = {"metric": metric.of_step().model_dump(mode="json")}
        if "scorer" not in more:
            more["scorer"] = find_scorer(metric.scorer, metric.model is not None).pins().model_dump()
        folders = {"test_set": [test_set_folder(REFERENCES)], "decode": [decode_folder(OUTPUTS)]}
        context = make_context(SCORE, {**given, **more}, folders, locations=locations or {})
        return context.run(), context.output

    return run


def test_the_scorer_of_the_page_scores(machine: Path, score: Fixture) -> None:
    _, metric = metrics_of("study.yaml")
    result, output = score(metric)
    (row,) = result.metrics
    assert row.name == metric.row() == "command"
    assert row.value == pytest.approx(sum(OVERLAPS) / 3)
    assert row.low < row.value < row.high
    lines = [json.loads(line) for line in (output / "segment_scores.jsonl").read_text().splitlines()]
    assert [line["value"] for line in lines] == pytest.approx(OVERLAPS)
    pins = find_scorer("overlap", False).pins()
    assert row.detail["signature"] == f"scorer:overlap|version:1.0|digest:{pins.digest[:12]}"
    column = metric.column(row.detail["signature"])
    found = (column.key, column.title, column.digits, column.better)
    assert found == ("overlap", "word overlap", 3, "higher")


def test_systems_are_compared_by_the_scores_that_are_there(
    machine: Path, score: Fixture, make_context: Fixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    metric = Command(kind="command", scorer="overlap")
    _, output = score(metric)
    baseline, better = (shutil.copytree(output, tmp_path / name) for name in ("baseline", "better"))
    shutil.rmtree(output)
    (better / "segment_scores.jsonl").write_text(
        "".join(f'{{"index": {n}, "value": {value + 0.25}}}\n' for n, value in enumerate(OVERLAPS))
    )
    monkeypatch.delenv("CREAMTEA_SCORERS")  # nothing runs again
    params = {"metric": metric.model_dump(mode="json"), "significance": {}}
    context = make_context(COMPARE, params, {"test_set": [], "baseline": [baseline], "system": [better]})
    (row,) = context.run().metrics
    assert row.value == pytest.approx(0.25)
    assert (row.low, row.high) == pytest.approx((0.25, 0.25))


OVERLAP = Command(kind="command", scorer="overlap")


def test_a_worker_with_another_scorer_refuses(machine: Path, score: Fixture) -> None:
    planned = find_scorer("overlap", False).pins().model_dump()
    script = machine.with_name("score.py")
    script.write_text(script.read_text() + "# changed\n")
    with pytest.raises(
        StepUnavailable, match=r"planned with another scorer overlap .*version 1.0 there, 1.0 "
    ):
        score(OVERLAP, scorer=planned)


def test_a_worker_without_the_scorer_says_so(
    machine: Path, score: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = find_scorer("overlap", False).pins().model_dump()
    monkeypatch.delenv("CREAMTEA_SCORERS")
    with pytest.raises(StepUnavailable, match=r"the worker lacks the scorer: .*CREAMTEA_SCORERS"):
        score(OVERLAP, scorer=planned)


def test_a_broken_file_on_a_worker_is_not_quoted(machine: Path, score: Fixture) -> None:
    planned = find_scorer("overlap", False).pins().model_dump()
    machine.write_text(machine.read_text() + "    environment: {TOKEN: 12345678}\n")
    with pytest.raises(StepUnavailable, match="`creamtea validate` there") as caught:
        score(OVERLAP, scorer=planned)
    assert "12345678" not in str(caught.value)


def test_the_model_is_where_the_worker_has_it_and_what_is_given_reaches_the_program(
    machine: Path, make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture, tmp_path: Path
) -> None:
    model = tmp_path / "models" / "tea"
    model.parent.mkdir()
    model.write_text("leaves")
    digest = content_digest(model)
    script = machine.with_name("score.py")
    script.write_text(
        FILES["score.py"] + "from os import environ as seen\n"
        "facts = {'model': sys.argv[1], 'shell': sys.argv[2], 'tea': seen['TEA'],\n"
        "    'threads': seen['OMP_NUM_THREADS'], 'gpus': seen['CUDA_VISIBLE_DEVICES']}\n"
        "print(json.dumps({'facts': facts, 'signature': 'own'}))\n"
    )
    file = yaml.safe_load(machine.read_text())
    file["scorers"]["overlap"]["command"] += ["{model}", "$HOME; `id`"]
    file["scorers"]["overlap"]["environment"] = {"TEA": "green"}
    machine.write_text(yaml.safe_dump(file))
    params = {
        "metric": {"kind": "command", "scorer": "overlap", "model": "models/tea"},
        "scorer": find_scorer("overlap", True).pins().model_dump(),
        "digests": {"models/tea": digest},
    }
    folders = {"test_set": [test_set_folder(REFERENCES)], "decode": [decode_folder(OUTPUTS)]}
    context = make_context(SCORE, params, folders, locations={"models/tea": str(model)})
    result = context.run()
    told = {name: result.facts[name] for name in ("model", "tea", "threads", "gpus", "shell")}
    assert told == {"model": str(model), "tea": "green", "threads": "1", "gpus": "", "shell": "$HOME; `id`"}
    (row,) = result.metrics
    assert row.detail["signature"].endswith(f"|model:models/tea|model-digest:{digest[:12]}|own")


def test_a_model_that_changes_while_it_is_used_fails_the_step(
    machine: Path, score: Fixture, tmp_path: Path
) -> None:
    model = tmp_path / "tea"
    model.write_text("leaves")
    script = machine.with_name("score.py")
    script.write_text(FILES["score.py"] + "open(sys.argv[1], 'a').write('!')\n")
    file = yaml.safe_load(machine.read_text())
    file["scorers"]["overlap"]["command"].append("{model}")
    machine.write_text(yaml.safe_dump(file))
    metric = Command(kind="command", scorer="overlap", model="tea")
    given = {"digests": {"tea": content_digest(model)}}
    with pytest.raises(StepError, match="the model tea has changed since the study was planned: submit it"):
        score(metric, **given, locations={"tea": str(model)})
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
