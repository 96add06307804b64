"""Ancestral sampling, optionally truncated by top-k, top-p or ε.

A token is drawn from the objective's distribution at temperature T: p^(1/T), renormalised. Softmax and entmax
give p (entmax only within its support); SCONES' σ are normalised, σ_w / Σ σ. Top-k keeps the k best tokens;
top-p the smallest number of best tokens whose mass is at least p (Holtzman et al. 2020); ε the tokens above ε
(Hewitt et al. 2022). `Hypothesis.score` is the sum of the objective's log-scores without temperature, as in
every search.

Draws depend only on the seed and on a sentence's source subwords: one uniform number in [0, 1) for each
sample and position. So neither batch size nor batch mates change an output, and two sentences with the same
source get the same samples. The inverse of the cumulative distribution, in order of ids, turns a number into
a token: as with a near-tie in greedy search, a logit's last digit matters only if a draw falls on the border
between two tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from creamtea.errors import StepError
from creamtea.methods.searches import Sample, Sampling
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Detokenize, Hypothesis, SearchInput, SearchMethod, keep_top
from creamtea_workers.search.greedy import Choice, decode_columns
from creamtea_workers.search.output import OutputLayer

_CELLS = 1 << 22  # cumulative probabilities held at once: 32 MB


@dataclass(frozen=True)
class Sampler:
    """Draws hypotheses. The first n are the same however many are drawn."""

    top_k: int | None = None
    temperature: float = 1.0
    seed: int = 1
    top_p: float | None = None
    epsilon: float | None = None

    def draw(self, batch: SearchInput, count: int) -> list[list[Hypothesis]]:
        """Draw `count` hypotheses per sentence. A sample that reaches its limit is not finished.

        Raises StepError if probabilities are not finite.
        """
        choice = Choice(self, self._choose, lambda some: self._numbers(some, count))
        drawn = decode_columns(batch, count, choice)
        if any(math.isnan(sample.score) for samples in drawn for sample in samples):
            raise StepError(
                f"the probabilities of the next subword at temperature {self.temperature:g} are not finite: "
                "either the model's own are not, so that its variant must be trained again with a lower "
                "learning_rate, or the temperature is too extreme for them"
            )
        return drawn

    def _numbers(self, batch: SearchInput, count: int) -> Tensor:
        """Return the uniform numbers (B, count, L) of the batch's sentences, on the CPU."""
        numbers = torch.zeros(len(batch.limits), count, max(batch.limits), dtype=torch.float64)
        for own, source, limit in zip(numbers, batch.sources, batch.limits, strict=True):
            own[:, :limit] = draws(self.seed, source, count, limit)
        return numbers

    def _choose(
        self, objective: Objective, output: OutputLayer, hidden: Tensor, uniforms: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Draw tokens: hidden (n, R, D), uniforms (n, R) -> their positions and log-scores (n, R)."""
        logits = output.logits(hidden)  # (n, R, K)
        sentences, columns, size = logits.shape
        chunk = max(1, _CELLS // (sentences * size))
        drawn = []
        for start in range(0, columns, chunk):
            part = slice(start, start + chunk)
            log_scores = output.log_scores(objective, logits[:, part])
            cumulative = self.weights(log_scores).cumsum(2, dtype=torch.float64)
            wanted = uniforms[:, part, None] * cumulative[:, :, -1:]
            # the first position whose cumulative mass is above; a token without mass is never chosen
            positions = torch.searchsorted(cumulative, wanted, right=True).clamp_(max=size - 1)
            gains = log_scores.gather(2, positions)
            broken = ~cumulative[:, :, -1:].isfinite()  # `draw` finds NaN; a check here would be slow
            drawn.append((positions.squeeze(2), gains.masked_fill(broken, torch.nan).squeeze(2)))
        return torch.cat([p for p, _ in drawn], dim=1), torch.cat([s for _, s in drawn], dim=1)

    def weights(self, log_scores: Tensor) -> Tensor:
        """Turn log_scores (..., K) into unnormalised probabilities, scaled so that the largest is 1."""
        kept = log_scores if self.top_k is None else keep_top(log_scores, self.top_k)
        weights = ((kept - kept.amax(-1, keepdim=True)) / self.temperature).exp_()
        if self.top_p is not None:
            ordered, order = weights.sort(dim=-1, descending=True, stable=True)  # equal weights by position
            sums = ordered.cumsum(-1, dtype=torch.float64)
            needed = sums - ordered < self.top_p * sums[..., -1:]  # the tokens before it have too little mass
            weights = torch.zeros_like(weights).scatter_(-1, order, ordered * needed)
        if self.epsilon is not None:
            total = weights.sum(-1, keepdim=True, dtype=torch.float64)
            weights = weights * ((weights > self.epsilon * total) | (weights == 1.0))
        return weights


@dataclass(frozen=True)
class SampleSearch(SearchMethod):
    """One sample per sentence."""

    sampler: Sampler
    max_length_ratio: float = 2.0

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """Return one hypothesis per sentence. Sampling always scores, whatever `with_scores` says."""
        return [hypothesis for (hypothesis,) in self.sampler.draw(batch, count=1)]


def draws(seed: int, source: Sequence[int], count: int, limit: int) -> Tensor:
    """Return the uniform numbers of a sentence (count, limit), fp64 multiples of 2⁻³² in [0, 1).

    They come from the bit generator itself, whose stream NumPy guarantees. With 32 bits, a product with the
    total mass is always smaller than the total mass.
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, len(source), *source])).random_raw(count * limit)
    return torch.from_numpy((bits >> 32).astype(np.float64) / 2.0**32).view(count, limit)


def sampler_of(spec: Sampling) -> Sampler:
    return Sampler(spec.top_k, spec.temperature, spec.seed, spec.top_p, spec.epsilon)


def build(spec: Sample, detokenize: Detokenize | None) -> SampleSearch:
    return SampleSearch(sampler_of(spec), spec.max_length_ratio)
