"""W x + b for one vector in fp32, at the speed of the memory.

Greedy search at batch size 1 reads every weight of the decoder once per subword, which takes over half of its
time with the base shape. On one core of an AMD EPYC (Zen 4), MKL and oneDNN read 8 to 16 GB/s, and this loop
18 to 21, nearly as much as plain summing (bench/row_products.py). With more rows, MKL and oneDNN are at least
as fast.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]


# `fastmath` lets sums be reordered and vectorised; infinities and NaN keep their meaning. The signature makes
# Numba compile when this module is imported, not during the first sentence.
@njit(  # type: ignore[untyped-decorator]
    "void(f4[:, ::1], f4[::1], f4[::1], f4[::1])",
    fastmath={"reassoc", "contract"},
    error_model="numpy",
    nogil=True,
)
def _multiply(weight: Floats, x: Floats, bias: Floats, y: Floats) -> None:
    """weight (K, D), x (D,), bias (K,) → y (K,)"""
    for row in range(weight.shape[0]):
        total = np.float32(0)
        for column in range(weight.shape[1]):
            total += weight[row, column] * x[column]
        y[row] = total + bias[row]


class RowProduct:
    """Replaces `nn.Linear` for a single row: x (..., D) of D elements → (..., K)."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight: Floats = weight.contiguous().numpy()
        self.bias: Floats = np.zeros(len(weight), np.float32) if bias is None else bias.numpy()

    def __call__(self, x: Tensor) -> Tensor:
        y = np.empty(len(self.bias), np.float32)
        _multiply(self.weight, x.reshape(-1).numpy(), self.bias, y)
        return torch.from_numpy(y).view(*x.shape[:-1], -1)
