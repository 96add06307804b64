"""A study with every method runs through the command line; its report has no empty cell without a reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Done

from creamtea.methods.corpora import SyntheticCorpus
from creamtea.steps.catalogue import STEP_KINDS
from creamtea_workers.corpora.synthetic import training_and_dev

pytestmark = pytest.mark.slow

STUDY = Path(__file__).with_name("methods.yaml")
ON_SAMPLED = {"greedy", "synthetic"}
PARTS = {"train": (0, 400), "domain": (400, 440), "dev": (440, 460), "test": (460, 484)}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of the synthetic language as a user's files; the first half of each is called an idiom."""
    folder = tmp_path_factory.mktemp("data")
    pairs, _ = training_and_dev(
        SyntheticCorpus(kind="synthetic", train=484, dev=1, gamma=0.1), lambda *_: None
    )
    for name, (first, last) in PARTS.items():
        (folder / f"{name}.en").write_text("".join(f"{p.source}\n" for p in pairs[first:last]))
        (folder / f"{name}.de").write_text("".join(f"{p.reference}\n" for p in pairs[first:last]))
    halves = [(len(p.source) // 2, len(p.reference) // 2) for p in pairs[460:484]]
    idioms = [
        [{"name": f"half {n % 5}", "source": [0, s], "target": [0, t]}] for n, (s, t) in enumerate(halves)
    ]
    (folder / "idioms.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in idioms))
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the study so that each system translates one test set, and those of `ON_SAMPLED` a second."""
    spec = yaml.safe_load(STUDY.read_text())
    for name, system in spec["systems"].items():
        if name not in ON_SAMPLED:
            system["test_sets"] = ["test"]
    path = tmp_path_factory.mktemp("study") / STUDY.name
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


def test_only_the_systems_of_the_study_translate(
    report: dict[str, Any], creamtea: Callable[..., Done]
) -> None:
    unknown = creamtea("translate", "methods", "nobody")
    assert unknown.returncode == 2, unknown.stderr
    assert "trains no system 'nobody'; it trains greedy, int8, " in unknown.stderr  # and not of analyses


def sections(report: dict[str, Any], key: str) -> list[dict[str, Any]]:
    (found,) = [section["blocks"] for section in report["sections"] if section["key"] == key]
    return [block for block in found if block["type"] == "section"]


def tables(section: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in section["blocks"] if block["type"] == "table"]


def test_the_study_has_every_kind_of_step() -> None:
    text = STUDY.read_text()
    kinds = {kind for kind in STEP_KINDS if f"kind: {kind}" in text}
    assert kinds >= {"beam_sizes", "search_errors", "empty_string", "depth_limited", "support_density"}
    assert kinds >= {"calibration", "recall_at_size", "nvs_context", "ibm3"}


def test_every_analysis_has_values(report: dict[str, Any]) -> None:
    kinds = sections(report, "analyses")
    analyses = [block for kind in kinds for block in kind["blocks"] if block["type"] == "section"]
    assert {analysis["key"] for analysis in analyses} == set(yaml.safe_load(STUDY.read_text())["analyses"])
    for analysis in analyses:
        for table in tables(analysis):
            assert table["rows"], analysis["key"]
            for row in table["rows"]:
                for key, cell in row["cells"].items():
                    shown = cell["value"] is not None or cell["words"] or cell["note"]
                    assert shown, (analysis["key"], row["name"], key)
        first = [cell for row in tables(analysis)[0]["rows"] for cell in row["cells"].values()]
        assert any(cell["value"] is not None for cell in first)


def test_every_system_has_a_bleu_where_it_translates(report: dict[str, Any]) -> None:
    test, sampled = (tables(section)[0] for section in sections(report, "systems"))
    systems = set(yaml.safe_load(STUDY.read_text())["systems"])
    for table, expected in ((test, systems - {"synthetic"}), (sampled, ON_SAMPLED)):
        states = {row["name"]: row["cells"]["bleu"]["state"] for row in table["rows"]}
        assert states == dict.fromkeys(expected, "ok")
