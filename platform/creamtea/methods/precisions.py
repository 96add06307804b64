"""Precisions in which a model decodes, and the devices that it does so on."""

from __future__ import annotations

from typing import Literal, get_args

Precision = Literal["fp32", "bf16", "fp16", "int8"]
Device = Literal["cpu", "gpu"]

PRECISIONS: dict[str, tuple[Device, ...]] = {
    "fp32": ("cpu", "gpu"),
    "bf16": ("cpu", "gpu"),  # fp32's range in 16 bits
    "fp16": ("gpu",),
    "int8": ("cpu",),  # weights and activations of linear layers
}
assert set(PRECISIONS) == set(get_args(Precision))
