"""Ancestral sampling, also cut by top-k, top-p and ε.

The distribution of a token is the objective's at temperature T: p^(1/T), renormalised. Softmax and entmax
give p (entmax's stays within its support); SCONES' σ are normalised to a distribution, σ_w / Σ σ. With
top-k the k best tokens share all of the mass; with top-p the fewest best tokens whose mass is p or more
(Holtzman et al. 2020); with ε the tokens above ε (Hewitt et al. 2022). `Hypothesis.score` is the sum of the
objective's own log-scores, as in every search, whatever the temperature.

The draws of a sentence follow from the seed and its source subwords alone, one uniform number in [0, 1)
for each sample and position, so that neither batch size nor batch mates change an output; two sentences
with the same source get the same samples. A number becomes a token by the inverse of the cumulative
distribution, in order of ids: as for a near-tie in greedy search, a logit's last digit can only decide a
draw that falls on the border between two tokens.
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
    """Draws hypotheses; the first n of them are the same however many are drawn."""

    top_k: int | None = None
    temperature: float = 1.0
    seed: int = 1
    top_p: float | None = None
    epsilon: float | None = None

    def draw(self, batch: SearchInput, count: int) -> list[list[Hypothesis]]:
        """Draw `count` hypotheses per sentence. A sample that reaches its limit is not finished.

        StepError if the probabilities that it is drawn from are not finite.
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
        """hidden (n, R, D), uniforms (n, R) -> positions of the drawn tokens and their log-scores (n, R)."""
        logits = output.logits(hidden)  # (n, R, K)
        sentences, columns, size = logits.shape
        chunk = max(1, _CELLS // (sentences * size))
        drawn = []
        for start in range(0, columns, chunk):
            part = slice(start, start + chunk)
            log_scores = output.log_scores(objective, logits[:, part])
            cumulative = self.weights(log_scores).cumsum(2, dtype=torch.float64)
            wanted = uniforms[:, part, None] * cumulative[:, :, -1:]
            # the first position above; one without mass adds nothing, so it is never chosen
            positions = torch.searchsorted(cumulative, wanted, right=True).clamp_(max=size - 1)
            gains = log_scores.gather(2, positions)
            broken = ~cumulative[:, :, -1:].isfinite()  # NaN until the end, so that nothing is read back here
            drawn.append((positions.squeeze(2), gains.masked_fill(broken, torch.nan).squeeze(2)))
        return torch.cat([p for p, _ in drawn], dim=1), torch.cat([s for _, s in drawn], dim=1)

    def weights(self, log_scores: Tensor) -> Tensor:
        """Turn log_scores (..., K) into what the probabilities are proportional to; the largest is 1."""
        kept = log_scores if self.top_k is None else keep_top(log_scores, self.top_k)
        weights = ((kept - kept.amax(-1, keepdim=True)) / self.temperature).exp_()
        if self.top_p is not None:
            ordered, order = weights.sort(dim=-1, descending=True, stable=True)  # equal ones by position
            sums = ordered.cumsum(-1, dtype=torch.float64)
            needed = sums - ordered < self.top_p * sums[..., -1:]  # those before it have not enough mass
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
        """One hypothesis per sentence. Sampling always scores, whatever `with_scores` says."""
        return [hypothesis for (hypothesis,) in self.sampler.draw(batch, count=1)]


def draws(seed: int, source: Sequence[int], count: int, limit: int) -> Tensor:
    """Return the uniform numbers of a sentence (count, limit), fp64 multiples of 2⁻³² in [0, 1).

    Taken from the bit generator itself, whose stream NumPy guarantees. 32 bits, so that a product with the
    total mass is always smaller than the total mass.
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, len(source), *source])).random_raw(count * limit)
    return torch.from_numpy((bits >> 32).astype(np.float64) / 2.0**32).view(count, limit)


def sampler_of(spec: Sampling) -> Sampler:
    return Sampler(spec.top_k, spec.temperature, spec.seed, spec.top_p, spec.epsilon)


def build(spec: Sample, detokenize: Detokenize | None) -> SampleSearch:
    return SampleSearch(sampler_of(spec), spec.max_length_ratio)
