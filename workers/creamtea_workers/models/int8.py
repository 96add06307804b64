"""Linear layers in int8 on a CPU: weights are quantised once, activations in every call.

A weight has one scale per output row (its largest magnitude becomes L, see below), so that rows can be taken
out of a quantised matrix. An activation has one scale per vector, not one per tensor as in torch's dynamic
quantisation, where a sentence's output depends on its batch mates. All sums are exact:

    y = s_x · s_w ⊙ (q_w q_x) + b,   q_w = round(w / s_w),   s_w = max |w| / L,
                                     q_x = round(x / s_x),   s_x = max |x| / 127

Both kinds of layer round x here, so that a row of one has the bits of the other's: FBGEMM, which rounds by
itself, is given q_x and the scale 1.

The products are FBGEMM's (packed weights) and oneDNN's (rows picked for one sentence, not worth packing).
Both shift q_x to u8, 1 … 255. With AVX-512 VNNI (Intel from Ice Lake and Cascade Lake on, AMD from Zen 4 on)
they add products in int32, and L is 127. The instruction that other x86 processors have for this
(`vpmaddubsw`) adds two products in int16 and saturates at 32,767, an error of up to a third of a layer's
output: there L is 64, as 2 · 255 · 64 = 32,640 fits, and a layer's error is 1.6 % instead of 1 %. torch's
`reduce_range` takes the bit from the activations instead, which does not help: oneDNN adds 128 to any input.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor

from creamtea.errors import StepError

MAX_INT8 = 127  # magnitude of an activation; and of a weight, where sums do not saturate
MAX_SATURATING = 64  # magnitude of a weight, where they do
PROBE = 64  # rows and columns
MIN_SCALE = 1e-37  # instead of 0, of a row of zeros
ENGINE = "fbgemm"
Packed: Any = torch.classes.quantized.LinearPackedParamsBase  # a class that only TorchScript knows


def require_int8() -> None:
    """Raise StepError if torch has no int8 kernels for the processor."""
    if ENGINE not in torch.backends.quantized.supported_engines:
        raise StepError(
            "precision int8 needs an x86 processor with AVX2, and torch has no FBGEMM on this machine: give "
            "the system another precision"
        )


@cache
def largest_weight() -> int:
    """Return L: 64 if one of the two products saturates on this processor, else 127.

    It is tested once per process, by multiplying the largest numbers.
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
        self.packed = pack(matrix)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> Int8Linear:
        return cls(Int8Matrix.of(weight, bias))

    def __call__(self, x: Tensor) -> Tensor:
        y: Tensor = _product(x, self.packed, self.bias)
        return y


def _written_out(x: Tensor, packed: Packed, bias: Tensor) -> Tensor:
    # TorchScript does not see a module's constants: 127 is MAX_INT8, 1e-37 MIN_SCALE, 128 FBGEMM's zero
    scale = x.abs().amax([-1], True).div_(127).clamp_(min=1e-37)
    rounded = (x / scale).round_()
    y = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(rounded, 1.0, 128, packed)
    return torch.addcmul(bias, y, scale)


with warnings.catch_warnings():
    # Scripted because calling this operator from Python takes as long as a product of 512 × 512: decoding
    # in int8 is a fifth faster. TorchScript is deprecated, but will exist as long as the operator does.
    warnings.simplefilter("ignore", DeprecationWarning)
    _product = torch.jit.script(_written_out)


def pack(matrix: Int8Matrix) -> Any:
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
