"""Greedy search, and the loop that it shares with sampling: each hypothesis grows by one token per step.

Shapes: B sentences, k hypotheses per sentence, L maximal tokens of a hypothesis; n × R decoder rows, for the
sentences and hypotheses that are still decoded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from creamtea.methods.searches import Greedy
from creamtea_workers.models.graphs import New
from creamtea_workers.models.interface import BOS, EOS
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Detokenize, Hypothesis, SearchInput, SearchMethod
from creamtea_workers.search.fixed import Running, decode_fixed
from creamtea_workers.search.output import OutputLayer

# Complete rows leave the computation together, once a quarter of the rows is complete: dropping rows copies
# the caches and the selected weights of the remaining rows.
DROP_BELOW = 0.75


@dataclass(frozen=True)
class Choice:
    """How a search chooses the next tokens."""

    key: Hashable  # identifies the choice
    # hidden (n, R, D), uniform numbers (n, R) or None → positions of the next tokens (n, R), and their
    # log-scores if `scored`
    choose: Callable[[Objective, OutputLayer, Tensor, Any], tuple[Tensor, Tensor | None]]
    draw: Callable[[SearchInput], Tensor] | None = None  # the uniform numbers (B, k, L) of a batch
    scored: bool = True  # False: the scores of hypotheses are NaN


def decode_columns(batch: SearchInput, count: int, choice: Choice) -> list[list[Hypothesis]]:
    """Decode `count` hypotheses per sentence. A hypothesis that reaches its limit is not finished."""
    make = partial(Columns, choice, count)
    if (decoded := decode_fixed(batch, count, (choice.key, count), make)) is not None:
        return decoded
    limits, output, device = batch.limits, batch.output, batch.memory.hidden.device
    tokens: list[list[int]] = [[] for _ in range(len(limits) * count)]
    scores = [0.0 if choice.scored else math.nan] * len(tokens)
    numbers = None if choice.draw is None else choice.draw(batch).to(device).flatten(0, 1)  # (B · k, L)
    rows = list(range(len(tokens)))  # the hypothesis of each decoder row
    live = list(rows)  # the rows whose hypothesis is not complete
    last = torch.full((len(limits), count), BOS, device=device)  # (n, R)
    state = batch.model.start(batch.memory, max(limits))
    if count > 1:
        state.reorder(torch.arange(len(limits), device=device).repeat_interleave(count))
    for step in range(max(limits)):
        hidden = batch.model.step(last.view(-1), state).view(*last.shape, -1)
        uniforms = None if numbers is None else numbers[rows, step].view_as(last)
        positions, gains = choice.choose(batch.objective, output, hidden, uniforms)
        last = output.ids(positions)
        chosen = last.view(-1).tolist()
        for n in live:
            tokens[rows[n]].append(chosen[n])
        if gains is not None:
            values = gains.view(-1).tolist()
            for n in live:
                scores[rows[n]] += values[n]
        live = [n for n in live if chosen[n] != EOS and step + 1 < limits[rows[n] // count]]
        if not live:
            break
        if len(live) <= DROP_BELOW * len(rows) and (kept := _worth_dropping(live, last.shape)):
            sentences, picked = kept
            output = output.keep(torch.tensor(sentences, device=device))
            index = torch.tensor(picked, device=device)
            state.reorder(index)
            last = last.take(index).view(len(sentences), -1)
            rows, going_on = [rows[n] for n in picked], set(live)
            live = [place for place, n in enumerate(picked) if n in going_on]
    hypotheses = [_hypothesis(*pair) for pair in zip(tokens, scores, strict=True)]
    return [hypotheses[n : n + count] for n in range(0, len(hypotheses), count)]


def _worth_dropping(live: Sequence[int], shape: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """Return the sentences and rows to keep; None if dropping the others saves less than a quarter.

    `live`: the running rows among (n, R) decoder rows. Sentences with running rows are kept, all with the
    same number of rows (the largest number of running rows in a sentence), running rows first.
    """
    width = shape[1]
    counts = Counter(n // width for n in live)
    most = max(counts.values())
    if len(counts) * most > DROP_BELOW * shape[0] * width:
        return None
    running = set(live)
    picked = [
        n
        for sentence in sorted(counts)
        for n in sorted(range(sentence * width, (sentence + 1) * width), key=lambda n: n not in running)[
            :most
        ]
    ]
    return sorted(counts), picked


def _hypothesis(tokens: list[int], score: float) -> Hypothesis:
    finished = tokens[-1] == EOS
    return Hypothesis(tokens[:-1] if finished else tokens, score, finished)


class Columns(Running):
    """Hypotheses of fixed shape."""

    def __init__(self, choice: Choice, count: int, new: New, sentences: int, length: int) -> None:
        shape = (sentences, count)
        self.choice = choice
        self.position = new((1,), torch.long)
        self.limits = new((sentences, 1), torch.long)
        self.tokens = new((*shape, length), torch.long)
        self.scores = new(shape, torch.float64)
        self.lengths = new(shape, torch.long)  # tokens, </s> included
        self.running = new(shape, torch.bool)
        self.last = new(shape, torch.long)
        self.numbers = new((*shape, length), torch.float64) if choice.draw else None

    def load(self, batch: SearchInput) -> None:
        super().load(batch)
        if self.choice.draw is not None and self.numbers is not None:
            drawn = self.choice.draw(batch)
            self.numbers[: len(drawn), :, : drawn.shape[2]].copy_(drawn)

    def begin(self, output: OutputLayer) -> None:
        self.running.copy_(self.limits > 0)
        self.last.fill_(BOS)
        self.scores.fill_(0.0 if self.choice.scored else math.nan)
        self.position.zero_()
        self.lengths.zero_()

    def extend(self, hidden: Tensor, output: OutputLayer, objective: Objective) -> None:
        uniforms = None if self.numbers is None else self.numbers.index_select(2, self.position).squeeze(2)
        positions, gains = self.choice.choose(objective, output, hidden, uniforms)
        self.last.copy_(output.ids(positions))
        self.tokens.index_copy_(2, self.position, self.last.unsqueeze(2))
        if gains is not None:
            self.scores.add_(gains.masked_fill(~self.running, 0.0))
        self.lengths.add_(self.running)
        self.position.add_(1)
        self.running.logical_and_(self.last != EOS).logical_and_(self.limits > self.position)

    def results(self, sentences: int) -> list[list[Hypothesis]]:
        rows = (tensor[:sentences].tolist() for tensor in (self.tokens, self.scores, self.lengths))
        return [
            [_hypothesis(tokens[:length], score) for tokens, score, length in zip(*own, strict=True)]
            for own in zip(*rows, strict=True)
        ]


# ---------------------------------------------------------------- greedy search


@dataclass(frozen=True)
class GreedySearch(SearchMethod):
    """Choose the most likely token at every step: the arg max of the logits, the lowest id among equals.

    Every objective is monotone in the logits, so the decision needs no activation (SCONES, footnote 7), and
    the hypotheses are the same with `with_scores` and without.
    """

    max_length_ratio: float = 2.0

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        return [best for (best,) in decode_columns(batch, 1, SCORED if batch.with_scores else UNSCORED)]


def _most_likely_unscored(
    objective: Objective, output: OutputLayer, hidden: Tensor, uniforms: None
) -> tuple[Tensor, None]:
    return output.best(hidden), None


def _most_likely(
    objective: Objective, output: OutputLayer, hidden: Tensor, uniforms: None
) -> tuple[Tensor, Tensor]:
    logits = output.logits(hidden)  # (n, 1, K)
    positions = logits.argmax(-1, keepdim=True)  # the first position, hence the lowest id, among equals
    scores = output.log_scores(objective, logits).gather(2, positions)
    return positions.squeeze(2), scores.squeeze(2)


SCORED, UNSCORED = Choice("greedy", _most_likely), Choice("argmax", _most_likely_unscored, scored=False)


def build(spec: Greedy, detokenize: Detokenize | None) -> GreedySearch:
    return GreedySearch(spec.max_length_ratio)
