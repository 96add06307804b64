"""Ancestral and top-k sampling.

The distribution of a token is the objective's at temperature T: p^(1/T), renormalised. Softmax and entmax
give p (entmax's stays within its support); SCONES' σ are normalised to a distribution, σ_w / Σ σ. With
top-k the k best tokens share all of the mass. `Hypothesis.score` is the sum of the objective's own
log-scores, as in every search, whatever the temperature.

The draws of a sentence follow from the seed and its source subwords alone, one uniform number in [0, 1)
for each sample and position, so that neither batch size nor batch mates change an output; two sentences
with the same source get the same samples. A number becomes a token by the inverse of the cumulative
distribution, in order of ids: as for a near-tie in greedy search, a logit's last digit can only decide a
draw that falls on the border between two tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from creamtea.methods.searches import Sample, Sampling
from creamtea_workers.models.graphs import New
from creamtea_workers.models.interface import BOS, EOS
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import DROP_BELOW, Detokenize, SearchInput, SearchMethod
from creamtea_workers.search.fixed import FixedColumns, Maker, decode_fixed
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.output import OutputLayer
from creamtea_workers.search.top import keep_top

_CELLS = 1 << 22  # cumulative probabilities held at once: 32 MB


@dataclass(frozen=True)
class Sampler:
    """Draws hypotheses; the first n of them are the same however many are drawn."""

    top_k: int | None = None
    temperature: float = 1.0
    seed: int = 1

    def draw(self, batch: SearchInput, count: int) -> list[list[Hypothesis]]:
        """`count` hypotheses per sentence. A sample that reaches its limit is not finished."""
        if (found := decode_fixed(batch, count, Maker((self, count), self._fixed(count)))) is not None:
            return found
        limits, output = batch.limits, batch.output
        device = batch.memory.hidden.device
        samples = _Samples.start(self.seed, limits, batch.sources, count, device)
        state = batch.model.start(batch.memory, max(limits))
        state.reorder(torch.arange(len(limits), device=device).repeat_interleave(count))
        while True:
            hidden = batch.model.step(samples.last.flatten(), state).unflatten(0, (-1, samples.columns))
            positions, gains = self._choose(batch.objective, output, hidden, samples.uniforms())
            running = samples.extend(output.ids(positions), gains)  # (n, R)
            if running == 0:
                return samples.hypotheses()
            if (kept := samples.compact(running)) is not None:
                sentences, rows = kept
                output = output.keep(sentences)
                state.reorder(rows.flatten())

    def _fixed(self, count: int) -> Callable[[New, int, int], FixedColumns]:
        def numbers(batch: SearchInput) -> Tensor:
            return numbers_of(self.seed, batch.limits, batch.sources, count)

        return lambda new, sentences, length: FixedColumns(
            new, (sentences, count, length), self._choose, numbers
        )

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
            drawn.append((positions.squeeze(2), log_scores.gather(2, positions).squeeze(2)))
        return torch.cat([p for p, _ in drawn], dim=1), torch.cat([s for _, s in drawn], dim=1)

    def weights(self, log_scores: Tensor) -> Tensor:
        """log_scores (..., K) -> what the probabilities are proportional to; the largest is 1."""
        kept = log_scores if self.top_k is None else keep_top(log_scores, self.top_k)
        return ((kept - kept.amax(-1, keepdim=True)) / self.temperature).exp_()


@dataclass(frozen=True)
class SampleSearch(SearchMethod):
    """One sample per sentence."""

    sampler: Sampler
    max_length_ratio: float = 2.0

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """One hypothesis per sentence. Sampling always scores, whatever `with_scores` says."""
        return [hypothesis for (hypothesis,) in self.sampler.draw(batch, count=1)]


def draws(seed: int, source: Sequence[int], count: int, limit: int) -> Tensor:
    """The uniform numbers of a sentence (count, limit), fp64 multiples of 2⁻³² in [0, 1).

    Taken from the bit generator itself, whose stream NumPy guarantees. 32 bits, so that a product with the
    total mass is always smaller than the total mass.
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, len(source), *source])).random_raw(count * limit)
    return torch.from_numpy((bits >> 32).astype(np.float64) / 2.0**32).view(count, limit)


