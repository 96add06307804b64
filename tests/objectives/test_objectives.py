"""Losses and gradients against direct autograd in float64, and the numerics at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from creamtea.study.spec import Entmax, Objective, Scones, Softmax
from creamtea_workers.objectives import build_objective, linear

entmax = pytest.importorskip("entmax")


def omega(p: Tensor) -> Tensor:
    """Tsallis' negative entropy at α = 1.5."""
    return ((p**1.5).sum(-1) - 1) / 0.75


def direct(spec: Softmax | Scones | Entmax) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of logits (N, V) and targets (N,), from its definition."""

    def softmax(z: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(z, y, label_smoothing=spec.label_smoothing, reduction="sum")

    def scones(z: Tensor, y: Tensor) -> Tensor:
        gold = F.one_hot(y, z.shape[1]).bool()
        return -torch.where(gold, F.logsigmoid(z), spec.alpha * F.logsigmoid(-z)).sum()

    def fenchel_young(z: Tensor, y: Tensor) -> Tensor:
        """Ω*(z) + Ω(q) - z·q, p̂ from the entmax package (its gradient cancels: p̂ is the maximiser)."""
        size = z.shape[1]
        q = F.one_hot(y, size).to(z) * (1 - spec.label_smoothing) + spec.label_smoothing / size
        p = entmax.entmax15(z.detach(), -1)
        return ((p * z).sum(-1) - omega(p) + omega(q) - (z * q).sum(-1)).sum()

    return {"softmax": softmax, "scones": scones, "entmax": fenchel_young}[spec.kind]


SPECS = [
    Softmax(kind="softmax"),
    Softmax(kind="softmax", label_smoothing=0.1),
    Scones(kind="scones", alpha=0.5),
    Scones(kind="scones", alpha=1.7),
    Entmax(kind="entmax"),
    Entmax(kind="entmax", label_smoothing=0.1),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("scale", [0.02, 1.0, 20.0])
def test_loss_and_gradients(spec: Softmax | Scones | Entmax, scale: float, monkeypatch: object) -> None:
    monkeypatch.setattr(linear, "CHUNK", {"cpu": 16 * 50})  # 37 tokens in chunks of 16
    torch.manual_seed(1)
    double = {"dtype": torch.float64, "requires_grad": True}
    inputs = [torch.randn(37, 8, **double), torch.randn(50, 8, **double), torch.randn(50, **double)]
    targets = torch.randint(0, 50, (37,))
    hidden, weight, bias = inputs
    ours = 3 * build_objective(spec).loss(hidden * scale, weight, bias, targets)
    theirs = 3 * direct(spec)(hidden * scale @ weight.T + bias, targets)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(theirs, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_fp32_and_bf16_stay_near_fp64(spec: Softmax | Scones | Entmax) -> None:
    torch.manual_seed(1)
    hidden, weight, bias = torch.randn(64, 16), torch.randn(500, 16), torch.randn(500)
    targets = torch.randint(0, 500, (64,))
    objective = build_objective(spec)
    exact = objective.loss(hidden.double(), weight.double(), bias.double(), targets).item()
    assert objective.loss(hidden, weight, bias, targets).item() == pytest.approx(exact, rel=1e-5)
    with torch.autocast("cpu", torch.bfloat16):
        loss = objective.loss(hidden.requires_grad_(), weight, bias, targets)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact, rel=1e-2)
    loss.backward()
    assert hidden.grad.dtype == torch.float32


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_without_gradients_the_loss_is_the_same(spec: Softmax | Scones | Entmax) -> None:
    torch.manual_seed(1)
    hidden, weight, bias = torch.randn(9, 4), torch.randn(20, 4, requires_grad=True), torch.zeros(20)
    targets = torch.randint(0, 20, (9,))
    objective = build_objective(spec)
    expected = objective.loss(hidden, weight, bias, targets).item()
    with torch.inference_mode():
        assert objective.loss(hidden, weight, bias, targets).item() == expected


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_log_scores_are_not_positive_and_rise_with_the_logits(spec: Softmax | Scones | Entmax) -> None:
    torch.manual_seed(1)
    logits = torch.randn(3, 4, 60) * 3
    scores = build_objective(spec).log_scores(logits)
    assert scores.shape == logits.shape
    assert (scores <= 0).all()
    by_logit = scores.gather(-1, logits.argsort(-1))
    assert (by_logit[..., 1:] >= by_logit[..., :-1]).all()


def test_log_scores_are_the_objectives_own() -> None:
    logits = torch.randn(5, 40) * 2
    softmax, scones, sparse = (build_objective(spec) for spec in (SPECS[0], SPECS[2], SPECS[4]))
    torch.testing.assert_close(softmax.log_scores(logits), logits.log_softmax(-1))
    torch.testing.assert_close(scones.log_scores(logits), logits.sigmoid().log())
    p = entmax.entmax15(logits.double(), -1)
    scores = sparse.log_scores(logits).double()
    torch.testing.assert_close(scores.exp(), p, atol=1e-6, rtol=1e-5)
    assert torch.equal(scores == -math.inf, p == 0)


def test_scones_is_exact_at_extreme_logits() -> None:
    """Where the paper's listing gives -69.08 and no gradient."""
    weight = torch.zeros(3, 1)
    bias = torch.tensor([-90.0, 20.0, 80.0], requires_grad=True)
    loss = build_objective(Scones(kind="scones", alpha=0.5)).loss(
        torch.zeros(1, 1), weight, bias, torch.tensor([0])
    )
    loss.backward()
    assert loss.item() == pytest.approx(90 + 0.5 * (20 + 80), rel=1e-7)
    torch.testing.assert_close(bias.grad, torch.tensor([-1.0, 0.5, 0.5]))


def test_scones_starts_near_one_over_v() -> None:
    """With a zero bias the loss of a token would be about α V log 2."""
    size = 32000
    objective = build_objective(Scones(kind="scones", alpha=0.5))
    bias = torch.full((size,), objective.initial_bias(size))
    loss = objective.loss(torch.zeros(1, 2), torch.zeros(size, 2), bias, torch.tensor([7])).item()
    assert loss == pytest.approx(math.log(size) + 0.5, abs=1e-2)


def test_every_objective_of_the_catalogue_can_be_built_from_its_dictionary() -> None:
    kinds = {spec.kind for spec in SPECS}
    assert kinds == {option.model_fields["kind"].annotation.__args__[0] for option in alternatives()}
    for spec in SPECS:
        assert build_objective(spec.model_dump()) == build_objective(spec)


def alternatives() -> tuple[type, ...]:
    """The models that `spec.Objective` joins."""
    return Objective.__args__[0].__args__
