"""Adam with warm-up and inverse square root decay (Vaswani et al. 2017, section 5.3)."""

from __future__ import annotations

import math

import torch
from torch import nn

from creamtea.study.spec import Training


def make_optimiser(model: nn.Module) -> torch.optim.Adam:
    """One fused kernel an update; the learning rate is set before every update."""
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


def learning_rate(update: int, training: Training) -> float:
    """Of update 1, 2, …: linear up to the peak at `warmup`, then peak · √(warmup / update)."""
    if update < training.warmup:
        return training.learning_rate * update / training.warmup
    return training.learning_rate * math.sqrt(training.warmup / update)
