"""Losses and gradients against direct autograd in float64, and the numerics at the edges."""

import math
from collections.abc import Callable

import entmax
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from creamtea.document.values import Strict
from creamtea.methods import objectives as methods
from creamtea.methods.objectives import OBJECTIVES, Entmax, Scones, Softmax
from creamtea_workers.corpora import tokens
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.objectives import build_objective, linear
from creamtea_workers.objectives.base import LabelSmoothing, Objective, unigram_frequencies

UNIGRAM = torch.arange(50.0, dtype=torch.float64).remainder(7)
UNIGRAM /= UNIGRAM.sum()  # (50,), with words that never occurred


def smoothed(spec: Softmax | Entmax, y: Tensor, size: int) -> Tensor:
    """q (N, V)"""
    r = UNIGRAM if spec.smoothing == "unigram" else torch.full((size,), 1 / size, dtype=torch.float64)
    return F.one_hot(y, size).double() * (1 - spec.label_smoothing) + r * spec.label_smoothing


def direct(spec: Softmax | Scones | Entmax) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of logits (N, V) and targets (N,), from its definition."""

    def softmax(z: Tensor, y: Tensor) -> Tensor:
        """Ω*(z) + Ω(q) - z·q with Ω(p) = Σ p log p."""
        q = smoothed(spec, y, z.shape[1])
        return (z.logsumexp(1) + torch.special.xlogy(q, q).sum(1) - (z * q).sum(1)).sum()

    def scones(z: Tensor, y: Tensor) -> Tensor:
        """Eqs. 6, 11 and 12: binary cross-entropies, the negative ones weighed by alpha."""
        gold, smoothing = F.one_hot(y, z.shape[1]).bool(), spec.label_smoothing
        yes, no = F.logsigmoid(z), F.logsigmoid(-z)
        positive = -(1 - smoothing) * yes - smoothing * no
        negative = -(1 - smoothing) * no - smoothing * yes
        return torch.where(gold, positive, spec.alpha * negative).sum()

    def fenchel_young(z: Tensor, y: Tensor) -> Tensor:
        """Ω*(z) + Ω(q) - z·q, p̂ from the entmax package (its gradient cancels: p̂ is the maximiser)."""

        def omega(p: Tensor) -> Tensor:
            return ((p**spec.alpha).sum(-1) - 1) / (spec.alpha * (spec.alpha - 1))

        q = smoothed(spec, y, z.shape[1])
        p = entmax.entmax_bisect(z.detach(), spec.alpha, -1, n_iter=100)
        return ((p * z).sum(-1) - omega(p) + omega(q) - (z * q).sum(-1)).sum()

    return {"softmax": softmax, "scones": scones, "entmax": fenchel_young}[spec.kind]


def build(spec: Softmax | Scones | Entmax) -> Objective:
    return build_objective(spec, UNIGRAM)


SPECS = [
    Softmax(kind="softmax"),
    Softmax(kind="softmax", label_smoothing=0.1),
    Softmax(kind="softmax", label_smoothing=0.1, smoothing="unigram"),
    Scones(kind="scones", alpha=0.5),
    Scones(kind="scones", alpha=1.7, label_smoothing=0.1),
    Entmax(kind="entmax"),
    Entmax(kind="entmax", label_smoothing=0.1),
    Entmax(kind="entmax", label_smoothing=0.1, smoothing="unigram"),
    *(Entmax(kind="entmax", alpha=alpha) for alpha in (1.001, 1.3, 2.0, 3.0)),
    Entmax(kind="entmax", alpha=1.3, label_smoothing=0.1),
    Entmax(kind="entmax", alpha=2.0, label_smoothing=0.3, smoothing="unigram"),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("scale", [0.02, 1.0, 20.0])
def test_loss_and_gradients(
    spec: Softmax | Scones | Entmax, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = linear.Sizes(chunk=16 * 50, tile=5 * 50)  # 37 tokens in chunks of 16 and tiles of 5
    monkeypatch.setattr(linear, "SIZES", {"cpu": sizes})
    torch.manual_seed(1)
    double = {"dtype": torch.float64, "requires_grad": True}
    inputs = [torch.randn(37, 8, **double), torch.randn(50, 8, **double), torch.randn(50, **double)]
    targets = torch.randint(0, 50, (37,))
    hidden, weight, bias = inputs
    ours = 3 * build(spec).loss(hidden * scale, weight, bias, targets)
    theirs = 3 * direct(spec)(hidden * scale @ weight.T + bias, targets)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(theirs, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
def test_softmax_is_the_cross_entropy_of_torch_and_a_constant(epsilon: float) -> None:
    torch.manual_seed(1)
    hidden, weight, bias = (torch.randn(*shape).double() for shape in ((37, 8), (50, 8), (50,)))
    targets = torch.randint(0, 50, (37,))
    ours = build(Softmax(kind="softmax", label_smoothing=epsilon)).loss(hidden, weight, bias, targets)
    theirs = F.cross_entropy(hidden @ weight.T + bias, targets, label_smoothing=epsilon, reduction="sum")
    other = epsilon / 50
    entropy = -(1 - epsilon + other) * math.log(1 - epsilon + other) - (49 * other * math.log(other or 1))
    assert ours.item() == pytest.approx(theirs.item() - 37 * entropy, rel=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("smoothing", ["uniform", "unigram"])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
def test_the_smoothed_loss_is_zero_at_its_minimum_only(alpha: float, epsilon: float, smoothing: str) -> None:
    """L_ε ≥ 0, and 0 where p̂(z) = q: z = Ω'(q), of softmax (α = 1) log q, else q^(α - 1) / (α - 1)."""
    torch.manual_seed(1)
    target, unigram = torch.tensor([3]), torch.rand(50).double()
    unigram /= unigram.sum()
    r = unigram if smoothing == "unigram" else torch.full((50,), 1 / 50, dtype=torch.float64)
    q = F.one_hot(target, 50)[0] * (1 - epsilon) + r * epsilon
    smoothed = {"label_smoothing": epsilon, "smoothing": smoothing}
    if alpha == 1:
        spec, best = Softmax(kind="softmax", **smoothed), q.log()
    else:
        spec, best = Entmax(kind="entmax", alpha=alpha, **smoothed), q ** (alpha - 1) / (alpha - 1)
    loss, hidden, weight = build_objective(spec, unigram).loss, torch.zeros(1, 1), torch.zeros(50, 1)
    assert loss(hidden.double(), weight.double(), best, target).item() == pytest.approx(0.0, abs=1e-12)
    other = best + torch.randn(50).double() / 3
    assert loss(hidden.double(), weight.double(), other, target).item() > 1e-6


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_fp32_and_bf16_stay_near_fp64(spec: Softmax | Scones | Entmax) -> None:
    torch.manual_seed(1)
    hidden, weight, bias = torch.randn(64, 16), torch.randn(50, 16), torch.randn(50)
    targets = torch.randint(0, 50, (64,))
    objective = build(spec)
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
    hidden, weight, bias = torch.randn(9, 4), torch.randn(50, 4, requires_grad=True), torch.zeros(50)
    targets = torch.randint(0, 50, (9,))
    objective = build(spec)
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
    softmax, scones, sparse = map(
        build_objective, (Softmax(kind="softmax"), Scones(kind="scones"), Entmax(kind="entmax"))
    )
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


