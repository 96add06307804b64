"""The examples of docs/extending.md: they run, and a plug-in's version enters the keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lab_package import asked, install

pytestmark = pytest.mark.slow
KINDS = {"focal", "best_of", "frequent", "rouge", "repetitions", "reversed", "two-scales", "blanks"}
KEYS = """
from creamtea.study.loader import load_study
from creamtea.study.plan import plan
study = load_study(Path(sys.argv[1])).study
keys = {node.node: node.key for node in plan(study, None).nodes}
"""
Said = tuple[int, str, str]  # exit code, standard output and error


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return install(tmp_path / "lab").parent


# ---------------------------------------------------------------- as the page says


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process answers in which the package is installed."""
    root = tmp_path_factory.mktemp("extending")
    home = root / "home"
    home.mkdir()
    (home / "scores.txt").write_text("ann A 0 70\nann B 0 55\nben A 1 90 very good\n", encoding="utf-8")
    program = f"""{KEYS}
from creamtea.human.protocols import find_protocol
two = find_protocol("two-scales")
(scored,) = two.read([{{"adequacy": 5, "fluency": 3}}], ["Haus"])
two.check_draft({{"fluency": 3}}, "Haus")
def refusal(answer):
    try:
        two.read([answer], ["Haus"])
    except ValueError as error:
        return str(error)
said = {{
    "keys": keys,
    "score": two.scale.label(scored.step), "payload": scored.payload, "widget": two.page_data()["widget"],
    "scripts": [path.is_file() for path in two.scripts],
    "missing": refusal({{"fluency": 3}}), "wrong": refusal({{"fluency": 9, "adequacy": 1}}),
    "imported": creamtea("campaign", "import", "first", "--from", "scores.txt", "--json"),
    "exported": creamtea("campaign", "export", "first", "--format", "blanks", "-o", "out"),
    "written": Path("out", "scores.txt").read_text(),
}}
Path("scores.txt").write_text("one two\\n", encoding="utf-8")
said["refused"] = creamtea("campaign", "import", "again", "--from", "scores.txt")
said["unknown"] = creamtea("campaign", "import", "again", "--from", "out", "--format", "blank")
quicker = [f"--set=variants.{{variant}}.training.autocast=none" for variant in ("focal", "softmax")]
said["run"] = creamtea("run", sys.argv[1], "--executor", "inline", "--quiet", *quicker)
said["report"] = creamtea("report", "lab", "--json")
said["plugins"] = creamtea("plugins", "--json")
said
"""
    study = install(root / "lab")
    answer: dict[str, Any] = asked(study.parent, home, program, study)
    return answer


def test_the_study_of_the_page_runs(said: dict[str, Any]) -> None:
    code, report, error = said["run"]
    assert code == 0, report + error
    assert "focal γ=2" in report
    code, report, error = said["report"]
    assert code == 0, error
    assert '"ROUGE-1"' in report
    assert "repetitions" in report
    assert "creamtea-lab 1.0" in report  # provenance
    code, listed, error = said["plugins"]
    assert code == 0, error
    rows = json.loads(listed)
    assert {row["kind"] for row in rows} == KINDS
    assert {(row["distribution"], row["version"], row["state"]) for row in rows} == {
        ("creamtea-lab", "1.0", "ready")
    }


def test_the_rating_protocol_of_the_page_scores_and_refuses(said: dict[str, Any]) -> None:
    assert (said["score"], said["payload"]) == ("8", {"adequacy": 5, "fluency": 3})
    assert (said["widget"], said["scripts"]) == ("twoScales", [True])
    assert said["missing"] == "give adequacy and fluency"
    assert said["wrong"] == "fluency is a whole number from 1 to 5, not 9"


def test_the_format_of_the_page_is_read_written_and_recognised(said: dict[str, Any]) -> None:
    code, out, error = said["imported"]
    assert code == 0, error
    imported = json.loads(out)
    assert (imported["ratings"], imported["systems"], imported["items"]) == (3, 2, 3)
    assert [(part["count"], part["what"]) for part in imported["not_kept"]] == [(1, "comments")]
    assert said["exported"][0] == 0, said["exported"]
    assert said["written"] == "ann A 0 70\nann B 0 55\nben A 1 90\n"
    assert "blanks: RATER SYSTEM SEGMENT SCORE" in said["refused"][2]
    assert "it is one of csv, jsonl, appraise, mqm, mt-metrics-eval, pearmut, blanks" in said["unknown"][2]


def test_a_newer_plugin_changes_the_keys_of_its_steps(said: dict[str, Any], tmp_path: Path) -> None:
    study = install(tmp_path / "lab", "1.1")
    before, after = said["keys"], asked(study.parent, tmp_path / "home", f"{KEYS}keys", study)
    assert before.keys() == after.keys()
    # its corpus is the plug-in's, too, so that everything stands on it
    assert all(before[node] != after[node] for node in before)


# ---------------------------------------------------------------- what goes wrong


def validated(installed: Path, lab: Path, answer: str = "{}") -> tuple[Said, Any]:
    """What `validate` says of the lab's study where this folder is installed, and another answer of the same
    process."""
    program = f"""
from creamtea.steps.catalogue import STEP_KINDS
[creamtea("validate", sys.argv[1], "--no-files"), {answer}]
"""
    said, more = asked(installed, lab.parent / "home", program, lab / "study.yaml")
    return tuple(said), more


def test_a_kind_of_a_plugin_that_is_missing_is_a_mistake(lab: Path, tmp_path: Path) -> None:
    (code, _, error), _ = validated(tmp_path / "empty", lab)
    assert code == 2
    assert 'objective.kind: found "focal"' in error
    assert "creamtea plugins" in error


def test_a_plugin_that_cannot_be_loaded_is_named(lab: Path) -> None:
    (lab / "creamtea_lab" / "spec.py").write_text("raise SystemExit('half installed')\n")
    (code, _, error), (of_list, listed, _) = validated(lab, lab, 'creamtea("plugins")')
    assert code == 2
    assert "creamtea-lab 1.0" in error
    assert "half installed" in error
    assert of_list == 1
    assert "broken" in listed


def test_an_analysis_may_not_take_the_name_of_a_step(lab: Path) -> None:
    """Its step would run in place of creamtea's own trainings."""
    analysis = lab / "creamtea_lab" / "analysis.py"
    text = analysis.read_text()
    assert '"repetitions",\n        1,' in text
    analysis.write_text(text.replace('"repetitions",\n        1,', '"train",\n        1,'))
    (code, _, error), module = validated(lab, lab, 'STEP_KINDS["train"].module')
    assert code == 2
    assert "creamtea-lab 1.0" in error
    assert "'train': rename the step" in error
    assert module == "creamtea_workers.steps.train"


def test_a_plugin_may_take_neither_a_kind_that_exists_nor_another_ones(lab: Path, tmp_path: Path) -> None:
    other = lab / "other_lab-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-lab\nVersion: 2.0\n")
    (other / "entry_points.txt").write_text(
        "[creamtea.objectives]\nfocal = creamtea_lab.spec:Focal\nsoftmax = creamtea_lab.spec:Focal\n"
        "[creamtea.analyses]\ntwice = other_lab:Twice\n"
    )
    (lab / "other_lab.py").write_text(OTHER)
    code, listed, _ = asked(lab, tmp_path / "home", 'creamtea("plugins", "--json")')
    assert code == 1
    rows = json.loads(listed)
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
