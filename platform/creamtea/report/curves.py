"""Curves of recall sweeps."""

from __future__ import annotations

from dataclasses import dataclass

from creamtea.report.cells import Material
from creamtea.store.queries import CurvePoint, Node
from creamtea.study.spec import Study

RECALL = ("recall_sentence", "recall_idiom", "recall_idiom_words")


@dataclass(frozen=True)
class Curve:
    series: str
    group: str  # the selection
    test_set: str
    points: tuple[CurvePoint, ...]


def recall_curves(material: Material) -> tuple[Curve, ...]:
    """The sweeps, each once: systems that differ in k or threshold have one curve in common.

    The sweep does not depend on a system's own k or threshold, so one curve stands for all lexicon
    systems over a corpus and its subwords, and for all NVS systems of a variant, seed and context.
    """
    curves: dict[tuple[str, str, str], Curve] = {}
    for step in material.of("recall"):
        if step.node.state != "succeeded":
            continue
        test_set, group = str(step.node.labels["test_set"]), _recall_group(material.spec, step.node)
        for series in RECALL:
            if points := material.points.get(step.node.key, {}).get(series):
                curve = Curve(series, group, test_set, tuple(points))
                curves.setdefault((series, group, test_set), curve)
    return tuple(curves.values())


def _recall_group(spec: Study, node: Node) -> str:
    name = str(node.labels["variant"])
    selection = spec.systems[str(node.labels["system"])].selection
    if not selection.needs_model:
        several = len({_lexicon(spec, other) for other in spec.variants}) > 1
        return f"{selection.curve()}, {_lexicon(spec, name)}" if several else selection.curve()
    seed = f", seed {node.labels['seed']}" if len(spec.variants[name].seeds) > 1 else ""
    return f"{selection.curve()}, {name}{seed}"


def _lexicon(spec: Study, variant: str) -> str:
    """What a variant's lexicon is aligned on and in which subwords, those of the variant that a chain of
    adaptations began with: "news/bpe", "idioms/bpe of news"."""
    own, root = spec.variants[variant], spec.variants[spec.root_of(variant)]
    corpus = own.alignment_corpus or own.corpus
    return f"{corpus}/{root.subwords}" + ("" if corpus == root.corpus else f" of {root.corpus}")
