"""Prepares a trained model for translation: weights are packed once for the kernels that use them.

On a CPU torch computes fp32 products by MKL, which on processors other than Intel's has half the speed of
oneDNN with packed weights, and a third for a few rows of a large matrix. So the larger weights are packed for
oneDNN, and a single row is multiplied by `row_product`. Results differ from the unprepared model's by
rounding only (int8: see `int8`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from creamtea.errors import StepError
from creamtea.methods.searches import Precision
from creamtea_workers.models.base import Model
from creamtea_workers.models.int8 import Int8Linear, Int8Matrix, require_int8
from creamtea_workers.models.nvs import NvsHead

MIN_PACKED = 2**18  # elements of an fp32 weight; packing a smaller one costs more per call than it saves
# With two, oneDNN takes 1.5 times as long as the loop on one (docs/results/benchmarks.md).
ROW_THREADS = 2
Layer = Callable[[Tensor], Tensor]  # (..., D) → (..., K)


@torch.no_grad()
def prepare(model: Model, precision: Precision) -> Model:
    """Prepare a model on its device for translation; `model` itself is changed, and can no longer be trained
    or saved. StepError if the device does not support the precision."""
    on_cpu = model.output_weight.device.type == "cpu"
    if precision == "fp16" and on_cpu:
        raise StepError(
            "precision fp16 is for GPUs: give the step one (`resources: {decode: {gpus: 1}}`), or the system "
            "precision fp32, bf16 or int8"
        )
    if precision == "int8" and not on_cpu:
        raise StepError(
            "precision int8 is for CPUs: take the GPU from the step (`gpus` of its kind under `resources`), "
            "or give the system precision fp16 or bf16"
        )
    if precision in ("bf16", "fp16"):
        return model.to({"bf16": torch.bfloat16, "fp16": torch.float16}[precision])
    if precision == "int8":
        require_int8()
        model.may_pad = False
        return pack(model, Int8Linear.of, Int8Projection)
    return pack(model, pack_if_large, pack_if_large) if on_cpu else model


def pack(
    model: Model,
    linear: Callable[[Tensor, Tensor | None], Layer],
    projection: Callable[[Tensor, Tensor], Layer],
) -> Model:
    """Replace the model's layers. The new ones are not modules: the overhead of calling an `nn.Module` is as
    long as a small layer takes."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                replace(parent, name, linear(child.weight.detach(), detached(child.bias)))
            elif isinstance(child, nn.LayerNorm):
                replace(parent, name, normalisation(child))
    weight, bias = model.output_weight.detach(), model.output_bias.detach()
    model.projection = projection(weight, bias)
    if isinstance(model.nvs, NvsHead):
        model.nvs.product = linear(model.nvs.weight.detach(), None)
        del model.nvs.weight
    return model


def replace(parent: nn.Module, name: str, layer: Callable[..., Tensor]) -> None:
    delattr(parent, name)
    setattr(parent, name, layer)


def detached(bias: Tensor | None) -> Tensor | None:
    return None if bias is None else bias.detach()


def normalisation(layer: nn.LayerNorm) -> Layer:
    shape, epsilon = list(layer.normalized_shape), layer.eps
    weight, bias = detached(layer.weight), detached(layer.bias)
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


# ---------------------------------------------------------------- fp32


class PackedLinear:
    """`nn.Linear` in fp32 with the weight in oneDNN's layout. With few threads a single row, as in greedy
    search at batch size 1, has a kernel of its own (`row_product`).

    oneDNN compiles a kernel for each number of rows (about a millisecond), so rows are padded to a few
    different numbers. One row becomes four: oneDNN's product with one vector is slower than that with four.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.out_features, self.bias = weight.shape[0], bias
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        self.multiply = torch.ops.mkldnn._linear_pointwise
        self.of_row: Layer | None = None
        if torch.get_num_threads() <= ROW_THREADS:
            # imported where a large weight asks for it: Numba takes a second to import and compile
            from creamtea_workers.models.row_product import RowProduct

            self.of_row = RowProduct(weight, bias)

    def __call__(self, x: Tensor) -> Tensor:
        if self.of_row is not None and x.numel() == x.shape[-1]:
            return self.of_row(x)
        flat = x.reshape(-1, x.shape[-1])
        rows = len(flat)
        if rows < padded_rows(rows):
            flat = F.pad(flat, (0, 0, 0, padded_rows(rows) - rows))
        y: Tensor = self.multiply(flat, self.packed, self.bias, "none", [], "")
        return y[:rows].view(*x.shape[:-1], self.out_features)


def pack_if_large(weight: Tensor, bias: Tensor | None) -> Layer:
    if weight.numel() >= MIN_PACKED and has_onednn():
        return PackedLinear(weight, bias)
    return lambda x: F.linear(x, weight, bias)


@cache
def has_onednn() -> bool:
    """Return True if torch was built with oneDNN's packed products. For macOS on ARM it is not."""
    names = ("_linear_pointwise", "_reorder_linear_weight")
    return torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)


def padded_rows(rows: int) -> int:
    step = 4 if rows <= 8 else 8 if rows <= 64 else 64
    return -(-rows // step) * step


# ---------------------------------------------------------------- int8


class Int8Projection(Int8Linear):
    """The output layer, and the matrix of which one sentence may use some rows."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.matrix = Int8Matrix.of(weight, bias)
        super().__init__(self.matrix)
