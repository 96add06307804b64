"""The interface of objectives, and label smoothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from creamtea_workers.corpora.tokens import Rows
from creamtea_workers.models.interface import EOS


class Objective(Protocol):
    """A training objective. `hidden` (N, D), `weight` (V, D), `bias` (V,), `targets` (N,) ids; fp32."""

    def loss(self, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of the token losses (a scalar), differentiable in hidden, weight and bias."""

    def log_scores(self, logits: Tensor) -> Tensor:
        """Return token log-scores ≤ 0 of logits (..., V or K).

        These are log softmax, log sigmoid, log entmax (-inf off the support). Greedy search needs only the
        logits' arg max: every objective is monotone in them.
        """

    def initial_bias(self, vocabulary_size: int) -> float:
        """Return the initial output bias (SCONES: -log V, see there)."""


# Label smoothing: the target is q = (1 - ε) e_y + ε r, r uniform over V or the unigram distribution.


def unigram_frequencies(rows: Rows, vocabulary_size: int) -> Tensor:
    """Return relative frequencies (V,), fp64, of the subwords in the targets, counting an eos per target.

    A subword that never occurs has frequency 0, and gets no mass from smoothing.
    """
    counts = np.zeros(vocabulary_size, dtype=np.int64)
    for part in rows.parts():
        counts += np.bincount(part, minlength=vocabulary_size)
    counts[EOS] += len(rows)
    return torch.from_numpy(counts / counts.sum())


@dataclass(frozen=True)
class LabelSmoothing:
    """The smoothed target q of n tokens with labels `gold` (n, 1), over a vocabulary of V.

    The uniform r spans all of V, gold label included, as in the papers and `F.cross_entropy` (other toolkits
    divide by V - 1 or V - 2). The unigram r is 0 for subwords that do not occur in the training targets; a
    loss with unigram, ε > 0 and no frequencies raises ValueError.
    """

    epsilon: float = 0.0
    kind: Literal["uniform", "unigram"] = "uniform"
    unigram: Tensor | None = field(default=None, compare=False, repr=False)  # (V,)
    copies: dict[tuple[torch.device, torch.dtype], Tensor] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def expected(self, logits: Tensor, gold: Tensor) -> Tensor:
        """Return q · z of the logits z (n, V): (n,)."""
        chosen = logits.gather(1, gold)[:, 0]
        if not self.epsilon:
            return chosen
        mean = logits.mean(1) if self.kind == "uniform" else logits @ self.frequencies(logits)
        return chosen.lerp(mean, self.epsilon)

    def subtract_from_(self, p: Tensor, gold: Tensor) -> Tensor:
        """Turn p (n, V) into p - q, in place: the gradient in Peters and Martins 2021, Eqs. 9 and 13."""
        if self.epsilon and self.kind == "uniform":
            p.sub_(self.epsilon / p.shape[1])
        elif self.epsilon:
            p.sub_(self.frequencies(p) * self.epsilon)
        return p.scatter_add_(1, gold, p.new_full(gold.shape, self.epsilon - 1))

    def power_sum(self, alpha: float, gold: Tensor, like: Tensor) -> Tensor:
        """Return Σ_w q_w^α: (n,) in the type of `like` (n, V)."""
        return self._sum(lambda q: q.pow(alpha), gold, like)

    def log_sum(self, gold: Tensor, like: Tensor) -> Tensor:
        """Return Σ_w q_w log q_w: (n,) in the type of `like` (n, V)."""
        return self._sum(lambda q: torch.special.xlogy(q, q), gold, like)

    def _sum(self, term: Callable[[Tensor], Tensor], gold: Tensor, like: Tensor) -> Tensor:
        if self.kind == "uniform" or not self.epsilon:  # the same for every label: computed on the CPU
            words, other = like.shape[1], self.epsilon / like.shape[1]
            both = torch.tensor([1 - self.epsilon + other, other], dtype=torch.float64)
            of_gold, of_other = term(both).tolist()
            return like.new_full((len(gold),), of_gold + (words - 1) * of_other)
        others = self.frequencies(like).double() * self.epsilon
        terms, at_gold = term(others), gold[:, 0]
        return (terms.sum() - terms[at_gold] + term(others[at_gold] + (1 - self.epsilon))).to(like.dtype)

    def frequencies(self, like: Tensor) -> Tensor:
        """Return the unigram distribution (V,), in the type and on the device of `like` (n, V)."""
        if self.unigram is None or self.unigram.shape != like.shape[1:]:
            raise ValueError(
                "label smoothing with unigram needs the relative frequencies of the training targets' "
                f"{like.shape[1]} subwords: build_objective(spec, unigram_frequencies(rows, {like.shape[1]}))"
            )
        place = like.device, like.dtype
        if place not in self.copies:  # a GPU would wait for each copy, and a CUDA graph cannot hold it
            self.copies[place] = self.unigram.to(like)
        return self.copies[place]
