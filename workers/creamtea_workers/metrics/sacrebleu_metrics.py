"""BLEU (Papineni et al. 2002), chrF and chrF++ (Popović 2015, 2017) and TER (Snover et al. 2006) as sacreBLEU
computes them (Post 2018). Its statistics of segments take nearly all of the time, so they are kept."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from creamtea.contract.step import StepContext
from creamtea.errors import StepUnavailable
from creamtea.methods.metrics import BY_BLANKS, Bleu, Chrf, Ter, bleu_tokenizer
from creamtea.methods.texts import Languages
from creamtea.words import THAI_TO_KHMER, UNSPACED, is_unspaced, looks_unspaced
from creamtea_workers.metrics.base import Array, Texts

KEPT = 64  # results kept for later steps in this process, which compare the same outputs
_kept: OrderedDict[bytes, Array] = OrderedDict()


class SacreBleuMetric:
    """Base class of sacreBLEU's metrics; see `creamtea_workers.metrics.base.Metric`."""

    note = ""
    facts: Mapping[str, Any] = {}
    scorer: Metric

    def statistics(self, texts: Texts) -> Array:
        return corpus_statistics(self.scorer, texts)

    def score(self, sums: Array) -> Array:
        raise NotImplementedError

    def segment_scores(self, statistics: Array) -> Array:
        return self.score(statistics)

    def signature(self) -> str:
        return str(self.scorer.get_signature())


def corpus_statistics(scorer: Metric, texts: Texts) -> Array:
    """Count statistics (n, F) against all references (read-only), and complete the scorer's signature."""
    of_segments = [_usable(references) for references in zip(*texts.all_references, strict=True)]
    references = list(zip(*of_segments, strict=True))
    counts = {sum(text is not None for text in texts) for texts in of_segments}
    scorer.num_refs = counts.pop() if len(counts) == 1 else -1  # as sacreBLEU sets it while it counts
    request = [type(scorer).__name__, str(scorer.get_signature()), texts.hypotheses, references]
    key = hashlib.sha256(json.dumps(request).encode()).digest()
    if key not in _kept:
        rows = scorer._extract_corpus_statistics(texts.hypotheses, references)
        _kept[key] = np.array(rows, dtype=np.float64)
        _kept[key].setflags(write=False)
    _kept.move_to_end(key)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return _kept[key]


def _usable(references: Sequence[str]) -> list[str | None]:
    """Replace a segment's empty references by None; if all are empty, keep the first.

    sacreBLEU would count an empty reference as the one whose length is closest to a short output.
    """
    others = [text or None for text in references]
    return others if any(others) else [references[0], *others[1:]]


WORD_ORDER = 4
_FETCHED = "its model is fetched on first use: run once with a network, or choose another tokenizer"
_REMEDIES = {
    "ja-mecab": "install sacrebleu[ja] where the workers run, or choose tokenize: char",
    "ko-mecab": "install sacrebleu[ko] where the workers run, or choose tokenize: 13a",
    **dict.fromkeys(("spm", "flores101", "flores200", "spBLEU-1K"), _FETCHED),
}


class BleuMetric(SacreBleuMetric):
    """Corpus BLEU with exponential smoothing.

    Statistics (n, 10), as sacreBLEU lays them out: hypothesis and reference length, then matched and possible
    1- to 4-grams.
    """

    name = "bleu"

    def __init__(self, spec: Bleu, languages: Languages) -> None:
        self._language, self._tokenizer = languages.target, spec.tokenize or bleu_tokenizer(languages.target)
        try:
            self.scorer = BLEU(tokenize=self._tokenizer, lowercase=spec.lowercase)
        except Exception as error:  # a missing package or model may raise anything
            remedy = _REMEDIES.get(self._tokenizer, "choose another tokenizer")
            reason = " ".join(str(error).split())
            raise StepUnavailable(
                f"BLEU's tokenizer {self._tokenizer!r} is unavailable ({reason}); {remedy}"
            ) from error

    def statistics(self, texts: Texts) -> Array:
        if self._tokenizer in BY_BLANKS and looks_unspaced(texts.references):
            fitting = bleu_tokenizer(self._language)
            remedy = f"use {fitting}"
            if fitting in BY_BLANKS:  # the language is unknown or wrong
                remedy = (
                    f"name their language, with its script if it has several (zh, nan-Hant; not "
                    f"{self._language!r}), or use zh, ja-mecab or char"
                )
            self.note = (
                f"tokenizer {self._tokenizer} does not split these texts, which have no blanks; {remedy}"
            )
        return super().statistics(texts)

    def score(self, sums: Array) -> Array:
        return bleu_from_sums(sums, effective_order=False)

    def segment_scores(self, statistics: Array) -> Array:
        """Compute sentence BLEU with the effective order, as sacreBLEU advises for sentences."""
        return bleu_from_sums(statistics, effective_order=True)


