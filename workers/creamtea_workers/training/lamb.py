"""LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76 Minutes")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from creamtea_workers.training.eager import Eager


class Lamb(Eager):
    """Algorithm 2: a step of Adam, scaled to the length of the weights times the learning rate.

        r = m̂ / (√v̂ + ε),   u = r + λ w,   w ← w - η · ‖w‖ / ‖u‖ · u

    m̂ and v̂ are Adam's bias-corrected moments, λ is `weight_decay`. The trust ratio ‖w‖ / ‖u‖ is that of a
    whole parameter tensor; it is 1 where either norm is 0, and in groups whose `adapt` is False.
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
        """r, after the moments are updated by the gradient."""
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
    """‖w‖ / ‖u‖ as a scalar tensor (no wait for a GPU), 1 where either is 0."""
    length, step = weight.norm(), update.norm()
    return torch.where((length > 0) & (step > 0), length / step, 1.0)