class Holder(Strict):
    objective: methods.Objective


def test_every_objective_of_the_catalogue_can_be_built_from_its_dictionary() -> None:
    assert {spec.kind for spec in SPECS} == set(OBJECTIVES.kinds)
    for spec in SPECS:
        assert build_objective(Holder(objective=spec.model_dump()).objective) == build_objective(spec)


# ---------------------------------------------------------------- label smoothing


KINDS = [Softmax(kind="softmax"), Entmax(kind="entmax")]


@pytest.mark.parametrize("rows", [1, 2, 10000])
def test_unigram_frequencies_count_eos_and_no_padding(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_PART", rows)
    targets = Pairs([[9], [9, 9], [9]], [[4, 5, 4], [4], [6]]).targets  # eos is 3
    frequencies = unigram_frequencies(targets, 8)
    assert frequencies.tolist() == [0, 0, 0, 3 / 8, 3 / 8, 1 / 8, 1 / 8, 0]


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("kind", ["uniform", "unigram"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_target_distribution(alpha: float, kind: str, epsilon: float) -> None:
    """Everything that is asked of q against q itself; word 2 has never occurred."""
    r = torch.tensor([0.5, 0.3, 0.0, 0.2]).double()
    gold = torch.tensor([[0], [2]])
    q = torch.eye(4).double()[gold[:, 0]] * (1 - epsilon)
    q += epsilon * (r if kind == "unigram" else torch.full((4,), 0.25))
    logits = torch.tensor(np.random.default_rng(1).normal(size=(2, 4)))
    target = LabelSmoothing(epsilon, kind, r)
    torch.testing.assert_close(target.expected(logits, gold), (q * logits).sum(1))
    torch.testing.assert_close(target.subtract_from_(logits.clone(), gold), logits - q)
    torch.testing.assert_close(target.power_sum(alpha, gold, logits), (q**alpha).sum(1))
    torch.testing.assert_close(target.log_sum(gold, logits), torch.special.xlogy(q, q).sum(1))


@pytest.mark.parametrize("spec", KINDS, ids=str)
@pytest.mark.parametrize("unigram", [None, torch.ones(7) / 7])
def test_unigram_smoothing_needs_the_frequencies_for_a_loss_only(spec: object, unigram: object) -> None:
    spec = spec.model_copy(update={"label_smoothing": 0.1, "smoothing": "unigram"})
    objective = build_objective(spec, unigram)
    assert objective.log_scores(torch.randn(2, 9)).shape == (2, 9)
    with pytest.raises(ValueError, match="of the training targets' 9 subwords: build_objective"):
        objective.loss(torch.zeros(2, 1), torch.zeros(9, 1), torch.zeros(9), torch.tensor([1, 2]))


@pytest.mark.parametrize("spec", KINDS, ids=str)
def test_without_smoothing_the_distribution_does_not_matter(spec: object) -> None:
    draw = torch.Generator().manual_seed(3)
    hidden, weight, bias = (
        torch.randn(size, generator=draw, dtype=torch.float64) for size in ((5, 3), (9, 3), (9,))
    )
    targets = torch.tensor([1, 2, 8, 0, 2])

    def loss_and_gradient(smoothing: str, unigram: torch.Tensor | None, epsilon: float = 0.0) -> torch.Tensor:
        changed = spec.model_copy(update={"label_smoothing": epsilon, "smoothing": smoothing})
        given = hidden.clone().requires_grad_()
        loss = build_objective(changed, unigram).loss(given, weight, bias, targets)
        loss.sum().backward()
        return torch.cat([loss.detach().reshape(-1), given.grad.reshape(-1)])

    rising = torch.arange(1.0, 10.0) / 45
    expected = loss_and_gradient("uniform", None)
    for unigram in (None, torch.ones(9) / 9, rising):
        torch.testing.assert_close(loss_and_gradient("unigram", unigram), expected)
    smoothed = loss_and_gradient("unigram", rising, 0.1)
    assert not torch.allclose(smoothed, loss_and_gradient("uniform", None, 0.1))  # with it, it does


def test_the_smoothed_scones_loss_by_hand() -> None:
    """At zero logits every binary label costs log 2, whatever λ."""
    for smoothed in (0.0, 0.3):
        loss = build_objective(Scones(kind="scones", alpha=0.5, label_smoothing=smoothed)).loss
        value = loss(torch.zeros(1, 1), torch.zeros(9, 1), torch.zeros(9), torch.tensor([1]))
        assert value.item() == pytest.approx((1 + 0.5 * 8) * np.log(2))
