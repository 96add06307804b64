"""Prepare a trained model for translation: pack weights once for the kernels that use them.

On a CPU torch computes fp32 products by MKL. On processors not made by Intel, oneDNN with packed weights is
faster, most for a few rows of a large matrix. So the larger weights are packed for oneDNN, and a single row
is multiplied by `row_product`. Results differ from the unprepared model's by rounding only,
except in int8.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from creamtea.errors import StepError
from creamtea.methods.searches import Precision
from creamtea_workers.models.model import Model
from creamtea_workers.models.nvs import NvsHead

MIN_PACKED = 2**18  # elements of an fp32 weight; packing a smaller one costs more per call than it saves
# On two threads greedy search takes 1.4 to 1.6 times as long by oneDNN (docs/results/data/speed.yaml).
ROW_THREADS = 2
Layer = Callable[[Tensor], Tensor]  # (..., D) → (..., K)


@torch.no_grad()
def prepare(model: Model, precision: Precision) -> Model:
    """Prepare a model on its device for translation.

    Changes `model` itself, which can no longer be trained or saved. Raises StepError if the device does not
    support the precision.
    """
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
        if ENGINE not in torch.backends.quantized.supported_engines:
            raise StepError(
                "precision int8 needs an x86 processor with AVX2, and torch has no FBGEMM on this machine: "
                "give the system another precision"
            )
        model.may_pad = False
        return pack(model, Int8Linear.of, Int8Projection)
    return pack(model, pack_if_large, pack_if_large) if on_cpu else model


def pack(
    model: Model,
    linear: Callable[[Tensor, Tensor | None], Layer],
    projection: Callable[[Tensor, Tensor], Layer],
) -> Model:
    """Replace the model's layers by plain functions.

    Calling an `nn.Module` takes as long as a small layer itself.
    """
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
    """`nn.Linear` in fp32 with the weight in oneDNN's layout.

    With few threads a single row, as in greedy search at batch size 1, has a special kernel (`row_product`).
    oneDNN compiles a kernel for each number of rows (about a millisecond), so rows are padded to a few
    different numbers. One row becomes four: oneDNN multiplies four vectors faster than one.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.out_features, self.bias = weight.shape[0], bias
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        self.multiply = torch.ops.mkldnn._linear_pointwise
        self.of_row: Layer | None = None
        if torch.get_num_threads() <= ROW_THREADS:
            # imported only for large weights: Numba takes a second to import and compile
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
    """Return True if torch was built with oneDNN's packed products (on macOS with ARM it is not)."""
    names = ("_linear_pointwise", "_reorder_linear_weight")
    return torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)


