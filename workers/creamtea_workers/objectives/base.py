"""The objective's interface: one object serves training, search and scoring."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Objective(Protocol):
    """`hidden` (N, D), `weight` (V, D), `bias` (V,), `targets` (N,) ids. Numerics in fp32."""

    def loss(self, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        """Sum of the token losses (a scalar), differentiable in hidden, weight and bias."""

    def log_scores(self, logits: Tensor) -> Tensor:
        """Token log-scores ≤ 0 of logits (..., V or K): log softmax, log sigmoid, log entmax (-inf off
        the support). Greedy search needs only the logits' arg max: every objective is monotone in them."""

    def initial_bias(self, vocabulary_size: int) -> float:
        """What the output bias starts at (SCONES: -log V, see there)."""
