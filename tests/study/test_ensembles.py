"""Ensembles in a study: one system of all seeds of a variant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from creamtea.report.configuration import describe_system
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

Write = Callable[..., Path]
GREEDY = "  greedy: {variant: softmax}"
ENSEMBLE = f"{GREEDY}\n  all: {{variant: scones, ensemble: true}}"
SEEDS = (
    "objective: {kind: scones, alpha: 0.5}",
    "objective: {kind: scones, alpha: 0.5}\n    seeds: [3, 1, 2]",
)


def test_one_decode_reads_the_models_of_all_seeds(write: Write) -> None:
    analysis = (
        "baseline: greedy",
        "baseline: greedy\nanalyses:\n  empty: {kind: empty_string, test_set: test}",
    )
    study = load_study(write((GREEDY, ENSEMBLE), SEEDS, analysis)).study
    planned = plan(study, None)
    nodes = {node.node: node for node in planned.nodes}
    steps = {step.key: step for step in planned.steps}
    trained = [nodes[f"train/scones/{seed}"].key for seed in (3, 1, 2)]
    assert [name for name in nodes if name.startswith("decode/all/")] == ["decode/all/3/test"]
    for name in ("decode/all/3/test", "empty_string/empty/all/3"):
        assert steps[nodes[name].key].inputs["train"] == trained
    single = [name for name in nodes if name.startswith("decode/scones/")]
    assert [steps[nodes[name].key].inputs["train"] for name in single] == [[key] for key in trained]
    compared = steps[nodes["compare/all/test/bleu"].key].inputs
    assert compared["system"] == [nodes["decode/all/3/test"].key]
    assert describe_system(study, "all").startswith("SCONES α=0.5, ensemble of 3, greedy")


def test_a_system_without_ensemble_is_written_as_before(write: Write) -> None:
    assert "ensemble" not in load_study(write()).spec["systems"]["greedy"]