def padded_rows(rows: int) -> int:
    step = 4 if rows <= 8 else 8 if rows <= 64 else 64
    return -(-rows // step) * step


# ---------------------------------------------------------------- int8


# Weights are quantised once, activations in every call.
#
# A weight has one scale per output row (the row's largest magnitude becomes L, see below), so that single
# rows of a quantised matrix can be selected. An activation has one scale per vector, not one per tensor as in
# torch's dynamic quantisation, where a sentence's output depends on its batch mates. All sums are exact:
#
#     y = s_x · s_w ⊙ (q_w q_x) + b,   q_w = round(w / s_w),   s_w = max |w| / L,
#                                      q_x = round(x / s_x),   s_x = max |x| / 127
#
# Both kinds of layer round x here, so that their outputs are equal to the bit; FBGEMM, which rounds by
# itself, gets q_x and the scale 1.
#
# The products are FBGEMM's (packed weights) and oneDNN's (rows picked for one sentence, not worth packing).
# Both shift q_x to u8, 1 … 255. With AVX-512 VNNI (Intel from Ice Lake and Cascade Lake on, AMD from Zen 4
# on) they add products in int32, and L is 127. On other x86 processors the instruction for this
# (`vpmaddubsw`) adds two products in int16 and saturates at 32,767, an error of up to a third of a layer's
# output: there L is 64, as 2 · 255 · 64 = 32,640 fits, and a layer's error is 1.6 % instead of 1 %. torch's
# `reduce_range` takes the bit from the activations instead, which does not help: oneDNN adds 128 to any
# input.


MAX_INT8 = 127  # largest magnitude of an activation, and of a weight if sums do not saturate
MAX_SATURATING = 64  # largest magnitude of a weight if sums saturate
PROBE = 64  # rows and columns
MIN_SCALE = 1e-37  # scale of a row of zeros
ENGINE = "fbgemm"
Packed: Any = torch.classes.quantized.LinearPackedParamsBase  # a class that only TorchScript knows


@cache
def largest_weight() -> int:
    """Return L: 64 if one of the two products saturates on this processor, else 127.

    Tested once per process, by multiplying the largest numbers.
    """
    largest = torch.full((PROBE, PROBE), MAX_INT8, dtype=torch.int8)
    matrix = Int8Matrix(largest, torch.full((PROBE,), 1 / MAX_INT8), torch.zeros(PROBE))
    ones = torch.ones(2, PROBE)
    exact = all(
        torch.allclose(product(ones), torch.tensor(float(PROBE))) for product in (matrix, Int8Linear(matrix))
    )
    return MAX_INT8 if exact else MAX_SATURATING


class Int8Matrix:
    """A weight (K, D) in int8 with one scale per row, and a bias (K,) in fp32."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor) -> None:
        self.weight, self.scale, self.bias = weight, scale, bias  # (K, D) int8, (K,), (K,)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> Int8Matrix:
        """Quantise a weight (K, D) in fp32."""
        scale = (weight.abs().amax(1) / largest_weight()).clamp_(min=MIN_SCALE)
        quantised = (weight / scale.unsqueeze(1)).round_().to(torch.int8)
        return cls(quantised, scale, torch.zeros_like(scale) if bias is None else bias)

    def rows(self, ids: Tensor) -> Int8Matrix:
        """Select the rows ids (K',)."""
        return Int8Matrix(*(part.index_select(0, ids) for part in (self.weight, self.scale, self.bias)))

    def __call__(self, x: Tensor) -> Tensor:
        """x (n, D) → (n, K)"""
        scale = x.abs().amax(-1, keepdim=True).div_(MAX_INT8).clamp_(min=MIN_SCALE)
        y = torch._int_mm((x / scale).round_().to(torch.int8), self.weight.t()) * self.scale
        return torch.addcmul(self.bias, y, scale)


class Int8Linear:
    """Replaces `nn.Linear`: x (..., D) → (..., K)."""

    def __init__(self, matrix: Int8Matrix) -> None:
        self.bias = matrix.bias
        self.packed = pack_rows(matrix)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> Int8Linear:
        return cls(Int8Matrix.of(weight, bias))

    def __call__(self, x: Tensor) -> Tensor:
        return _product(x, self.packed, self.bias)


def _written_out(x: Tensor, packed: Packed, bias: Tensor) -> Tensor:
    # TorchScript does not see a module's constants: 127 is MAX_INT8, 1e-37 MIN_SCALE, 128 FBGEMM's zero
    scale = x.abs().amax([-1], True).div_(127).clamp_(min=1e-37)
    rounded = (x / scale).round_()
    y = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(rounded, 1.0, 128, packed)
    return torch.addcmul(bias, y, scale)


with warnings.catch_warnings():
    # Scripted because calling this operator from Python is slow. TorchScript is deprecated, but will exist as
    # long as the operator does.
    warnings.simplefilter("ignore", DeprecationWarning)
    _product = torch.jit.script(_written_out)


def pack_rows(matrix: Int8Matrix) -> Any:
    zeros = torch.zeros(len(matrix.scale), dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that quantised tensors will move to another package
        quantised = torch._make_per_channel_quantized_tensor(matrix.weight, matrix.scale.double(), zeros, 0)
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = ENGINE
        try:
            return torch.ops.quantized.linear_prepack(quantised, None)
        finally:
            torch.backends.quantized.engine = before


class Int8Projection(Int8Linear):
    """The output layer, with `matrix`, from which rows can be selected for one sentence."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.matrix = Int8Matrix.of(weight, bias)
        super().__init__(self.matrix)
