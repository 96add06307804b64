"""Curves of trainings and of recall sweeps."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from creamtea.store.queries import CurvePoint, Node, points_of
from creamtea.study.spec import Study

LEARNING = ("train_loss", "dev_loss", "dev_perplexity", "dev_bleu", "learning_rate")
RECALL = ("recall_sentence", "recall_idiom")


@dataclass(frozen=True)
class Curve:
    series: str
    group: str  # the variant and seed of a learning curve, the selection of a recall curve
    test_set: str  # of a recall curve
    points: tuple[CurvePoint, ...]


def learning_curves(session: Session, nodes: list[Node]) -> tuple[Curve, ...]:
    """One for each training and series that it has points of."""
    trained = [node for node in nodes if node.kind == "train"]
    points = points_of(session, [node.key for node in trained])
    return tuple(
        Curve(
            series=series,
            group=f"{node.labels['variant']}, seed {node.labels['seed']}",
            test_set="",
            points=tuple(points[node.key][series]),
        )
        for node in trained
        for series in LEARNING
        if series in points.get(node.key, {})
    )


def recall_curves(session: Session, spec: Study, nodes: list[Node]) -> tuple[Curve, ...]:
    """The sweeps, each once: systems that differ in k or threshold have one curve in common.

    The sweep does not depend on a system's own k or threshold, so one curve stands for all lexicon
    systems over a corpus and its subwords, and for all NVS systems of a variant, seed and context.
    """
    measured = [node for node in nodes if node.kind == "recall" and node.state == "succeeded"]
    points = points_of(session, [node.key for node in measured])
    curves: dict[tuple[str, str, str], Curve] = {}
    for node in measured:
        test_set, group = str(node.labels["test_set"]), _recall_group(spec, node)
        for series in RECALL:
            if found := points.get(node.key, {}).get(series):
                curve = Curve(series, group, test_set, tuple(found))
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
    own = root = spec.variants[variant]
    while root.start_from is not None:
        root = spec.variants[root.start_from]
    corpus = own.alignment_corpus or own.corpus
    return f"{corpus}/{root.subwords}" + ("" if corpus == root.corpus else f" of {root.corpus}")