def bleu_from_sums(sums: Array, effective_order: bool) -> Array:
    """Compute BLEU (...,) from 0 to 100 from summed statistics (..., 10).

    This is sacreBLEU's `compute_bleu` for many corpora at once: brevity penalty times the geometric mean of
    the n-gram precisions. The j-th order without a match has precision 1 / (2^j · possible) ("exp"
    smoothing). If the text is too short for an order, the score is 0; with `effective_order` the mean omits
    that order.
    """
    sums = np.asarray(sums, dtype=np.float64)
    length, reference = sums[..., 0], sums[..., 1]
    matched, possible = sums[..., 2 : 2 + WORD_ORDER], sums[..., 2 + WORD_ORDER :]
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity = np.where(length < reference, np.exp(1.0 - reference / length), 1.0)
        # orders 1 … k are possible: a text has no n-gram without an (n-1)-gram
        has_order = possible > 0
        unmatched = has_order & (matched == 0)
        smoothed = 1.0 / (2.0 ** np.cumsum(unmatched, axis=-1) * possible)
        logs = np.where(has_order, np.log(100.0 * np.where(unmatched, smoothed, matched / possible)), 0.0)
        orders = has_order.sum(axis=-1)
        score = brevity * np.exp(logs.sum(axis=-1) / np.where(effective_order, orders, WORD_ORDER))
    complete = (orders == WORD_ORDER) | effective_order
    return np.where(complete & (matched > 0).any(axis=-1), score, 0.0)


CHARACTER_ORDER = 6  # of chrF2
Ids = NDArray[np.int64]
_CELLS = 1 << 22  # numbers held at once: 16 MB of features
BETA = 2  # recall weighs beta² times as much as precision


class ChrfMetric(SacreBleuMetric):
    """Corpus chrF2. Statistics (n, 3 · orders): hypothesis, reference and matched n-grams of each order.

    Sentence chrF omits orders for which either side is too short (effective order).
    """

    name = "chrf"

    def __init__(self, spec: Chrf) -> None:
        self.scorer = CHRF(word_order=spec.word_order, beta=BETA)

    def score(self, sums: Array) -> Array:
        return chrf_from_sums(sums)


def chrf_from_sums(sums: Array) -> Array:
    """Compute chrF (...,) from 0 to 100 from summed statistics (..., 3 · orders).

    chrF is the F-score of precision and recall, each averaged over the orders that both sides have.
    """
    sums = np.asarray(sums, dtype=np.float64)
    counts = sums.reshape(*sums.shape[:-1], -1, 3)
    hypothesis, reference, matched = counts[..., 0], counts[..., 1], counts[..., 2]
    effective = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(effective.sum(axis=-1), 1)
    precision = np.divide(matched, hypothesis, out=np.zeros_like(matched), where=effective).sum(-1) / orders
    recall = np.divide(matched, reference, out=np.zeros_like(matched), where=effective).sum(-1) / orders
    denominator = BETA**2 * precision + recall
    product = (1 + BETA**2) * precision * recall
    return 100.0 * np.divide(product, denominator, out=np.zeros_like(product), where=denominator > 0)


