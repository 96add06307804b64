"""Batched beam search, one code path for every objective and for per-sentence vocabularies.

The beam of a sentence holds its `width` best hypotheses. A finished one stays in the beam with its score
frozen, and competes for its place until better ones push it out; the best finished hypothesis ever seen
is remembered. A sentence stops as soon as none of its unfinished hypotheses can beat that one: as
log-scores are ≤ 0, an unfinished hypothesis of score s ends at best with s (with length normalisation:
with s / limit^a), so that stopping early never changes the result.

Of equal candidates the one of the better hypothesis, then the lower id, comes first, so that the result
depends neither on the batch nor on the order in which `topk` meets equal values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.models.interface import BOS, EOS, Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.output import OutputLayer, end_positions


@dataclass(frozen=True)
class BeamSearch:
    """`length_normalization` a ranks hypotheses by score / length^a, </s> counted; 0, the default and the
    papers' choice, ranks by the score. `Hypothesis.score` is never normalised."""

    width: int = 4
    length_normalization: float = 0.0
    max_length_ratio: float = 2.0

    def __call__(
        self,
        model: TranslationModel,
        objective: Objective,
        memory: Memory,
        output: OutputLayer,
        limits: Sequence[int],
        with_scores: bool = True,
    ) -> list[Hypothesis]:
        """One hypothesis a sentence of `memory`; `limits`: the most tokens of each, </s> included.
        A beam always scores, whatever `with_scores` says."""
        device = memory.hidden.device
        results: list[Hypothesis | None] = [None] * len(limits)
        beams = _Beams.start(self.width, self.length_normalization, limits, device)
        ends = end_positions(output, len(limits), device)
        state = model.start(memory, max(limits))
        state.reorder(torch.arange(len(limits), device=device).repeat_interleave(self.width))
        while True:
            hidden = model.step(beams.last.flatten(), state)  # (n·W, D)
            logits = output.logits(hidden.unflatten(0, (-1, self.width)))  # (n, W, K)
            parents = beams.extend(output.log_scores(objective, logits), output, ends)
            done = beams.done()
            finished_now = bool(done.any())  # the only synchronisation of a step, but for ties
            if finished_now:
                for sentence, hypothesis in beams.results(done):
                    results[sentence] = hypothesis
                kept = (~done).nonzero().squeeze(1)
                if len(kept) == 0:
                    return [hypothesis for hypothesis in results if hypothesis is not None]
                beams, output = beams.keep(kept), output.keep(kept)
                parents, ends = parents[kept] + kept.unsqueeze(1) * self.width, ends[kept]
            else:
                parents = parents + beams.first_rows
            state.reorder(parents.flatten())


