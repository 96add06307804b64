"""Steps in words, for readers who know nothing of their paths."""

from __future__ import annotations

from creamtea.store.queries import Node


def step_title(node: Node) -> str:
    """As "train: softmax, seed 1" or "score: softmax-greedy, seed 1, test, bleu"."""
    of_system = next((name for name in ("system", "variant") if name in node.labels), None)
    names = [of_system, "seed", "test_set", "metric", "analysis"] if of_system else list(node.labels)
    words = [
        f"seed {node.labels[name]}" if name == "seed" else str(node.labels[name])
        for name in names
        if name is not None
        and isinstance(node.labels.get(name), str | int)
        and node.labels[name] != node.kind  # an analysis that is called as its kind
    ]
    return ": ".join(filter(None, [node.kind.replace("_", " "), ", ".join(words)]))
