"""Variants: their corpora, sizes and what they start from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import KeyPath, Mistake, shown
from creamtea.study.checks.reading import Groups, blocks, kind_of, known, named, parsed, repeated
from creamtea.study.spec import Architecture, Training
from creamtea.study.spec.variants import MAX_ALPHA, MIN_ALPHA


def check_variants(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    for name, variant in blocks(data, "variants"):
        yield from known(data, groups, ("variants", name), variant, "corpus", "corpora")
        yield from known(data, groups, ("variants", name), variant, "subwords", "subwords")
        yield from known(data, groups, ("variants", name), variant, "alignment_corpus", "corpora")
        architecture = parsed(Architecture, variant.get("architecture", {}))
        if architecture and architecture.width % architecture.heads:
            found = f"{architecture.heads} heads for width {architecture.width}"
            allowed = "a number of heads that divides the width"
            yield Mistake(("variants", name, "architecture", "heads"), found, allowed)
        training = parsed(Training, variant.get("training", {}))
        if training and training.warmup == 0 and training.schedule != "constant":
            allowed = "at least 1 (0 for `schedule: constant` only)"
            yield Mistake(("variants", name, "training", "warmup"), "0", allowed)
        if training and training.weight_decay and training.optimizer == "adam":
            allowed = "0 with `optimizer: adam`, which has no decay; adamw and lamb have one"
            found = str(training.weight_decay)
            yield Mistake(("variants", name, "training", "weight_decay"), found, allowed)
        yield from _check_alpha(("variants", name, "objective", "alpha"), variant.get("objective"))
        yield from _check_idle(data, groups, name, variant)
        yield from repeated(variant.get("seeds"), ("variants", name, "seeds"))
        yield from _check_start(data, groups, name, variant)


def _check_alpha(path: KeyPath, objective: Any) -> Iterator[Mistake]:
    alpha = objective.get("alpha") if kind_of(objective) == "entmax" else None
    if not isinstance(alpha, int | float) or MIN_ALPHA <= alpha <= MAX_ALPHA:
        return
    if 1 <= alpha < MIN_ALPHA:
        allowed = f"at least {MIN_ALPHA}: nearer to 1 entmax is softmax but for 0.000001 (`kind: softmax`)"
        yield Mistake(path, shown(alpha), allowed, settled=True)
    elif alpha > MAX_ALPHA:
        allowed = (
            f"at most {MAX_ALPHA:g}: beyond, a large vocabulary's threshold is below the smallest number, "
            "and all but the most likely words have had 0 for long"
        )
        yield Mistake(path, shown(alpha), allowed, settled=True)


def _check_idle(
    data: dict[str, Any], groups: Groups, name: str, variant: dict[str, Any]
) -> Iterator[Mistake]:
    """What would do nothing beside something else of the same variant."""
    nvs, at = variant.get("nvs"), ("variants", name)
    if isinstance(nvs, dict) and "positive_weight" in nvs and nvs.get("auto_weight") is not None:
        found = f"{shown(nvs['positive_weight'])} beside auto_weight {shown(nvs['auto_weight'])}"
        yield Mistake((*at, "nvs", "positive_weight"), found, "one of the two: auto_weight takes its place")
    grid = next((members for members in groups["variants"].values() if name in members), [name])
    members = [(named(data, "variants", member) or {}).get("objective") for member in grid]
    if _smooths_with_unigrams(variant.get("objective")) and not any(map(_smooths, members)):
        allowed = "a label_smoothing above 0 beside it, or no `smoothing`"
        yield Mistake((*at, "objective", "smoothing"), "unigram without label_smoothing", allowed)


def _smooths_with_unigrams(objective: Any) -> bool:
    return isinstance(objective, dict) and objective.get("smoothing") == "unigram"


def _smooths(objective: Any) -> bool:
    """In a grid over label_smoothing one member may have none."""
    return isinstance(objective, dict) and objective.get("label_smoothing", 0) != 0


def _check_start(
    data: dict[str, Any], groups: Groups, name: str, variant: dict[str, Any]
) -> Iterator[Mistake]:
    """What a variant starts from must be of the same subwords and sizes, and trained with its seeds."""
    start, at = variant.get("start_from"), ("variants", name)
    parent = named(data, "variants", start)
    if parent is None:
        yield from known(data, groups, at, variant, "start_from", "variants")
        return
    if _is_circular(data, name):
        yield Mistake((*at, "start_from"), f"{shown(start)}, a circle", "a variant trained before this")
        return
    for key, what in (("subwords", "subwords"), ("architecture", "sizes")):
        own, other = (_normal(key, entry.get(key)) for entry in (variant, parent))
        if own is not None and other is not None and own != other:
            yield Mistake((*at, key), f"other {what} than {start}'s", f"the {what} of what it starts from")
    if parent.get("nvs") is not None and variant.get("nvs") is None:
        yield Mistake((*at, "nvs"), f"nothing, where {start} has an NVS head", "`nvs`, as that one has")
    seeds, known_seeds = variant.get("seeds", [1]), parent.get("seeds", [1])
    if isinstance(seeds, list) and isinstance(known_seeds, list):
        missing = [seed for seed in seeds if seed not in known_seeds]
        if missing:
            allowed = f"seeds that {start} is trained with: {', '.join(map(str, known_seeds))}"
            yield Mistake((*at, "seeds"), ", ".join(map(str, missing)), allowed)


def _normal(key: str, value: Any) -> Any:
    return parsed(Architecture, value or {}) if key == "architecture" else value


def _is_circular(data: dict[str, Any], name: str) -> bool:
    seen, at = {name}, (named(data, "variants", name) or {}).get("start_from")
    while isinstance(at, str):
        if at in seen:
            return True
        seen.add(at)
        at = (named(data, "variants", at) or {}).get("start_from")
    return False
