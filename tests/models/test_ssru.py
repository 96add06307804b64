"""The SSRU against its equations, a position at a time."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from creamtea_workers.models.state import RecurrentState
from creamtea_workers.models.transformer import Recurrence, Ssru

WIDTH = 6


def written_out(forget: Tensor, candidate: Tensor) -> Tensor:
    """c[t] = f[t] ⊙ c[t-1] + (1 - f[t]) ⊙ W x[t]; all (B, T, D)."""
    cell, cells = torch.zeros_like(candidate[:, 0]), []
    for t in range(candidate.shape[1]):
        cell = forget[:, t] * cell + (1 - forget[:, t]) * candidate[:, t]
        cells.append(cell)
    return torch.stack(cells, 1)


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(0, 1000))
def test_cells_and_gradients_are_those_of_the_loop(batch: int, length: int, seed: int) -> None:
    torch.manual_seed(seed)
    forget = torch.rand(batch, length, WIDTH, dtype=torch.float64, requires_grad=True)
    candidate = torch.randn(batch, length, WIDTH, dtype=torch.float64, requires_grad=True)
    arriving = torch.randn_like(candidate)
    cells, expected = Recurrence.apply(forget, candidate), written_out(forget, candidate)
    torch.testing.assert_close(cells, expected, atol=1e-12, rtol=1e-12)
    ours = torch.autograd.grad(cells, (forget, candidate), arriving)
    theirs = torch.autograd.grad(expected, (forget, candidate), arriving)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-12)


def test_the_unit_is_the_papers_equations() -> None:
    torch.manual_seed(1)
    unit = Ssru(WIDTH).double()
    x = torch.randn(2, 5, WIDTH, dtype=torch.float64)
    gate = 1 / (1 + torch.exp(-(x @ unit.forget.weight.T + unit.forget.bias)))
    expected = written_out(gate, x @ unit.candidate.weight.T).clamp(min=0)
    torch.testing.assert_close(unit.over_prefix(x), expected, atol=1e-12, rtol=1e-12)


def test_gates_that_are_open_or_shut_for_long_stay_exact() -> None:
    """A product of gates over a thousand positions, which a scan in logarithms would have to add up."""
    shut = torch.ones(1, 1000, 1)
    shut[0, 0] = 0.0
    cells = Recurrence.apply(shut, torch.full((1, 1000, 1), 3.0))
    assert torch.equal(cells, torch.full_like(cells, 3.0))
    passing = Recurrence.apply(1 - shut, torch.arange(1000.0)[None, :, None])
    assert torch.equal(passing[0, 1:, 0], torch.arange(1.0, 1000.0))


@pytest.mark.parametrize("autocast", [True, False], ids=["bf16 autocast", "bf16 weights"])
def test_cells_stay_in_fp32(autocast: bool) -> None:
    torch.manual_seed(1)
    dtype = torch.float32 if autocast else torch.bfloat16
    unit, x = Ssru(WIDTH).to(dtype), torch.randn(2, 5, WIDTH, dtype=dtype)
    state = RecurrentState(torch.zeros(1, 2, 2, 2, 3, WIDTH // 2, dtype=dtype), None)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast), torch.no_grad():
        together = unit.over_prefix(x)
        alone = [unit.step(x[:, t : t + 1], state, 0) for t in range(5)]
    assert state.cell(0).dtype == torch.float32
    assert together.dtype == dtype
    torch.testing.assert_close(torch.cat(alone, 1), together, atol=0.01, rtol=0.01)  # bf16 products


def test_every_parameter_learns_under_autocast() -> None:
    torch.manual_seed(1)
    unit = Ssru(WIDTH)
    x = torch.randn(2, 5, WIDTH, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        unit.over_prefix(x).sum().backward()
    for leaf in (x, *unit.parameters()):
        assert leaf.grad.abs().sum() > 0
