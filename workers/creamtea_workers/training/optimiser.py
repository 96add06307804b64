"""Optimisers and learning rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from creamtea.methods.training import Training


class Eager(Optimizer):
    """Optimizer's methods without the wrappers that hide them from `torch.compile`.

    The wrappers' first call imports `torch._dynamo` and sympy, which takes long. Nothing here is compiled.
    """

    add_param_group = unwrap(Optimizer.add_param_group)
    zero_grad = unwrap(Optimizer.zero_grad)
    state_dict = unwrap(Optimizer.state_dict)
    load_state_dict = unwrap(Optimizer.load_state_dict)


class Adam(Eager, torch.optim.Adam):
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))


class AdamW(Eager, torch.optim.AdamW):
    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))


class Lamb(Eager):
    """LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76 Minutes").

    Algorithm 2 is a step of Adam, scaled to the length of the weights times the learning rate.

        r = m̂ / (√v̂ + ε),   u = r + λ w,   w ← w - η · ‖w‖ / ‖u‖ · u

    m̂ and v̂ are Adam's bias-corrected moments, λ is `weight_decay`. The trust ratio ‖w‖ / ‖u‖ is computed per
    parameter tensor; it is 1 if either norm is 0, and in groups whose `adapt` is False.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float = 0.0) -> None:
        usual = {"betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.0, "adapt": True}
        super().__init__(groups, {"lr": lr, **usual})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient; closures are not supported."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    update = self._adam(weight, weight.grad, group)
                    update.add_(weight, alpha=group["weight_decay"])
                    if group["adapt"]:
                        update.mul_(trust_ratio(weight, update))
                    weight.add_(update, alpha=-group["lr"])

    def _adam(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> Tensor:
        """Update the moments by the gradient; return r."""
        state = self.state[weight]
        if not state:
            state["step"] = 0
            state["mean"], state["square"] = torch.zeros_like(weight), torch.zeros_like(weight)
        state["step"] += 1
        (first, second), step = group["betas"], state["step"]
        state["mean"].lerp_(gradient, 1 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        spread = (state["square"] / (1 - second**step)).sqrt_().add_(group["eps"])
        return state["mean"].div(spread).div_(1 - first**step)


def trust_ratio(weight: Tensor, update: Tensor) -> Tensor:
    """Return ‖w‖ / ‖u‖, or 1 if either is 0, as a scalar tensor (without waiting for a GPU)."""
    length, step = weight.norm(), update.norm()
    return torch.where((length > 0) & (step > 0), length / step, 1.0)


def make_optimiser(model: nn.Module, training: Training) -> torch.optim.Optimizer:
    """Make the optimiser; the caller sets its learning rate before every update.

    Adam and AdamW, with one fused kernel per update, have the decay rates of Vaswani et al. (2017, section
    5.3); LAMB has its paper's. Weight decay and LAMB's trust ratio apply to matrices (embeddings included),
    not to biases and normalisation, as in the code of LAMB's authors: a bias that starts at zero would hardly
    move if the length of its steps were proportional to its own.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    if training.optimizer == "adam":
        return Adam(weights, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    matrices = [weight for weight in weights if weight.ndim > 1]
    vectors = [weight for weight in weights if weight.ndim < 2]
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
    """Return the learning rate of update 1, 2, …; `width` is the model's width.

    - inverse_sqrt: linear up to the peak at `warmup`, then peak · √(warmup / update)
    - noam: factor · width^-0.5 · min(update^-0.5, update · warmup^-1.5) (Vaswani et al. 2017, Eq. 3)
    - linear: linear up to the peak at `warmup`, then in a straight line down to 0 one update after
      `max_updates`
    - constant: linear up to the peak at `warmup`, then the peak
    - plateau: like constant, times 2^-halvings

    Without a warm-up, constant and plateau begin at the peak, and linear falls from a peak at update 0.
    """
    rate, warmup = training.learning_rate, training.warmup
    if training.schedule == "noam":
        return rate * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
    if update < warmup:
        return rate * update / warmup
    if training.schedule == "plateau":
        return rate * 0.5**halvings
    if training.schedule == "linear":
        end = training.max_updates + 1  # so that the last update's rate is above 0
        return rate * (end - update) / (end - warmup)
    return rate if training.schedule == "constant" else rate * math.sqrt(warmup / update)
