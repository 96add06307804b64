"""The unigram distribution, and what label smoothing with it asks for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from creamtea.methods.objectives import Entmax, Scones, Softmax
from creamtea_workers.corpora import tokens
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.objectives import build_objective
from creamtea_workers.objectives.base import LabelSmoothing, unigram_frequencies

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