class TerMetric(SacreBleuMetric):
    """Corpus TER; statistics (n, 2): fewest edits to any reference, mean length of the references."""

    name = "ter"

    def __init__(self, spec: Ter, languages: Languages) -> None:
        unspaced = is_unspaced(languages.target)
        self.scorer = TER(
            normalized=unspaced if spec.normalized is None else spec.normalized,
            asian_support=unspaced,  # affects only normalised text in Chinese and Japanese
            case_sensitive=spec.case_sensitive,
        )

    def statistics(self, texts: Texts) -> Array:
        splits = self.scorer.normalized and self.scorer.asian_support
        if looks_unspaced(texts.references, THAI_TO_KHMER if splits else UNSPACED):
            self.note = "TER counts each of these texts, which have no blanks, as few words; use chrf"
        return super().statistics(texts)

    def score(self, sums: Array) -> Array:
        """Return edits per 100 words: (..., 2) -> (...).

        Against empty references the score is 100, or 0 without an edit.
        """
        edits, words = sums[..., 0], sums[..., 1]
        empty = np.where(edits > 0, 1.0, 0.0)
        return np.asarray(100.0 * np.divide(edits, words, out=empty, where=words > 0))


def characters(text: str) -> Ids:
    """Return the symbols of chrF: the text's characters without blanks."""
    return np.fromiter(map(ord, "".join(text.split())), np.int64)


def ngram_matches(rows: Sequence[NDArray[Any]], orders: int) -> tuple[Array, Array]:
    """Count 1- to `orders`-grams of U texts (U, orders), and shared n-grams of pairs (U, U, orders).

    `rows`: the texts' symbols. Each occurrence is shared once: the k-th occurrence of an n-gram is a feature
    of its own, and a matrix product counts the features that two texts share.
    """
    size = len(rows)
    lengths = np.array([len(row) for row in rows])
    counts = np.maximum(lengths[:, None] - np.arange(orders), 0).astype(np.float64)
    matched = np.zeros((size, size, orders))
    if not lengths.any():
        return counts, matched
    symbols: Ids = np.unique(np.concatenate(rows), return_inverse=True)[1]
    owner = np.repeat(np.arange(size), lengths)
    remaining = np.concatenate([np.arange(length, 0, -1) for length in lengths])  # symbols to the end
    grams = symbols  # (places,) a number for the n-gram that begins there; equal n-grams, equal numbers
    places = np.arange(len(symbols))
    for order in range(orders):
        if order:
            longer = remaining[places] > order
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
    """Count the n-grams that each two of `size` texts share (size, size); the diagonal is meaningless.

    `owner`: the text of each n-gram, ascending.
    """
    order = np.argsort(grams, kind="stable")  # by gram, then by owner
    gram, text = grams[order], owner[order]
    place = np.arange(len(gram))
    begins = np.ones(len(gram), dtype=bool)
    begins[1:] = (gram[1:] != gram[:-1]) | (text[1:] != text[:-1])
    occurrence = place - np.maximum.accumulate(np.where(begins, place, 0))
    features = gram * (occurrence.max() + 1) + occurrence
    _, feature, texts = np.unique(features, return_inverse=True, return_counts=True)
    common = texts[feature] > 1  # features that at least two texts have
    text = text[common]
    names, feature = np.unique(feature[common], return_inverse=True)
    total = np.zeros((size, size), dtype=np.float32)  # exact: numbers of occurrences
    chunk = max(1, _CELLS // size)
    for start in range(0, len(names), chunk):
        in_chunk = (feature >= start) & (feature < start + chunk)
        occurs = np.zeros((size, min(chunk, len(names) - start)), dtype=np.float32)
        occurs[text[in_chunk], feature[in_chunk] - start] = 1.0
        total += occurs @ occurs.T
    return total.astype(np.float64)


def build(
    spec: Bleu | Chrf | Ter, languages: Languages, context: StepContext[Any]
) -> BleuMetric | ChrfMetric | TerMetric:
    match spec:
        case Bleu():
            return BleuMetric(spec, languages)
        case Chrf():
            return ChrfMetric(spec)
        case Ter():
            return TerMetric(spec, languages)
