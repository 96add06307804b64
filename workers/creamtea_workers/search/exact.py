"""Exact search (Stahlberg and Byrne 2019): of all hypotheses within the length limit (`length_limit`) the
one with the highest score.

A beam search's hypothesis is the first bound of a depth-first search for better ones; when that has nothing
left to search, the best is proved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from creamtea.contract.step import MetricRow
from creamtea.methods.searches import Exact
from creamtea_workers.analysis.rows import mean_row, share_row
from creamtea_workers.search.base import Detokenize, Findings, SearchInput, SearchMethod
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.depth_first import FinishedSearch, SearchBudget, depth_first
from creamtea_workers.search.hypothesis import Hypothesis

OUTCOMES = ("proved", "improved", "limit")
TOLERANCE = 1e-4  # per token: two searches round the score of the same hypothesis differently


@dataclass(frozen=True)
class ExactHypothesis(Hypothesis):
    """The best hypothesis that was found. `outcome`:

    - proved: nothing was left to search, so that it is the best of all within the length limit;
    - improved: a limit was reached; it is better than the beam search's;
    - limit: a limit was reached, and nothing better than the beam search's was found.
    """

    outcome: str
    expansions: int  # prefixes that the decoder continued, the papers' explored states
    beam_score: float  # -inf: the beam search found no finished hypothesis


@dataclass(frozen=True)
class ExactSearch(SearchMethod):
    """With `depth` only hypotheses of at most that many subwords compete with the beam search's, and
    `outcome` is about those."""

    budget: SearchBudget
    depth: int | None = None  # subwords, </s> not counted
    beam: int = 4
    max_length_ratio: float = 2.0

    @property
    def rows(self) -> int:
        return max(self.beam, self.budget.nodes)

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """One hypothesis per sentence. Exact search always scores, whatever `with_scores` says."""
        hypotheses = dict(pair for finished in self.rounds(batch) for pair in finished)
        return [hypotheses[n] for n in range(len(batch.limits))]

    def rounds(self, batch: SearchInput) -> Iterator[Sequence[tuple[int, ExactHypothesis]]]:
        """The sentences whose search has finished, after every call of the decoder: often none."""
        beams = BeamSearch(self.beam)(batch)
        bounds = [beam.score if beam.finished else -math.inf for beam in beams]
        if self.depth is not None:
            batch = replace(batch, limits=[min(limit, self.depth + 1) for limit in batch.limits])
        for finished in depth_first(batch, bounds, self.budget):
            yield [(search.sentence, exact_hypothesis(beams[search.sentence], search)) for search in finished]

    def findings(self, indices: Sequence[int], hypotheses: Sequence[Hypothesis]) -> Findings:
        rows = [exact_row(index, hypothesis) for index, hypothesis in zip(indices, hypotheses, strict=True)]
        return Findings({"exact.jsonl": rows}, exact_metrics(rows))


def exact_row(index: int, hypothesis: Hypothesis) -> dict[str, Any]:
    """A line of exact.jsonl; beam_score is null if the beam search found no finished hypothesis."""
    assert isinstance(hypothesis, ExactHypothesis)
    return {
        "index": index,
        "outcome": hypothesis.outcome,
        "expansions": hypothesis.expansions,
        "beam_score": hypothesis.beam_score if math.isfinite(hypothesis.beam_score) else None,
    }


def exact_metrics(rows: Sequence[Mapping[str, Any]]) -> list[MetricRow]:
    """Of the lines of exact.jsonl."""
    outcomes = [row["outcome"] for row in rows]
    return [
        *(share_row(outcome, outcomes.count(outcome), len(rows)) for outcome in OUTCOMES),
        mean_row("expansions", [row["expansions"] for row in rows]),
    ]


def exact_hypothesis(beam: Hypothesis, search: FinishedSearch) -> ExactHypothesis:
    beam_score = beam.score if beam.finished else -math.inf
    best = beam if search.tokens is None else Hypothesis(search.tokens, search.score, finished=True)
    better = best is not beam and outscores(best, beam_score)
    return ExactHypothesis(
        tokens=best.tokens,
        score=best.score,
        finished=best.finished,
        outcome="proved" if search.exhausted else "improved" if better else "limit",
        expansions=search.expansions,
        beam_score=beam_score,
    )


def outscores(hypothesis: Hypothesis, score: float) -> bool:
    """Whether a finished hypothesis is better than one of `score`, by more than rounding explains."""
    return hypothesis.score > score + tolerance(len(hypothesis.tokens))


def tolerance(subwords: int) -> float:
    """`TOLERANCE` for each token, </s> included."""
    return TOLERANCE * (subwords + 1)


def build(spec: Exact, detokenize: Detokenize | None) -> ExactSearch:
    seconds = math.inf if spec.max_seconds is None else spec.max_seconds
    return ExactSearch(SearchBudget(spec.max_states, seconds), spec.depth, spec.beam, spec.max_length_ratio)
