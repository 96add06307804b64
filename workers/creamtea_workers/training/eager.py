"""Optimisers whose first use does not import torch's compiler."""

from __future__ import annotations

from inspect import unwrap

import torch
from torch.optim import Optimizer


class Eager(Optimizer):
    """Optimizer's methods without the wrappers that hide them from `torch.compile`.

    Their first call imports `torch._dynamo` and sympy, which takes about as long as torch itself; nothing
    here is compiled.
    """

    add_param_group = unwrap(Optimizer.add_param_group)
    zero_grad = unwrap(Optimizer.zero_grad)
    state_dict = unwrap(Optimizer.state_dict)
    load_state_dict = unwrap(Optimizer.load_state_dict)


class Adam(Eager, torch.optim.Adam):
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))


class AdamW(Eager, torch.optim.AdamW):
    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
