"""Exact search (Stahlberg and Byrne 2019): the hypothesis with the highest score within the length limit.

The score of a beam search's hypothesis is the first bound of a depth-first search for better hypotheses. Once
nothing is left to search, the best hypothesis is proved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from creamtea.contract.step import MetricRow
from creamtea.methods.searches import Exact
from creamtea_workers.analysis.rows import mean_row, share_row
from creamtea_workers.models.interface import BOS
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Detokenize, Hypothesis, Rows, SearchInput, SearchMethod
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.output import OutputLayer

OUTCOMES = ("proved", "improved", "limit")
TOLERANCE = 1e-4  # per token: two searches round the score of the same hypothesis differently


@dataclass(frozen=True)
class ExactHypothesis(Hypothesis):
    """The best hypothesis found. `outcome`:

    - proved: nothing was left to search, so it is the best of all hypotheses within the length limit;
    - improved: the budget was spent; it is better than the beam search's hypothesis;
    - limit: the budget was spent, and nothing better than the beam search's hypothesis was found.
    """

    outcome: str
    expansions: int  # prefixes that the decoder continued ("explored states" in the papers)
    beam_score: float  # -inf: the beam search found no finished hypothesis


@dataclass(frozen=True)
class ExactSearch(SearchMethod):
    """Exact search of a batch.

    With `depth`, only hypotheses of at most that many subwords compete with the beam search's hypothesis, and
    `outcome` refers to them.
    """

    budget: SearchBudget
    depth: int | None = None  # subwords, </s> not counted
    beam: int = 4
    max_length_ratio: float = 2.0

    @property
    def rows(self) -> int:
        return max(self.beam, self.budget.nodes)

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """Return one hypothesis per sentence. Exact search always scores, whatever `with_scores` says."""
        hypotheses = dict(pair for finished in self.rounds(batch) for pair in finished)
        return [hypotheses[n] for n in range(len(batch.limits))]

    def rounds(self, batch: SearchInput) -> Iterator[Sequence[tuple[int, ExactHypothesis]]]:
        """Yield newly finished sentences (often none) after every call of the decoder."""
        beams = BeamSearch(self.beam)(batch)
        bounds = [beam.score if beam.finished else -math.inf for beam in beams]
        if self.depth is not None:
            batch = replace(batch, limits=[min(limit, self.depth + 1) for limit in batch.limits])
        for finished in depth_first(batch, bounds, self.budget):
            yield [(search.sentence, search.hypothesis(beams[search.sentence])) for search in finished]

    def findings(
        self, indices: Sequence[int], hypotheses: Sequence[Hypothesis]
    ) -> tuple[dict[str, Rows], list[MetricRow]]:
        rows: list[dict[str, Any]] = []
        for index, hypothesis in zip(indices, hypotheses, strict=True):
            assert isinstance(hypothesis, ExactHypothesis)
            beam_score = hypothesis.beam_score if math.isfinite(hypothesis.beam_score) else None
            searched = {"outcome": hypothesis.outcome, "expansions": hypothesis.expansions}
            rows.append({"index": index, **searched, "beam_score": beam_score})
        return {"exact.jsonl": rows}, exact_metrics(rows)


def exact_metrics(rows: Sequence[Mapping[str, Any]]) -> list[MetricRow]:
    """Compute metrics from the lines of exact.jsonl."""
    outcomes = [row["outcome"] for row in rows]
    return [
        *(share_row(outcome, outcomes.count(outcome), len(rows)) for outcome in OUTCOMES),
        mean_row("expansions", [row["expansions"] for row in rows], len(rows)),
    ]


def outscores(hypothesis: Hypothesis, score: float) -> bool:
    """Return True if a finished hypothesis exceeds `score` by more than rounding explains."""
    return hypothesis.score > score + tolerance(len(hypothesis.tokens))


def tolerance(subwords: int) -> float:
    """Return `TOLERANCE` for each token, </s> included."""
    return TOLERANCE * (subwords + 1)


def build(spec: Exact, detokenize: Detokenize | None) -> ExactSearch:
    seconds = math.inf if spec.max_seconds is None else spec.max_seconds
    return ExactSearch(SearchBudget(spec.max_states, seconds), spec.depth, spec.beam, spec.max_length_ratio)


# Depth-first search for hypotheses that score above a bound, for many sentences at the same time.
#
# Because log-scores are ≤ 0, continuing a prefix never raises its score. So a prefix that does not score
# above the best hypothesis so far (at first: above the given bound) is pruned with all its continuations. Of
# the continuations of a prefix, </s> comes first, then the best (Stahlberg and Byrne 2019, Algorithm 1).
#
# Every call of the decoder continues up to `SearchBudget.nodes` prefixes of each sentence, which the search
# would reach next. Once the best hypothesis is found, the order of pruning makes no difference, so little of
# this work is wasted. The search for a sentence never depends on other sentences.
#
# Shapes: n sentences, N rows (prefixes that are continued), R the largest number of rows of a sentence, D
# width, K vocabulary.


@dataclass(frozen=True)
class SearchBudget:
    """Limits of the search for one sentence."""

    expansions: int  # prefixes that the decoder continues
    seconds: float = math.inf  # the sentence's share of the time of its rounds
    only_first: bool = False  # stop at the first hypothesis above the bound
    nodes: int = 16  # maximum number of prefixes that one call of the decoder continues


@torch.inference_mode()
def depth_first(batch: SearchInput, bounds: Sequence[float], budget: SearchBudget) -> Iterator[list[_Search]]:
    """Search; before every round, yield the sentences whose search has finished (often none).

    `bounds`: the score that each sentence's hypothesis must exceed; -inf accepts any.
    """
    model, output, limits = batch.model, batch.output, batch.limits
    device = batch.memory.hidden.device
    tree = model.start_tree(batch.memory, max(limits))
    searches = [_Search(*each) for each in zip(range(len(limits)), limits, bounds, strict=True)]
    ends = output.ends(len(limits))  # (n, 1)
    while True:
        running = [not search.is_done(budget) for search in searches]
        yield [search for search, runs in zip(searches, running, strict=True) if not runs]
        if not any(running):
            return
        if not all(running):
            kept = torch.tensor(running, device=device).nonzero().squeeze(1)
            output, ends = output.keep(kept), ends[kept]
            for search, runs in zip(searches, running, strict=True):
                if not runs:  # a search that ended early still has nodes on its stack
                    tree.free([*search.released(), *(prefix.node for prefix in search.stack)])
            searches = [search for search, runs in zip(searches, running, strict=True) if runs]
        began = time.perf_counter()
        children = _Children.of(searches, budget, device)
        hidden, nodes = model.step_tree(children.tokens, children.parents, tree)
        scores = children.log_scores(batch.objective, output, hidden)
        children.end(scores, ends)
        children.push(scores, output, nodes)
        tree.free([node for search in searches for node in search.released()])
        share = (time.perf_counter() - began) / len(searches)
        for search in searches:
            search.seconds += share


@dataclass
class _Prefix:
    """A prefix that the decoder has continued, and its continuations except </s>, best first."""

    node: int
    parent: _Prefix | None
    token: int
    length: int  # subwords
    tokens: list[int]
    scores: list[float]  # score of the prefix continued by each of `tokens`
    taken: int = 0  # number of `tokens` taken so far

    def subwords(self) -> list[int]:
        tokens: list[int] = []
        prefix = self
        while prefix.parent is not None and prefix.length > 0:
            tokens.append(prefix.token)
            prefix = prefix.parent
        return tokens[::-1]


@dataclass
class _Search:
    """The search for one sentence.

    On `stack` every prefix lies above the prefixes that it extends. A prefix without continuations left is
    released once it is on top.
    """

    sentence: int
    limit: int
    best: float  # the score to exceed: at first the bound, then the score of the best hypothesis
    tokens: list[int] | None = None  # the best hypothesis above the bound, without </s>; None: none yet
    expansions: int = 0  # prefixes that the decoder continued
    seconds: float = 0.0
    stack: list[_Prefix] = field(default_factory=list)
    to_free: list[int] = field(default_factory=list)  # nodes

    def __post_init__(self) -> None:
        """Start before the empty prefix, whose only continuation is bos."""
        self.stack.append(_Prefix(self.sentence, None, -1, -1, [BOS], [0.0]))

    def has_next(self, prefix: _Prefix) -> bool:
        return prefix.taken < len(prefix.tokens) and prefix.scores[prefix.taken] > self.best

    def is_done(self, budget: SearchBudget) -> bool:
        while self.stack and not self.has_next(self.stack[-1]):
            self.to_free.append(self.stack.pop().node)
        spent = self.expansions >= budget.expansions or self.seconds >= budget.seconds
        return not self.stack or spent or (budget.only_first and self.tokens is not None)

    @property
    def exhausted(self) -> bool:
        """True if nothing is left to search."""
        return not self.stack

    def take(self, count: int) -> list[_Child]:
        """Take the next `count` continuations, or fewer if none are left, in depth-first order."""
        children: list[_Child] = []
        for prefix in reversed(self.stack):
            while len(children) < count and self.has_next(prefix):
                next_ = prefix.taken
                children.append(_Child(self, prefix, prefix.tokens[next_], prefix.scores[next_]))
                prefix.taken += 1
            if len(children) == count:
                break
        self.expansions += len(children)
        return children

    def released(self) -> list[int]:
        nodes, self.to_free = self.to_free, []
        return nodes

    def hypothesis(self, beam: Hypothesis) -> ExactHypothesis:
        beam_score = beam.score if beam.finished else -math.inf
        best = beam if self.tokens is None else Hypothesis(self.tokens, self.best, finished=True)
        better = best is not beam and outscores(best, beam_score)
        outcome = "proved" if self.exhausted else "improved" if better else "limit"
        return ExactHypothesis(
            best.tokens, best.score, best.finished, outcome, self.expansions, beam_score=beam_score
        )


@dataclass(frozen=True)
class _Child:
    """A continuation of a prefix, for the decoder to continue."""

    search: _Search
    prefix: _Prefix
    token: int
    score: float

    @property
    def length(self) -> int:
        return self.prefix.length + 1

    def bound(self) -> float:
        """Return the log-score that a continuation other than </s> must exceed.

        It is infinite if the limit leaves no room for the continuation and </s>.
        """
        has_room = self.length + 2 <= self.search.limit
        return self.search.best - self.score if has_room else math.inf

    def end(self, gain: float) -> None:
        """End the prefix with </s>, whose log-score is `gain`; keep the hypothesis if it is the best."""
        if self.score + gain > self.search.best:
            self.search.best = self.score + gain
            self.search.tokens = [*self.prefix.subwords(), self.token] if self.length else []

    def push(self, node: int, tokens: list[int], scores: list[float]) -> None:
        if tokens:
            continued = _Prefix(node, self.prefix, self.token, self.length, tokens, scores)
            self.search.stack.append(continued)
        else:
            self.search.to_free.append(node)


@dataclass(frozen=True)
class _Children:
    """The continuations of n sentences for one call of the decoder."""

    children: list[_Child]
    tokens: Tensor  # (N,)
    parents: Tensor  # (N,) nodes
    sentences: Tensor  # (N,) 0 … n-1
    slots: Tensor  # (N,) 0 … R-1, among the rows of the sentence
    shape: tuple[int, int]  # n, R

    @classmethod
    def of(cls, searches: Sequence[_Search], budget: SearchBudget, device: torch.device) -> _Children:
        taken = [search.take(min(budget.nodes, budget.expansions - search.expansions)) for search in searches]
        rows = [
            (child.token, child.prefix.node, n, m)
            for n, children in enumerate(taken)
            for m, child in enumerate(children)
        ]
        tokens, parents, sentences, slots = torch.tensor(rows, device=device).unbind(1)
        children = [child for of_sentence in taken for child in of_sentence]
        return cls(children, tokens, parents, sentences, slots, (len(taken), max(map(len, taken))))

    def log_scores(self, objective: Objective, output: OutputLayer, hidden: Tensor) -> Tensor:
        """Score hidden (N, D) -> (N, K), each row over its sentence's vocabulary."""
        grid = hidden.new_zeros(*self.shape, hidden.shape[1])  # (n, R, D)
        grid[self.sentences, self.slots] = hidden
        return output.log_scores(objective, output.logits(grid))[self.sentences, self.slots]

    def end(self, scores: Tensor, ends: Tensor) -> None:
        """End every child with </s>, which may raise the bound for all the others."""
        gains = scores.gather(1, ends[self.sentences]).squeeze(1).tolist()
        for child, gain in zip(self.children, gains, strict=True):
            child.end(gain)

    def push(self, scores: Tensor, output: OutputLayer, nodes: Sequence[int]) -> None:
        """Push the continuations above the bound; the first child's come on top of the stack."""
        bounds = scores.new_tensor([child.bound() for child in self.children])  # (N,)
        rows, positions = (scores > bounds.unsqueeze(1)).nonzero(as_tuple=True)
        ids = output.ids(torch.arange(scores.shape[1], device=scores.device).expand(self.shape[0], -1))
        tokens = ids[self.sentences[rows], positions].cpu().numpy()
        gains, row = scores[rows, positions].double().cpu().numpy(), rows.cpu().numpy()
        order = np.lexsort((tokens, -gains, row))
        tokens, gains, row = tokens[order], gains[order], row[order]
        parts = np.searchsorted(row, np.arange(len(self.children) + 1))
        for n in reversed(range(len(self.children))):
            part = slice(parts[n], parts[n + 1])
            self.children[n].push(
                nodes[n], tokens[part].tolist(), (gains[part] + self.children[n].score).tolist()
            )
