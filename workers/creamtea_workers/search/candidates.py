"""Searches that choose one of several candidates: minimum Bayes risk decoding and reranking.

Minimum Bayes risk decoding over samples (Eikema and Aziz 2020) chooses the sample with the highest expected
utility: its mean utility with every sample as the reference. Samples are both the candidates and the Monte
Carlo estimate of the model's distribution. Samples with the same text are one candidate, and count as
references as often as they were drawn.

Reranking (Fernandes et al. 2022) chooses the candidate that a metric scores best. A metric without references
scores each candidate; any other metric scores each candidate against every candidate of the sentence, as in
minimum Bayes risk decoding. All pairs are scored at once, so that a metric loads its model only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from creamtea.contract.step import MetricRow, StepContext
from creamtea.methods.metrics import Metric
from creamtea.methods.searches import Mbr, Rerank
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.base import Array, Texts
from creamtea_workers.metrics.sacrebleu_metrics import (
    CHARACTER_ORDER,
    WORD_ORDER,
    bleu_from_sums,
    characters,
    chrf_from_sums,
    ngram_matches,
)
from creamtea_workers.search.base import Detokenize, Hypothesis, SearchInput, SearchMethod
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.sample import Sampler, sampler_of

Utility = Literal["chrf", "bleu"]
_DIGITS = 9  # means are rounded before comparison: the order of summation changes their last digits
_CELLS = 1 << 22  # numbers held at once: 32 MB of statistics
_tokenize = Tokenizer13a()


@dataclass(frozen=True)
class MbrSearch(SearchMethod):
    """Choose the sample with the highest expected utility.

    Among equal samples the highest score wins, then the first.
    """

    sampler: Sampler
    samples: int  # per sentence
    utility: Utility
    detokenize: Detokenize
    max_length_ratio: float = 2.0

    @property
    def rows(self) -> int:
        return self.samples

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """Return one hypothesis per sentence. `Hypothesis.score` is the model's, as in every search."""
        return [self.choose(samples) for samples in self.sampler.draw(batch, self.samples)]

    def choose(self, samples: Sequence[Hypothesis]) -> Hypothesis:
        """Choose the sample with the highest expected utility."""
        groups = by_text(samples, self.detokenize)
        counts = [len(group) for group in groups.values()]
        return best_of(groups, expected_utilities(list(groups), counts, self.utility))


def by_text(hypotheses: Sequence[Hypothesis], detokenize: Detokenize) -> dict[str, list[Hypothesis]]:
    groups: dict[str, list[Hypothesis]] = {}
    for hypothesis in hypotheses:
        groups.setdefault(detokenize(hypothesis.tokens), []).append(hypothesis)
    return groups


def best_of(groups: Mapping[str, Sequence[Hypothesis]], values: Array) -> Hypothesis:
    """Return the best hypothesis of the text with the highest value.

    Among equal texts the highest score wins, then the first.
    """
    best = [max(group, key=lambda hypothesis: hypothesis.score) for group in groups.values()]
    ranked = zip(values.round(_DIGITS).tolist(), best, strict=True)
    return max(ranked, key=lambda pair: (pair[0], pair[1].score))[1]


def expected_utilities(texts: Sequence[str], counts: Sequence[int], utility: Utility) -> Array:
    """Return the mean utility (U,) of U texts against all samples; text j was sampled counts[j] times."""
    times = np.asarray(counts, dtype=np.float64)
    return pairwise_utilities(texts, utility) @ times / times.sum()


def pairwise_utilities(texts: Sequence[str], utility: Utility) -> Array:
    """Return utilities (U, U) from 0 to 100: hypothesis i (row) against reference j (column).

    The values are sacreBLEU's sentence scores. BLEU has the effective order, as sacreBLEU advises, and the
    tokeniser 13a, which does not split languages written without blanks (use chrF for those).
    """
    if utility == "chrf":
        counts, matched = ngram_matches(list(map(characters, texts)), CHARACTER_ORDER)
    else:
        symbols = [np.array(_tokenize(text.rstrip()).split(), dtype=str) for text in texts]
        counts, matched = ngram_matches(symbols, WORD_ORDER)
    size, orders = counts.shape
    result = np.empty((size, size))
    chunk = max(1, _CELLS // (size * 3 * orders))
    for start in range(0, size, chunk):
        part = slice(start, start + chunk)
        own = np.broadcast_to(counts[part, None], (len(counts[part]), size, orders))
        others = np.broadcast_to(counts[None], own.shape)
        if utility == "chrf":
            statistics = np.stack([own, others, matched[part]], axis=3)  # (·, U, orders, 3)
            result[part] = chrf_from_sums(statistics.reshape(*own.shape[:2], -1))
        else:
            lengths = (own[:, :, :1], others[:, :, :1])
            result[part] = bleu_from_sums(
                np.concatenate([*lengths, matched[part], own], axis=2), effective_order=True
            )
    return result


@dataclass(frozen=True)
class Candidates(Hypothesis):
    """The candidate with the highest score, and all candidates (samples may repeat)."""

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
            drawn = BeamSearch(self.count, 1.0, self.max_length_ratio).best(batch, self.count)
        else:
            drawn = self.sampler.draw(batch, self.count)
        best = [max(candidates, key=lambda candidate: candidate.score) for candidates in drawn]
        return [
            Candidates(hypothesis.tokens, hypothesis.score, hypothesis.finished, candidates)
            for hypothesis, candidates in zip(best, drawn, strict=True)
        ]

    def settle(
        self, sources: Sequence[str], hypotheses: Sequence[Hypothesis], context: StepContext[Any]
    ) -> tuple[Sequence[Hypothesis], Sequence[MetricRow]]:
        """Choose for each source the candidate that the metric scores best.

        Among equal candidates the highest score wins, then the first. Candidates with the same text are one
        candidate, with the highest of their scores.
        """
        groups = [  # an empty source has one hypothesis, without candidates
            by_text(best.candidates if isinstance(best, Candidates) else [best], self.detokenize)
            for best in hypotheses
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


def build(spec: Mbr | Rerank, detokenize: Detokenize | None) -> MbrSearch | RerankSearch:
    if detokenize is None:
        raise ValueError(f"{spec.kind} compares texts: build_search needs `detokenize`")
    if isinstance(spec, Mbr):
        return MbrSearch(sampler_of(spec), spec.samples, spec.utility, detokenize, spec.max_length_ratio)
    sampler = sampler_of(spec) if spec.found_by == "samples" else None
    return RerankSearch(sampler, spec.candidates, spec.metric, detokenize, spec.max_length_ratio)
