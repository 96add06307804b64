"""Reranking: of several candidates the one that a metric scores best (Fernandes et al. 2022).

A metric without references scores each candidate. Any other has each candidate as the hypothesis and every
candidate of the sentence as the reference, as often as it was drawn: the expected utility of minimum Bayes
risk decoding (`search.mbr`). All are scored at once, so that a metric with a model of its own loads it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creamtea.contract.step import MetricRow, StepContext
from creamtea.methods.metrics import Metric
from creamtea.methods.searches import Rerank
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.base import Texts
from creamtea_workers.search.base import Detokenize, Hypothesis, SearchInput, SearchMethod
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.mbr import best_of, by_text
from creamtea_workers.search.sample import Sampler, sampler_of


@dataclass(frozen=True)
class Candidates(Hypothesis):
    """The candidate with the highest score, and all candidates: samples may repeat, a beam's do not."""

    candidates: list[Hypothesis]


@dataclass(frozen=True)
class RerankSearch(SearchMethod):
    sampler: Sampler | None  # None: a beam
    count: int  # candidates per sentence
    metric: Metric
    detokenize: Detokenize
    max_length_ratio: float = 2.0

    @property
    def rows(self) -> int:
        return self.count

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        if self.sampler is None:
            found = BeamSearch(self.count, 1.0, self.max_length_ratio).best(batch, self.count)
        else:
            found = self.sampler.draw(batch, self.count)
        best = [max(candidates, key=lambda candidate: candidate.score) for candidates in found]
        return [
            Candidates(one.tokens, one.score, one.finished, candidates)
            for one, candidates in zip(best, found, strict=True)
        ]

    def settle(
        self, sources: Sequence[str], hypotheses: Sequence[Hypothesis], context: StepContext[Any]
    ) -> tuple[Sequence[Hypothesis], Sequence[MetricRow]]:
        """Choose the candidate of each source that the metric scores best.

        If candidates are equal, the higher score wins, then the first. Candidates with the same text are one
        candidate, with the highest of their scores.
        """
        groups = [  # an empty source has one hypothesis, without candidates
            by_text(found.candidates if isinstance(found, Candidates) else [found], self.detokenize)
            for found in hypotheses
        ]
        pairs = [
            (n, text, reference)
            for n, group in enumerate(groups)
            if len(group) > 1
            for text in group
            for reference in (group if self.metric.needs_references else ("",))
        ]
        metric = build_metric(self.metric, context.params.languages, context)
        values = np.zeros(0)
        if pairs:
            texts = Texts(
                list(range(len(pairs))),
                [sources[n] for n, _, _ in pairs],
                [text for _, text, _ in pairs],
                [reference for _, _, reference in pairs],
            )
            values = metric.segment_scores(metric.statistics(texts))
        if self.metric.column().better == "lower":
            values = -values
        chosen, place = list[Hypothesis](), 0
        for group in groups:
            if len(group) == 1:
                chosen.append(best_of(group, np.zeros(1)))
                continue
            size = len(group) if self.metric.needs_references else 1
            own = values[place : place + len(group) * size].reshape(len(group), size)
            place += len(group) * size
            weights = [len(same) for same in group.values()] if size > 1 else [1]
            chosen.append(best_of(group, np.average(own, axis=1, weights=weights)))
        changed = sum(own.tokens != top.tokens for own, top in zip(chosen, hypotheses, strict=True))
        detail = {"count": changed, "of": len(chosen), "signature": metric.signature() if pairs else ""}
        return chosen, [MetricRow("reranked", changed / len(chosen), detail=detail)]


def build(spec: Rerank, detokenize: Detokenize | None) -> RerankSearch:
    if detokenize is None:
        raise ValueError("reranking compares texts: build_search needs `detokenize`")
    sampler = sampler_of(spec) if spec.found_by == "samples" else None
    return RerankSearch(sampler, spec.candidates, spec.metric, detokenize, spec.max_length_ratio)
