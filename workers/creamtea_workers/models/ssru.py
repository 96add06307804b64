"""Simpler simple recurrent unit (Kim, Junczys-Dowmunt, Hassan, Aji, Heafield, Grundkiewicz and Bogoychev
2019, "From Research to Production and Back: Ludicrously Fast Neural Machine Translation").

Shapes: B sentences, N decoder rows, T target positions, D width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from creamtea_workers.models.packed import Lengths
from creamtea_workers.models.state import RecurrentState
from creamtea_workers.models.tree import TreeStep


class Ssru(nn.Module):
    """Replaces the self-attention of a decoder layer; a step costs the same at every position.

        f[t] = σ(W_f x[t] + b_f)
        c[t] = f[t] ⊙ c[t-1] + (1 - f[t]) ⊙ W x[t],   c[-1] = 0
        h[t] = relu(c[t])

    Only the recurrence runs position by position, and it is elementwise. Gates and cells are fp32 at
    least: in bf16 a gate above 0.996 would be 1, and the cell would never change again.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget = nn.Linear(width, width)
        self.candidate = nn.Linear(width, width, bias=False)

    def over_prefix(self, x: Tensor, packed: Lengths | None = None) -> Tensor:
        """Compute x (B, T, D) → h (B, T, D); packed sentences are not supported."""
        assert packed is None
        return F.relu(Recurrence.apply(*self.gates(x))).to(x.dtype)  # type: ignore[no-untyped-call]

    def step(self, x: Tensor, state: RecurrentState | TreeStep, layer: int) -> Tensor:
        """Compute one more position, x (N, 1, D) → h (N, 1, D); update the state's cell."""
        forget, candidate = self.gates(x)
        cell = torch.lerp(candidate, state.cell(layer), forget)
        state.set_cell(layer, cell)
        return F.relu(cell).to(x.dtype)

    def gates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return f and W x of x (..., D)."""
        precise = torch.promote_types(x.dtype, torch.float32)
        return self.forget(x).to(precise).sigmoid(), self.candidate(x).to(precise)


class Recurrence(torch.autograd.Function):
    """f, W x → c, all (B, T, D). One elementwise operation per position in either direction; autograd of
    the plain loop would compute and keep several.

    Backward, with C[t] the whole gradient that arrives at c[t]:

        C[t] = ∂c[t] + f[t+1] ⊙ C[t+1],   ∂f[t] = C[t] ⊙ (c[t-1] - W x[t]),   ∂(W x[t]) = C[t] ⊙ (1 - f[t])
    """

    @staticmethod
    def forward(ctx: Any, forget: Tensor, candidate: Tensor) -> Tensor:
        cells = torch.empty_like(candidate)
        before = torch.zeros_like(candidate[:, 0])
        for f, g, cell in zip(forget.unbind(1), candidate.unbind(1), cells.unbind(1), strict=True):
            before = torch.lerp(g, before, f, out=cell)
        ctx.save_for_backward(forget, candidate, cells)
        return cells

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        forget, candidate, cells = ctx.saved_tensors
        whole = gradient.clone()
        steps, gates = whole.unbind(1), forget.unbind(1)
        for t in range(len(steps) - 2, -1, -1):
            steps[t].addcmul_(gates[t + 1], steps[t + 1])
        change = candidate.neg()
        change[:, 1:] += cells[:, :-1]
        return change.mul_(whole), torch.addcmul(whole, whole, forget, value=-1)
