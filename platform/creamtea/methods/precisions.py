"""Precisions in which a model decodes, and the devices that it does so on."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from creamtea.contract.kind import StepParams

Precision = Literal["fp32", "bf16", "fp16", "int8"]
Device = Literal["cpu", "gpu"]

PRECISIONS: dict[str, tuple[Device, ...]] = {
    "fp32": ("cpu", "gpu"),
    "bf16": ("cpu", "gpu"),  # fp32's range in 16 bits
    "fp16": ("gpu",),
    "int8": ("cpu",),  # weights and activations of linear layers
}
assert set(PRECISIONS) == set(get_args(Precision))
INT8_VERSION = 2  # raised when what int8 layers give changes, while other precisions stay as they are


class InPrecision(StepParams):
    """Parameters of a step that runs a model in a precision."""

    precision: Precision
    int8_version: int | None = Field(default=None, exclude_if=lambda value: value is None)

    @model_validator(mode="before")
    @classmethod
    def _with_version(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("precision") == "int8":
            return {"int8_version": INT8_VERSION, **values}
        return values
