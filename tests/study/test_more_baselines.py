"""Systems that are compared with others beside their baseline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from creamtea.errors import InputError
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


BAD = {
    "nobody": ((more("nvs, sofmax"),), 'more_baselines[1]: found "sofmax", allowed a system: '),
    "twice": ((more("nvs, nvs"),), 'more_baselines[1]: found "nvs" twice, allowed each once'),
    "a pair twice": (
        (more("nvs"), ("  nvs: {variant: softmax,", "  nvs: {more_baselines: [scones], variant: softmax,")),
        "more_baselines[0]: found nvs, which is compared with scones, allowed each pair of systems once",
    ),
    "a system that does not translate the test set": (
        (
            more("nvs"),
            (TEST, f"{TEST}\n  other: {{kind: synthetic, corpus: grammar, seed: 9}}"),
            ("  nvs: {variant: softmax,", "  nvs: {test_sets: [test], baseline: lexicon, variant: softmax,"),
        ),
        "more_baselines[0]: found nvs, which does not translate other, "
        "allowed systems that translate all of scones's test sets",
    ),
    "a human reference": (
        (HUMAN, more("human"), ("baseline: greedy", "  human: {reference: 2}\nbaseline: greedy")),
        "more_baselines[0]: found human, a human reference, which metrics score against fewer references "
        "than a system, allowed a system that translates",
    ),
    "of a human reference": (
        (HUMAN, more("nvs", "scones: {reference: 2")),
        "more_baselines: found more baselines of a human reference, "
        "allowed none: metrics compare no human reference",
    ),
}


@pytest.mark.parametrize("changes, said", BAD.values(), ids=BAD.keys())
def test_a_mistake_is_named(write: Write, changes: tuple[tuple[str, str], ...], said: str) -> None:
    path = write(*changes)
    with pytest.raises(InputError) as caught:
        load_study(path)
    (line,) = [line for line in str(caught.value).splitlines() if "scones.more_baselines" in line]
    assert f"systems.scones.{said}" in line


def test_a_mistake_of_a_grid_is_named_where_it_is_written(write: Write) -> None:
    path = write(("alpha: 0.5}", "alpha: [0.2, 0.5]}"), more("scones, grumpy"))
    with pytest.raises(InputError) as caught:
        load_study(path)
    assert 'systems.scones.more_baselines[1]: found "grumpy"' in str(caught.value)
