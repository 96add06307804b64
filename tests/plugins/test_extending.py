"""The examples of docs/extending.md: they run, and a plug-in's version enters the keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lab_package import creamtea, install

KINDS = {"focal", "best_of", "frequent", "rouge", "repetitions", "reversed", "two-scales", "blanks"}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return install(tmp_path / "lab").parent


@pytest.mark.slow
def test_the_study_of_the_page_runs(lab: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    quicker = [f"--set=variants.{variant}.training.autocast=none" for variant in ("focal", "softmax")]
    done = creamtea(lab, home, "run", str(lab / "study.yaml"), "--executor", "inline", "--quiet", *quicker)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "focal γ=2" in done.stdout  # the report
    report = creamtea(lab, home, "report", "lab", "--json")
    assert report.returncode == 0, report.stderr
    assert '"ROUGE-1"' in report.stdout
    assert "repetitions" in report.stdout
    assert "creamtea-lab 1.0" in report.stdout  # provenance
    listed = creamtea(lab, home, "plugins", "--json")
    assert listed.returncode == 0, listed.stderr
    rows = json.loads(listed.stdout)
    assert {row["kind"] for row in rows} == KINDS
    assert {(row["distribution"], row["version"], row["state"]) for row in rows} == {
        ("creamtea-lab", "1.0", "ready")
    }


def test_the_rating_protocol_of_the_page_scores_and_refuses(lab: Path) -> None:
    script = """
import json
from creamtea.human.protocols import find_protocol
two = find_protocol("two-scales")
(scored,) = two.read([{"adequacy": 5, "fluency": 3}], ["Haus"])
two.check_draft({"fluency": 3}, "Haus")
def refusal(answer):
    try:
        two.read([answer], ["Haus"])
    except ValueError as error:
        return str(error)
print(json.dumps({
    "score": two.scale.label(scored.step), "payload": scored.payload, "widget": two.page_data()["widget"],
    "scripts": [path.is_file() for path in two.scripts],
    "missing": refusal({"fluency": 3}), "wrong": refusal({"fluency": 9, "adequacy": 1}),
}))
"""
    said = printed_by(lab, script)
    assert (said["score"], said["payload"]) == ("8", {"adequacy": 5, "fluency": 3})
    assert (said["widget"], said["scripts"]) == ("twoScales", [True])
    assert said["missing"] == "give adequacy and fluency"
    assert said["wrong"] == "fluency is a whole number from 1 to 5, not 9"


@pytest.mark.slow
def test_the_format_of_the_page_is_read_written_and_recognised(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("scores.txt").write_text("ann A 0 70\nann B 0 55\nben A 1 90 very good\n", encoding="utf-8")
    script = """
import json
from pathlib import Path
from typer.testing import CliRunner
from creamtea.cli.main import app
def call(line):
    done = CliRunner().invoke(app, line.split())
    return [done.exit_code, done.stdout, str(done.exception)]
imported = call("campaign import first --from scores.txt --json")
exported = call("campaign export first --format blanks -o out")
Path("scores.txt").write_text("one two\\n", encoding="utf-8")
refused = call("campaign import again --from scores.txt")
unknown = call("campaign import again --from out --format blank")
print(json.dumps({"imported": imported, "exported": exported, "refused": refused, "unknown": unknown}))
"""
    said = printed_by(lab, script)
    code, out, error = said["imported"]
    assert code == 0, error
    imported = json.loads(out)
    assert (imported["ratings"], imported["systems"], imported["items"]) == (3, 2, 3)
    assert [(part["count"], part["what"]) for part in imported["not_kept"]] == [(1, "comments")]
    assert said["exported"][0] == 0, said["exported"]
    assert Path("out", "scores.txt").read_text() == "ann A 0 70\nann B 0 55\nben A 1 90\n"
    assert "blanks: RATER SYSTEM SEGMENT SCORE" in said["refused"][2]
    assert "it is one of csv, jsonl, appraise, mqm, mt-metrics-eval, pearmut, blanks" in said["unknown"][2]


@pytest.mark.slow
def test_a_newer_plugin_changes_the_keys_of_its_steps_only(tmp_path: Path) -> None:
    keys = []
    for version in ("1.0", "1.1"):
        lab = install(tmp_path / version, version).parent
        script = (
            "import json, sys; from pathlib import Path; from creamtea.study.loader import load_study; "
            "from creamtea.study.plan import plan; study = load_study(Path(sys.argv[1])).study; "
            "print(json.dumps({node.node: node.key for node in plan(study, None).nodes}))"
        )
        keys.append(printed_by(lab, script))
    before, after = keys
    assert before.keys() == after.keys()
    assert before["train/focal/1"] != after["train/focal/1"]
    # its corpus is the plug-in's, too, so that everything stands on it
    assert all(before[node] != after[node] for node in before)


def printed_by(lab: Path, script: str) -> dict[str, Any]:
    """Run a program with the package installed; return the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(lab), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", script, str(lab / "study.yaml")],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_kind_of_a_plugin_that_is_missing_is_a_mistake(lab: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = creamtea(empty, tmp_path / "home", "validate", str(lab / "study.yaml"), "--no-files")
    assert done.returncode == 2
    assert 'objective.kind: found "focal"' in done.stderr
    assert "creamtea plugins" in done.stderr


