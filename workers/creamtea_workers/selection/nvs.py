"""Neural vocabulary selection (Domhan et al. 2022, Eq. 3): the ids with σ(max_t (W h_t + b)) > λ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from creamtea_workers.models.interface import EOS, Memory, TranslationModel


@dataclass(frozen=True)
class NvsSelector:
    model: TranslationModel
    threshold: float

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor]:
        chosen = above(self.model.nvs_logits(memory), self.threshold)  # (B, V)
        return [row.nonzero().squeeze(1) for row in chosen]


def above(logits: Tensor, threshold: float) -> Tensor:
    """NVS logits (..., V) -> (..., V) bool: σ(logit) > threshold, and always </s>.

    Compared as logits: σ in fp32 is exactly 1 from 17 on, and would hide what lies beyond.
    """
    chosen = logits > logit(threshold)
    chosen[..., EOS] = True
    return chosen


def logit(probability: float) -> float:
    """log(p / (1 - p)); -inf at 0, inf at 1."""
    if probability in (0.0, 1.0):
        return math.inf if probability else -math.inf
    return math.log(probability) - math.log1p(-probability)
