"""Optimisers and learning rates."""

from __future__ import annotations

import math

import torch
from torch import nn

from creamtea.methods.training import Training
from creamtea_workers.training.eager import Adam, AdamW
from creamtea_workers.training.lamb import Lamb


def make_optimiser(model: nn.Module, training: Training) -> torch.optim.Optimizer:
    """The caller sets the learning rate before every update.

    Adam and AdamW, with one fused kernel per update, have the decay rates of Vaswani et al. (2017, section
    5.3); LAMB has those of its paper. Weight decay and LAMB's trust ratio apply to matrices (embeddings
    included), not to biases and normalisation, as in the code of LAMB's authors: a bias that starts at zero
    would hardly move if its steps were as long as itself.
    """
    if training.optimizer == "adam":
        return Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    vectors = [weight for weight in model.parameters() if weight.ndim < 2]
    decay = training.weight_decay
    if training.optimizer == "adamw":
        groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
        return AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    return Lamb(
        [
            {"params": matrices, "weight_decay": decay, "adapt": True},
            {"params": vectors, "weight_decay": 0.0, "adapt": False},
        ]
    )


def learning_rate(update: int, training: Training, width: int, halvings: int = 0) -> float:
    """Of update 1, 2, …; `width` is the model's.

    - inverse_sqrt: linear up to the peak at `warmup`, then peak · √(warmup / update)
    - noam: factor · width^-0.5 · min(update^-0.5, update · warmup^-1.5) (Vaswani et al. 2017, Eq. 3)
    - linear: linear up to the peak at `warmup`, then in a straight line down to 0 one update after
      `max_updates`
    - constant: linear up to the peak at `warmup`, then the peak
    - plateau: the same, times 2^-halvings

    Without a warm-up the last two begin at the peak, and linear falls from a peak at update 0.
    """
    rate, warmup = training.learning_rate, training.warmup
    if training.schedule == "noam":
        return rate * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
    if update < warmup:
        return rate * update / warmup
    if training.schedule == "plateau":
        return rate * 0.5**halvings
    if training.schedule == "linear":
        end = training.max_updates + 1  # so that no update is in vain
        return rate * (end - update) / (end - warmup)
    return rate if training.schedule == "constant" else rate * math.sqrt(warmup / update)
