"""Greedy search: the most likely token at every step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea.methods.searches import Greedy
from creamtea_workers.models.graphs import New
from creamtea_workers.models.interface import BOS, EOS
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import DROP_BELOW, Detokenize, SearchInput, SearchMethod
from creamtea_workers.search.fixed import FixedColumns, Maker, decode_fixed
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.output import OutputLayer


@dataclass(frozen=True)
class GreedySearch(SearchMethod):
    """The arg max of the logits; of equal ones the lowest id.

    Every objective is monotone in the logits, so that the decision needs no activation (SCONES,
    footnote 7); the hypotheses are the same with `with_scores` and without.
    """

    max_length_ratio: float = 2.0

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """One hypothesis per sentence."""
        maker = Maker(("greedy", batch.with_scores), self._fixed(batch.with_scores))
        if (found := decode_fixed(batch, 1, maker)) is not None:
            return [hypothesis for (hypothesis,) in found]
        limits, output = batch.limits, batch.output
        tokens: list[list[int]] = [[] for _ in limits]
        totals = [0.0 if batch.with_scores else math.nan] * len(limits)
        rows = list(range(len(limits)))  # the sentence of each decoder row
        live = list(rows)  # the rows whose hypothesis is not complete
        device = batch.memory.hidden.device
        state = batch.model.start(batch.memory, max(limits))
        last = torch.full((len(limits),), BOS, device=device)
        while True:
            hidden = batch.model.step(last, state).unsqueeze(1)
            positions, scores = _choose(batch.objective, output, hidden, batch.with_scores)
            last = output.ids(positions).squeeze(1)
            chosen = last.tolist()
            if scores is not None:
                gains = scores.flatten().tolist()
                for n in live:
                    totals[rows[n]] += gains[n]
            for n in live:
                tokens[rows[n]].append(chosen[n])
            live = [n for n in live if chosen[n] != EOS and len(tokens[rows[n]]) < limits[rows[n]]]
            if not live:
                break
            if len(live) <= DROP_BELOW * len(rows):
                kept = torch.tensor(live, device=device)
                last, output = last[kept], output.keep(kept)
                state.reorder(kept)
                rows, live = [rows[n] for n in live], list(range(len(live)))
        return [_hypothesis(*pair) for pair in zip(tokens, totals, strict=True)]

    def _fixed(self, with_scores: bool) -> Callable[[New, int, int], FixedColumns]:
        def choose(
            objective: Objective, output: OutputLayer, hidden: Tensor, uniforms: Tensor
        ) -> tuple[Tensor, Tensor | None]:
            return _choose(objective, output, hidden, with_scores)

        return lambda new, sentences, length: FixedColumns(new, (sentences, 1, length), choose)


def _choose(
    objective: Objective, output: OutputLayer, hidden: Tensor, with_scores: bool
) -> tuple[Tensor, Tensor | None]:
    """hidden (n, 1, D) → the next tokens' positions and, if they are wanted, their log-scores (n, 1)."""
    logits = output.logits(hidden)  # (n, 1, K)
    positions = logits.argmax(-1)  # the first, thus lowest, of equal ones
    if not with_scores:
        return positions, None
    scores = output.log_scores(objective, logits).gather(2, positions.unsqueeze(2))
    return positions, scores.squeeze(2)


def _hypothesis(tokens: list[int], score: float) -> Hypothesis:
    finished = tokens[-1] == EOS
    return Hypothesis(tokens[:-1] if finished else tokens, score, finished)


def build(spec: Greedy, detokenize: Detokenize | None) -> GreedySearch:
    return GreedySearch(spec.max_length_ratio)
