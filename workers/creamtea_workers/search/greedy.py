"""Greedy search: the most likely token at every step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from creamtea.methods.searches import Greedy
from creamtea_workers.models.interface import BOS, EOS
from creamtea_workers.search.base import DROP_BELOW, Detokenize, SearchInput, SearchMethod
from creamtea_workers.search.hypothesis import Hypothesis


@dataclass(frozen=True)
class GreedySearch(SearchMethod):
    """The arg max of the logits; of equal ones the lowest id.

    Every objective is monotone in the logits, so that the decision needs no activation (SCONES,
    footnote 7); the hypotheses are the same with `with_scores` and without.
    """

    max_length_ratio: float = 2.0

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """One hypothesis per sentence."""
        limits, output = batch.limits, batch.output
        tokens: list[list[int]] = [[] for _ in limits]
        totals = [0.0 if batch.with_scores else math.nan] * len(limits)
        rows = list(range(len(limits)))  # the sentence of each decoder row
        live = list(rows)  # the rows whose hypothesis is not complete
        device = batch.memory.hidden.device
        state = batch.model.start(batch.memory, max(limits))
        last = torch.full((len(limits),), BOS, device=device)
        while True:
            logits = output.logits(batch.model.step(last, state).unsqueeze(1))  # (n, 1, K)
            positions = logits.argmax(-1)  # (n, 1); the first, thus lowest, of equal ones
            last = output.ids(positions).squeeze(1)
            chosen = last.tolist()
            if batch.with_scores:
                scores = output.log_scores(batch.objective, logits).gather(2, positions.unsqueeze(2))
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


def _hypothesis(tokens: list[int], score: float) -> Hypothesis:
    finished = tokens[-1] == EOS
    return Hypothesis(tokens[:-1] if finished else tokens, score, finished)


def build(spec: Greedy, detokenize: Detokenize | None) -> GreedySearch:
    return GreedySearch(spec.max_length_ratio)
