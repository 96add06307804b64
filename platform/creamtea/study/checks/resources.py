"""What steps need to run: of the study, and of its variants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.contract.step import StepKind, StepResources
from creamtea.document.mistakes import KeyPath, Mistake, one_of
from creamtea.document.raw import Block, RawStudy, parsed
from creamtea.steps.catalogue import STEP_KINDS


def resources_of(kind: str, variant: Block, study: RawStudy) -> StepResources | None:
    """Of a variant's steps of a kind, as the plan completes them: its own, then the study's. None where they
    are malformed."""
    return parsed(StepResources, {**(study.named("resources", kind) or {}), **own_resources(kind, variant)})


def own_resources(kind: str, variant: Block) -> Block:
    """What a raw variant says of its steps of a kind; empty where it says nothing, or is malformed."""
    blocks = variant.get("resources")
    block = blocks.get(kind) if isinstance(blocks, dict) else None
    return block if isinstance(block, dict) else {}


def is_of_a_variant(kind: StepKind[Any]) -> bool:
    """Whether its steps are of one variant: its training, what is made with its model, and scores of that. A
    latency run is of several."""
    made_with = kind.inputs.keys() & {"train", "decode", "system"}
    return bool(made_with) or kind.name == "train"


def check_resources(study: RawStudy) -> Iterator[Mistake]:
    blocks: list[tuple[KeyPath, Any]] = [
        (("resources", kind), block) for kind, block in study.blocks("resources")
    ]
    for name, variant in study.blocks("variants"):
        own = variant.get("resources")
        for kind, block in own.items() if isinstance(own, dict) else ():
            of_variant: KeyPath = ("variants", name, "resources", kind)
            blocks.append((of_variant, block))
            if kind in STEP_KINDS and not is_of_a_variant(STEP_KINDS[kind]):
                allowed = "it in the study's own `resources`, as all variants share these steps"
                yield Mistake(of_variant, f"a {kind} step", allowed)
    for path, block in blocks:
        kind = path[-1]
        if kind not in STEP_KINDS:
            yield Mistake(path, "an unknown step kind", one_of(STEP_KINDS, kind))
        elif not STEP_KINDS[kind].divisible and isinstance(block, dict) and "workers" in block:
            divisible = [other.name for other in STEP_KINDS.values() if other.divisible]
            allowed = f"it under {' or '.join(divisible)}"
            yield Mistake((*path, "workers"), f"several workers for a {kind} step", allowed)