@pytest.mark.slow
def test_a_plugin_that_cannot_be_loaded_is_named(lab: Path, tmp_path: Path) -> None:
    spec = lab / "creamtea_lab" / "spec.py"
    spec.write_text("raise SystemExit('half installed')\n")
    done = creamtea(lab, tmp_path / "home", "validate", str(lab / "study.yaml"), "--no-files")
    assert done.returncode == 2
    assert "creamtea-lab 1.0" in done.stderr
    assert "half installed" in done.stderr
    listed = creamtea(lab, tmp_path / "home", "plugins")
    assert listed.returncode == 1
    assert "broken" in listed.stdout


@pytest.mark.slow
def test_an_analysis_may_not_take_the_name_of_a_step(lab: Path, tmp_path: Path) -> None:
    """Its step would run in place of creamtea's own trainings."""
    analysis = lab / "creamtea_lab" / "analysis.py"
    text = analysis.read_text()
    assert '"repetitions",\n        1,' in text
    analysis.write_text(text.replace('"repetitions",\n        1,', '"train",\n        1,'))
    done = creamtea(lab, tmp_path / "home", "validate", str(lab / "study.yaml"), "--no-files")
    assert done.returncode == 2
    assert "creamtea-lab 1.0" in done.stderr
    assert "'train': rename the step" in done.stderr
    script = "import json; from creamtea.steps.catalogue import STEP_KINDS; " + (
        "print(json.dumps({'train': STEP_KINDS['train'].module}))"
    )
    assert printed_by(lab, script) == {"train": "creamtea_workers.steps.train"}


@pytest.mark.slow
def test_a_plugin_may_take_neither_a_kind_that_exists_nor_another_ones(lab: Path, tmp_path: Path) -> None:
    other = tmp_path / "lab" / "other_lab-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-lab\nVersion: 2.0\n")
    (other / "entry_points.txt").write_text(
        "[creamtea.objectives]\nfocal = creamtea_lab.spec:Focal\nsoftmax = creamtea_lab.spec:Focal\n"
        "[creamtea.analyses]\ntwice = other_lab:Twice\n"
    )
    (lab / "other_lab.py").write_text(OTHER)
    listed = creamtea(lab, tmp_path / "home", "plugins", "--json")
    assert listed.returncode == 1
    rows = json.loads(listed.stdout)
    focal = {row["distribution"]: row["about"] for row in rows if row["kind"] == "focal"}
    assert focal.keys() == {"creamtea-lab", "other-lab"}
    assert all("uninstall all but one" in about for about in focal.values())
    softmax, twice = (row for kind in ("softmax", "twice") for row in rows if row["kind"] == kind)
    assert (softmax["state"], twice["state"]) == ("broken", "broken")
    assert "creamtea_lab.analysis has steps of its step's kind, 'repetitions', too" in twice["about"]


OTHER = """
from typing import ClassVar, Literal
from creamtea.contract.step import StepKind, StepParams
from creamtea.methods.analysis import OfVariants

class Params(StepParams):
    pass

class Twice(OfVariants):
    kind: Literal["twice"]
    title: ClassVar[str] = "Twice"
    step: ClassVar[StepKind[Params]] = StepKind(
        "repetitions", 1, "count twice", Params, inputs={}, worker="other_lab"
    )
"""
