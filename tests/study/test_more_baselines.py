"""Systems that are compared with others beside their baseline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from creamtea.study.loader import load_study
from creamtea.study.plan import plan

Write = Callable[..., Path]

SCONES = "  scones: {variant: scones}"
TEST = "  test: {kind: synthetic, corpus: grammar}"
HUMAN = (TEST, "  test: {kind: files, source: a.en, target: a.de, more_references: [b.de]}")


def more(names: str, system: str = "scones: {variant: scones") -> tuple[str, str]:
    return (SCONES, f"  {system}, more_baselines: [{names}]}}")


def comparisons(path: Path) -> list[str]:
    loaded = load_study(path)
    nodes = plan(loaded.study, None, loaded.errors).nodes
    return [node.node for node in nodes if node.node.startswith("compare/") and "/bleu" in node.node]


def test_each_is_a_step_of_its_own(write: Write) -> None:
    assert comparisons(write(more("nvs, lexicon"))) == [
        "compare/lexicon/test/bleu",
        "compare/nvs/test/bleu",
        "compare/scones/test/bleu",
        "compare/scones/test/bleu/nvs",
        "compare/scones/test/bleu/lexicon",
    ]


def test_the_baseline_of_the_others_may_have_some(write: Write) -> None:
    """But those whose baseline it is are compared with it already."""
    path = write(
        ("  greedy: {variant: softmax}", "  greedy: {variant: softmax, more_baselines: [nvs, lexicon]}"),
        ("  nvs: {variant: softmax,", "  nvs: {baseline: lexicon, variant: softmax,"),
    )
    assert comparisons(path) == [
        "compare/greedy/test/bleu/nvs",
        "compare/lexicon/test/bleu",
        "compare/nvs/test/bleu",
        "compare/scones/test/bleu",
    ]


def test_itself_and_the_baseline_are_no_further_comparisons(write: Write) -> None:
    path = write(("alpha: 0.5}", "alpha: [0.2, 0.5]}"), more("greedy, scones+alpha=0.2"))
    assert [name for name in comparisons(path) if "scones" in name] == [
        "compare/scones+alpha=0.2/test/bleu",
        "compare/scones+alpha=0.5/test/bleu",
        "compare/scones+alpha=0.5/test/bleu/scones+alpha=0.2",
    ]


def test_a_grid_stands_for_its_members(write: Write) -> None:
    path = write(
        ("alpha: 0.5}", "alpha: [0.2, 0.5]}"),
        ("  nvs: {variant: softmax,", "  nvs: {more_baselines: [lexicon, scones], variant: softmax,"),
    )
    assert load_study(path).study.systems["nvs"].more_baselines == [
        "lexicon",
        "scones+alpha=0.2",
        "scones+alpha=0.5",
    ]
