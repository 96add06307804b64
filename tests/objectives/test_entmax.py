"""1.5-entmax against the entmax package, and Fenchel-Young label smoothing against its definition."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from creamtea.study.spec import Entmax
from creamtea_workers.objectives import build_objective
from creamtea_workers.objectives.entmax import conjugate, entmax15, smoothing_constant, threshold

entmax = pytest.importorskip("entmax")


@pytest.mark.parametrize("scale", [1e-4, 0.1, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("size", [1, 2, 33, 700])
def test_is_that_of_the_entmax_package(scale: float, size: int) -> None:
    """From the whole row in the support (small scales) to one word."""
    torch.manual_seed(1)
    logits = torch.randn(20, size, dtype=torch.float64) * scale
    torch.testing.assert_close(entmax15(logits), entmax.entmax15(logits, -1), atol=1e-9, rtol=1e-9)


@settings(deadline=None)
@given(st.lists(st.integers(-8, 8), min_size=1, max_size=80), st.sampled_from([0.01, 0.3, 1.0]))
def test_rows_with_many_equal_logits(values: list[int], scale: float) -> None:
    logits = torch.tensor([values], dtype=torch.float64) * scale
    p = entmax15(logits)
    assert p.sum().item() == pytest.approx(1.0, abs=1e-9)
    torch.testing.assert_close(p, entmax.entmax15(logits, -1), atol=1e-7, rtol=0)


def test_large_logits_lose_no_digits_in_fp32() -> None:
    torch.manual_seed(1)
    logits = torch.randn(8, 300) + 3000
    exact = entmax15(logits.double())
    torch.testing.assert_close(entmax15(logits).double(), exact, atol=1e-5, rtol=0)
    torch.testing.assert_close(entmax15(logits).sum(1), torch.ones(8), atol=1e-5, rtol=0)


def test_the_conjugate_is_the_maximum() -> None:
    """Ω*(z) = max_p p·z - Ω(p): what entmax reaches, and no other distribution exceeds."""
    torch.manual_seed(1)
    logits = torch.randn(6, 50, dtype=torch.float64) * 2
    logits -= logits.amax(1, keepdim=True)
    tau = threshold(logits / 2)
    highest = conjugate((logits / 2 - tau).clamp(min=0), tau)

    def objective(p: torch.Tensor) -> torch.Tensor:
        return (p * logits).sum(-1) - ((p**1.5).sum(-1) - 1) / 0.75

    torch.testing.assert_close(highest, objective(entmax15(logits)))
    for _ in range(20):
        assert (objective(torch.distributions.Dirichlet(torch.ones(6, 50).double()).sample()) < highest).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1, 0.5])
def test_the_smoothed_loss_is_zero_at_its_minimum_only(epsilon: float) -> None:
    """L_ε ≥ 0, and 0 where entmax(z) = q: z = Ω'(q) = 2 √q. Without the constant C it would not be."""
    size = 20
    q = torch.full((size,), epsilon / size, dtype=torch.float64)
    q[3] += 1 - epsilon
    loss = build_objective(Entmax(kind="entmax", label_smoothing=epsilon)).loss
    hidden, weight, target = torch.zeros(1, 1).double(), torch.zeros(size, 1).double(), torch.tensor([3])
    assert loss(hidden, weight, 2 * q.sqrt(), target).item() == pytest.approx(0.0, abs=1e-12)
    assert loss(hidden, weight, 2 * q.sqrt() + torch.randn(size).double() / 9, target).item() > 1e-6


def test_the_constant_is_the_entropy_of_the_smoothed_target() -> None:
    q = torch.full((1000,), 0.1 / 1000, dtype=torch.float64)
    q[0] += 0.9
    assert smoothing_constant(0.1, 1000) == pytest.approx((((q**1.5).sum() - 1) / 0.75).item(), rel=1e-12)
    assert smoothing_constant(0.0, 1000) == 0.0
