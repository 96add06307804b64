"""Precisions in which a model decodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Precision = Literal["fp32", "bf16", "fp16", "int8"]


@dataclass(frozen=True)
class PrecisionFacts:
    """`devices`: where a model in this precision runs."""

    name: Precision
    devices: frozenset[Literal["cpu", "gpu"]]
    about: str


_EVERYWHERE: frozenset[Literal["cpu", "gpu"]] = frozenset(("cpu", "gpu"))

PRECISIONS: dict[str, PrecisionFacts] = {
    facts.name: facts
    for facts in (
        PrecisionFacts("fp32", _EVERYWHERE, "32-bit floating point"),
        PrecisionFacts("bf16", _EVERYWHERE, "16-bit floating point with fp32's range"),
        PrecisionFacts("fp16", frozenset(("gpu",)), "16-bit floating point"),
        PrecisionFacts("int8", frozenset(("cpu",)), "linear layers with int8 weights and activations"),
    )
}
assert set(PRECISIONS) == set(get_args(Precision))
