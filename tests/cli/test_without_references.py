"""`compare` without references: metrics that need none, agreement of systems, lengths, people."""

import json
import sys
from pathlib import Path

import pytest

from creamtea.report.cells import NO_SPREAD
from creamtea.steps.catalogue import STEP_KINDS

LENGTH = """
import json
import sys

for line in sys.stdin:
    segment = json.loads(line)
    assert segment["reference"] == ""
    print(json.dumps({"index": segment["index"], "score": len(segment["hypothesis"])}))
"""
REAL = dict(STEP_KINDS)
OUTPUTS = {
    "a.de": "eine Tasse Tee\nzwei Tassen, bitte\nkeine Milch\n",
    "b.de": "eine Tasse Tee\nzwei Tassen bitte\nohne Milch\n",
    "c.de": "Becher\n\nMilch\n",
}


@pytest.fixture(autouse=True)
def real_steps(creamtea, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers' own, where other tests of commands have fakes."""
    for name, kind in REAL.items():
        monkeypatch.setitem(STEP_KINDS, name, kind)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for name, text in {**OUTPUTS, "s.en": "a cup of tea\ntwo cups, please\nno milk\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return ["--source", "s.en", *OUTPUTS]


@pytest.fixture
def scorer(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "length.py").write_text(LENGTH)
    scorer = {
        "command": [sys.executable, str(tmp_path / "length.py")],
        "version": "1",
        "reference_free": True,
    }
    other = scorer | {"reference_free": False}
    (tmp_path / "scorers.yaml").write_text(json.dumps({"scorers": {"long": scorer, "other": other}}))
    return {"CREAMTEA_SCORERS": str(tmp_path / "scorers.yaml")}


def test_outputs_are_compared_with_each_other(creamtea, files: list[str], tmp_path: Path) -> None:
    (tmp_path / "b.de").write_text(OUTPUTS["b.de"], encoding="utf-8-sig")
    done = creamtea("compare", *files, "--html", tmp_path / "r.html")
    assert done.returncode == 0, done.stderr
    assert "warning: b.de: it begins with a byte-order mark, which is not read as text" in done.stderr
    assert "No score: the test set has no references" in done.stdout
    most, least = done.stdout.split(" agrees most with the other systems, ")
    assert most.splitlines()[-1].startswith(("a (", "b ("))
    assert least.startswith("c (")
    page = (tmp_path / "r.html").read_text()
    assert "Agreement of every two systems" in page
    assert "<dt>source</dt>" in page
    assert "<dt>reference</dt>" not in page


def test_equal_outputs_agree_equally(creamtea, files: list[str], tmp_path: Path) -> None:
    for name in OUTPUTS:
        (tmp_path / name).write_text(OUTPUTS["a.de"])
    done = creamtea("compare", *files, "--json")
    assert "agrees most" not in done.stdout
    assert "a, b and c gave the same outputs in every segment" in done.stdout
    (systems,) = [part for part in json.loads(done.stdout)["sections"] if part["key"] == "systems"]
    for row in systems["blocks"][0]["blocks"][0]["rows"]:
        cell = row["cells"]["agreement"]
        assert (cell["value"], cell["low"], cell["note"]) == (pytest.approx(100), None, NO_SPREAD)


def test_a_scorer_that_needs_no_references_decides(
    creamtea, files: list[str], scorer: dict[str, str]
) -> None:
    done = creamtea("compare", *files, "--metrics", "long", **scorer)
    assert done.returncode == 0, done.stderr
    assert "a has the highest score: 14.333 long" in done.stdout


def test_the_file_of_scorers_says_that_lower_scores_are_better(
    creamtea, files: list[str], scorer: dict[str, str]
) -> None:
    listed = Path(scorer["CREAMTEA_SCORERS"])
    listed.write_text(listed.read_text().replace('"version"', '"better": "lower", "version"'))
    done = creamtea("compare", *files, "--metrics", "long", **scorer)
    assert done.returncode == 0, done.stderr
    assert "c has the lowest score: 3.667 long" in done.stdout


@pytest.mark.parametrize("metric", ["bleu", "other"])
def test_a_metric_that_needs_references_is_refused(
    creamtea, files: list[str], scorer: dict[str, str], metric: str
) -> None:
    said = creamtea.refused("compare", *files, "--metrics", metric, **scorer)
    assert f"--metrics {metric}: it needs references; give --reference" in said


STUDY = """
name: free
languages: {source: en, target: de}
systems: {a: {outputs: {test: a.de}}, b: {outputs: {test: b.de}}}
test_sets: {test: {kind: files, source: s.en}}
baseline: a
"""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("metrics: [{kind: chrf}]", "found chrf, which needs references, and no test set has any"),
        (
            "metrics: [{kind: command, scorer: other, reference_free: true}]",
            "a scorer that needs no references",
        ),
        ("analyses: {x: {kind: buckets, test_set: test}}", "found test, which has no references"),
    ],
)
def test_a_study_says_what_needs_references(
    creamtea, files: list[str], scorer: dict[str, str], more: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(STUDY + more + "\n")
    assert message in creamtea.refused("validate", "study.yaml", "--data", ".", **scorer)


def test_a_study_without_references_runs(creamtea, files: list[str], tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    done = creamtea("run", "study.yaml", "--data", ".", "--executor", "inline")
    assert done.returncode == 0, done.stderr
    assert "test has no references, which BLEU, chrF would need." in done.stdout