def numbers_of(seed: int, limits: Sequence[int], sources: Sequence[Sequence[int]], count: int) -> Tensor:
    """The uniform numbers (B, count, L) of the sentences, on the CPU."""
    numbers = torch.zeros(len(limits), count, max(limits), dtype=torch.float64)
    for own, source, limit in zip(numbers, sources, limits, strict=True):
        own[:, :limit] = draws(seed, source, count, limit)
    return numbers


@dataclass
class _Samples:
    """All samples of a batch of B sentences, and the n × R decoder rows of those that are not complete."""

    limits: Tensor  # (B,)
    numbers: Tensor  # (B, count, L) uniform
    tokens: Tensor  # (B, count, L); </s> after the end
    scores: Tensor  # (B, count) fp64
    lengths: Tensor  # (B, count) tokens, </s> included
    finished: Tensor  # (B, count) bool
    sentences: Tensor  # (n, 1) of the rows: their sentence …
    samples: Tensor  # (n, R) … and which of its samples they are
    running: Tensor  # (n, R) bool; False: complete, its row only fills the rectangle
    last: Tensor  # (n, R) token
    step: int = 0

    @classmethod
    def start(
        cls,
        seed: int,
        limits: Sequence[int],
        sources: Sequence[Sequence[int]],
        count: int,
        device: torch.device,
    ) -> _Samples:
        size, longest = len(limits), max(limits)
        shape = (size, count)
        return cls(
            limits=torch.tensor(limits, device=device),
            numbers=numbers_of(seed, limits, sources, count).to(device),
            tokens=torch.full((*shape, longest), EOS, device=device),
            scores=torch.zeros(shape, dtype=torch.float64, device=device),
            lengths=torch.zeros(shape, dtype=torch.long, device=device),
            finished=torch.zeros(shape, dtype=torch.bool, device=device),
            sentences=torch.arange(size, device=device).unsqueeze(1),
            samples=torch.arange(count, device=device).expand(shape),
            running=torch.ones(shape, dtype=torch.bool, device=device),
            last=torch.full(shape, BOS, device=device),
        )

    @property
    def columns(self) -> int:
        return self.last.shape[1]

    def uniforms(self) -> Tensor:
        """(n, R), for the current position."""
        return self.numbers[self.sentences, self.samples, self.step]

    def extend(self, tokens: Tensor, gains: Tensor) -> int:
        """Append tokens (n, R) with log-scores `gains`; returns the largest number of samples of a sentence
        that are not complete."""
        row = (self.sentences, self.samples)
        self.last = tokens.masked_fill(~self.running, EOS)
        self.tokens[*row, self.step] = self.last
        self.scores[row] += gains.masked_fill(~self.running, 0.0)
        self.lengths[row] += self.running.long()
        self.finished[row] |= self.running & (self.last == EOS)
        self.step += 1
        self.running = self.running & (self.last != EOS) & (self.limits[self.sentences] > self.step)
        return int(self.running.sum(1).amax())

    def compact(self, rows_needed: int) -> tuple[Tensor, Tensor] | None:
        """Drop complete rows once that saves a quarter: returns the sentences kept (n',) among the current
        ones, and the rows (n', rows_needed) that the new rows come from; None where nothing changes."""
        kept = self.running.any(1).nonzero().squeeze(1)
        if len(kept) * rows_needed > DROP_BELOW * self.last.numel():
            return None
        # running ones first
        columns = (~self.running[kept]).long().argsort(dim=1, stable=True)[:, :rows_needed]
        rows = kept.unsqueeze(1) * self.columns + columns
        self.sentences = self.sentences[kept]
        self.samples, self.running, self.last = (
            tensor[kept].gather(1, columns) for tensor in (self.samples, self.running, self.last)
        )
        return kept, rows

    def hypotheses(self) -> list[list[Hypothesis]]:
        tokens, lengths = self.tokens.tolist(), (self.lengths - self.finished.long()).tolist()
        scores, finished = self.scores.tolist(), self.finished.tolist()
        return [
            [Hypothesis(t[:length], s, f) for t, length, s, f in zip(*sentence, strict=True)]
            for sentence in zip(tokens, lengths, scores, finished, strict=True)
        ]


def sampler_of(spec: Sampling) -> Sampler:
    return Sampler(spec.top_k, spec.temperature, spec.seed)


def build(spec: Sample, detokenize: Detokenize | None) -> SampleSearch:
    return SampleSearch(sampler_of(spec), spec.max_length_ratio)