@dataclass
class _Beams:
    """The beams of n running sentences after `length` steps, slots best first."""

    normalization: float
    length: int  # tokens of the unfinished hypotheses
    sentences: Tensor  # (n,) which sentence of the batch
    limits: Tensor  # (n,)
    first_rows: Tensor  # (n, 1) the decoder row of each sentence's slot 0
    last: Tensor  # (n, W) last token
    tokens: Tensor  # (n, W, L); of a finished hypothesis only the first `lengths` count
    scores: Tensor  # (n, W); -inf: an empty slot
    lengths: Tensor  # (n, W) tokens, </s> included
    finished: Tensor  # (n, W) bool
    best_rank: Tensor  # (n,) of the best finished hypothesis so far; -inf: none
    best_score: Tensor  # (n,)
    best_tokens: Tensor  # (n, L)
    best_length: Tensor  # (n,)

    @classmethod
    def start(cls, width: int, normalization: float, limits: Sequence[int], device: torch.device) -> _Beams:
        """One empty hypothesis a sentence, the other slots empty."""
        n, longest = len(limits), max(limits)
        scores = torch.full((n, width), -torch.inf, device=device)
        scores[:, 0] = 0.0
        nothing = torch.full((n,), -torch.inf, device=device)
        return cls(
            normalization=normalization,
            length=0,
            sentences=torch.arange(n, device=device),
            limits=torch.tensor(limits, device=device),
            first_rows=torch.arange(0, n * width, width, device=device).unsqueeze(1),
            last=torch.full((n, width), BOS, device=device),
            tokens=torch.full((n, width, longest), EOS, device=device),
            scores=scores,
            lengths=torch.zeros((n, width), dtype=torch.long, device=device),
            finished=torch.zeros((n, width), dtype=torch.bool, device=device),
            best_rank=nothing,
            best_score=nothing.clone(),
            best_tokens=torch.full((n, longest), EOS, device=device),
            best_length=torch.zeros(n, dtype=torch.long, device=device),
        )

    def extend(self, log_scores: Tensor, output: OutputLayer, ends: Tensor) -> Tensor:
        """Extend every unfinished hypothesis by log_scores (n, W, K) and keep the W best; returns the slots
        (n, W) that they come from."""
        n, width, size = log_scores.shape
        ranks = self._ranks(log_scores, ends).view(n, width * size)
        rank, index = top_candidates(ranks, width)  # (n, W)
        parents = index.div(size, rounding_mode="floor")
        positions = index - parents * size
        gain = log_scores.view(n, width * size).gather(1, index)
        frozen = self.finished.gather(1, parents)
        self.length += 1
        self.scores = self.scores.gather(1, parents) + gain.masked_fill(frozen, 0.0)
        self.last = output.ids(positions)
        self.lengths = self.lengths.gather(1, parents).masked_fill(~frozen, self.length)
        self.finished = self.last == EOS
        self.tokens = self.tokens.gather(1, parents.unsqueeze(2).expand_as(self.tokens))
        self.tokens[:, :, self.length - 1] = self.last
        self._remember_best(rank)
        return parents

    def _ranks(self, log_scores: Tensor, ends: Tensor) -> Tensor:
        """The candidates' ranks (n, W, K): a finished hypothesis has one candidate, itself, at </s>."""
        ranks = self.scores.masked_fill(self.finished, -torch.inf).unsqueeze(2) + log_scores
        if self.normalization:
            ranks = ranks / float(self.length + 1) ** self.normalization
        column = ends.unsqueeze(2).expand(-1, ranks.shape[1], 1)  # (n, W, 1)
        itself = self._normalised(self.scores, self.lengths).unsqueeze(2)
        return ranks.scatter_(
            2, column, torch.where(self.finished.unsqueeze(2), itself, ranks.gather(2, column))
        )

    def _normalised(self, scores: Tensor, lengths: Tensor) -> Tensor:
        return scores / lengths**self.normalization if self.normalization else scores

    def _remember_best(self, rank: Tensor) -> None:
        """`rank` (n, W): the slots' ranks."""
        rank, slot = rank.masked_fill(~self.finished, -torch.inf).max(dim=1)  # (n,)
        better = rank > self.best_rank
        at = slot.unsqueeze(1)
        tokens = self.tokens.gather(1, at.unsqueeze(2).expand(-1, 1, self.tokens.shape[2])).squeeze(1)
        self.best_rank = torch.where(better, rank, self.best_rank)
        self.best_score = torch.where(better, self.scores.gather(1, at).squeeze(1), self.best_score)
        self.best_length = torch.where(better, self.lengths.gather(1, at).squeeze(1), self.best_length)
        self.best_tokens = torch.where(better.unsqueeze(1), tokens, self.best_tokens)

    def done(self) -> Tensor:
        """(n,) bool: no unfinished hypothesis can still win, or the length limit is reached."""
        reachable = self.scores.masked_fill(self.finished, -torch.inf).amax(dim=1)
        reachable = self._normalised(reachable, self.limits)
        return (self.best_rank >= reachable) | (self.limits <= self.length)

    def results(self, done: Tensor) -> list[tuple[int, Hypothesis]]:
        """(position in the batch, hypothesis) of the sentences that are done (n,): the best finished one, or
        where none was found the best unfinished one."""
        pairs = []
        for n in done.nonzero().squeeze(1).tolist():
            if self.best_rank[n] > -torch.inf:
                tokens = self.best_tokens[n, : int(self.best_length[n]) - 1].tolist()
                hypothesis = Hypothesis(tokens, float(self.best_score[n]), finished=True)
            else:
                tokens = self.tokens[n, 0, : self.length].tolist()
                hypothesis = Hypothesis(tokens, float(self.scores[n, 0]), finished=False)
            pairs.append((int(self.sentences[n]), hypothesis))
        return pairs

    def keep(self, kept: Tensor) -> _Beams:
        return _Beams(
            normalization=self.normalization,
            length=self.length,
            sentences=self.sentences[kept],
            limits=self.limits[kept],
            first_rows=self.first_rows[: len(kept)],
            last=self.last[kept],
            tokens=self.tokens[kept],
            scores=self.scores[kept],
            lengths=self.lengths[kept],
            finished=self.finished[kept],
            best_rank=self.best_rank[kept],
            best_score=self.best_score[kept],
            best_tokens=self.best_tokens[kept],
            best_length=self.best_length[kept],
        )


def top_candidates(ranks: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The `width` best of ranks (n, C), C ≥ width: values and indices (n, width), best first, equal ones
    by index. `topk` alone leaves the order of equal values open."""
    values, indices = ranks.topk(min(width + 1, ranks.shape[1]), dim=1)
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -math.inf)).any(dim=1)
    values, indices = values[:, :width], indices[:, :width]
    if bool(tied.any()):
        for n in tied.nonzero().squeeze(1).tolist():
            level = (ranks[n] >= values[n, -1]).nonzero().squeeze(1)  # in order of index
            order = ranks[n, level].sort(descending=True, stable=True).indices[:width]
            indices[n] = level[order]
    return values, indices
