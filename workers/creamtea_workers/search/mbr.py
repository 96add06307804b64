"""Minimum Bayes risk decoding over samples (Eikema and Aziz 2020).

The result is the sample with the highest expected utility, its mean utility with each of the samples as the
reference: samples are both the candidates and the Monte Carlo estimate of the model's distribution. Samples
with the same text are one candidate, and count as references as often as they were drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from creamtea.methods.searches import Mbr
from creamtea_workers.metrics.base import Array
from creamtea_workers.metrics.bleu import ORDER as WORD_ORDER
from creamtea_workers.metrics.bleu import bleu_from_sums
from creamtea_workers.metrics.chrf import chrf_from_sums
from creamtea_workers.search.base import Detokenize, Hypothesis, SearchInput, SearchMethod
from creamtea_workers.search.sample import Sampler, sampler_of

_DIGITS = 9  # of means that are compared: equal ones may differ by the order of summation


@dataclass(frozen=True)
class MbrSearch(SearchMethod):
    """Choose the sample with the highest expected utility. Of equal ones the higher score wins, then the
    first."""

    sampler: Sampler
    samples: int  # per sentence
    utility: Utility
    detokenize: Detokenize
    max_length_ratio: float = 2.0

    @property
    def rows(self) -> int:
        return self.samples

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """One hypothesis per sentence. `Hypothesis.score` is the model's, as in every search."""
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

    Of equal ones the higher score wins, then the first.
    """
    best = [max(group, key=lambda hypothesis: hypothesis.score) for group in groups.values()]
    ranked = zip(values.round(_DIGITS).tolist(), best, strict=True)
    return max(ranked, key=lambda pair: (pair[0], pair[1].score))[1]


def build(spec: Mbr, detokenize: Detokenize | None) -> MbrSearch:
    if detokenize is None:
        raise ValueError("MBR compares texts: build_search needs `detokenize`")
    return MbrSearch(sampler_of(spec), spec.samples, spec.utility, detokenize, spec.max_length_ratio)


# Sentence chrF and BLEU of every text of a list against every other, for minimum Bayes risk.
#
# The values are sacreBLEU's sentence scores (effective order for BLEU, as it advises; its tokeniser 13a,
# which does not split languages written without blanks: chrF is for those). Each text's n-grams are counted
# once. The k-th occurrence of an n-gram is a separate feature, so that the matches of two texts, the sum of
# min(count, count) over n-grams, are the number of features that they share: a matrix product.


Utility = Literal["chrf", "bleu"]
Ids = NDArray[np.int64]

CHARACTER_ORDER = 6  # as in chrF2
_CELLS = 1 << 22  # numbers held at once: 16 MB of features, 32 MB of statistics

_tokenize = Tokenizer13a()


def expected_utilities(texts: Sequence[str], counts: Sequence[int], utility: Utility) -> Array:
    """Return the mean utility of each of U texts against all samples (U,); text j is `counts[j]` samples."""
    times = np.asarray(counts, dtype=np.float64)
    return pairwise_utilities(texts, utility) @ times / times.sum()


def pairwise_utilities(texts: Sequence[str], utility: Utility) -> Array:
    """Return (U, U) in 0 … 100: row i as the hypothesis against column j as the reference."""
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


def characters(text: str) -> Ids:
    """Return the symbols of chrF: the text's characters without blanks."""
    return np.fromiter(map(ord, "".join(text.split())), np.int64)


def ngram_matches(rows: Sequence[NDArray[Any]], orders: int) -> tuple[Array, Array]:
    """Count 1- to `orders`-grams of U texts (U, orders), and those that two texts share (U, U, orders).

    Each occurrence is shared once. `rows`: the texts' symbols.
    """
    size = len(rows)
    lengths = np.array([len(row) for row in rows])
    counts = np.maximum(lengths[:, None] - np.arange(orders), 0).astype(np.float64)
    matched = np.zeros((size, size, orders))
    if not lengths.any():
        return counts, matched
    symbols: Ids = np.unique(np.concatenate(rows), return_inverse=True)[1]
    owner = np.repeat(np.arange(size), lengths)
    left = np.concatenate([np.arange(length, 0, -1) for length in lengths])  # symbols from here to the end
    grams = symbols  # of each place where one begins: a number for the n-gram, equal for equal ones
    places = np.arange(len(symbols))
    for order in range(orders):
        if order:
            longer = left[places] > order
            places, grams = places[longer], grams[longer]
            if len(places) == 0:
                break
            # renumbered at every order, so that the products stay small
            pairs = grams * (int(symbols.max()) + 1) + symbols[places + order]
            grams = np.unique(pairs, return_inverse=True)[1]
        matched[:, :, order] = _shared(grams, owner[places], size)
        np.fill_diagonal(matched[:, :, order], counts[:, order])
    return counts, matched


def _shared(grams: Ids, owner: Ids, size: int) -> Array:
    """Occurrences of n-grams that two of `size` texts share (size, size), right off the diagonal only;
    `owner` of the grams ascends."""
    order = np.argsort(grams, kind="stable")  # by gram, then by owner
    gram, text = grams[order], owner[order]
    place = np.arange(len(gram))
    begins = np.ones(len(gram), dtype=bool)
    begins[1:] = (gram[1:] != gram[:-1]) | (text[1:] != text[:-1])
    occurrence = place - np.maximum.accumulate(np.where(begins, place, 0))
    features = gram * (occurrence.max() + 1) + occurrence
    _, feature, texts = np.unique(features, return_inverse=True, return_counts=True)
    common = texts[feature] > 1  # what one text alone has is shared with nobody
    text = text[common]
    names, feature = np.unique(feature[common], return_inverse=True)
    total = np.zeros((size, size), dtype=np.float32)  # exact: numbers of occurrences
    chunk = max(1, _CELLS // size)
    for start in range(0, len(names), chunk):
        here = (feature >= start) & (feature < start + chunk)
        has = np.zeros((size, min(chunk, len(names) - start)), dtype=np.float32)
        has[text[here], feature[here] - start] = 1.0
        total += has @ has.T
    return total.astype(np.float64)
