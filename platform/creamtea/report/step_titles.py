"""Steps in words, for readers who know nothing of their paths."""

from __future__ import annotations

from creamtea.store.queries import Node

BEFORE = {"seed": "seed", "baseline": "against"}  # a word before a label's value


def step_title(node: Node) -> str:
    """As "train: softmax, seed 1", "score: softmax-greedy, seed 1, test, bleu" or "compare: scones, against
    softmax, test, bleu"."""
    of_system = next((name for name in ("system", "variant") if name in node.labels), None)
    names = (
        [of_system, "baseline", "seed", "test_set", "metric", "analysis"] if of_system else list(node.labels)
    )
    words = [
        f"{BEFORE[name]} {node.labels[name]}" if name in BEFORE else str(node.labels[name])
        for name in names
        if name is not None
        and isinstance(node.labels.get(name), str | int)
        and node.labels[name] != node.kind  # an analysis that is called as its kind
    ]
    return ": ".join(filter(None, [node.kind.replace("_", " "), ", ".join(words)]))
