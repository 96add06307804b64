"""BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU

from creamtea.contract.step import StepContext
from creamtea.errors import StepUnavailable
from creamtea.methods.metrics import BY_BLANKS, Bleu, bleu_tokenizer
from creamtea.methods.texts import Languages
from creamtea.words import looks_unspaced
from creamtea_workers.metrics.base import Array, Texts
from creamtea_workers.metrics.sacrebleu_statistics import SacreBleuMetric

ORDER = 4
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
            self.note = self._unsplit()
        return super().statistics(texts)

    def _unsplit(self) -> str:
        fitting = bleu_tokenizer(self._language)
        remedy = f"use {fitting}"
        if fitting in BY_BLANKS:  # the language is unknown or wrong
            remedy = f"name their language (not {self._language!r}), or use zh, ja-mecab or char"
        return f"tokenizer {self._tokenizer} does not split these texts, which have no blanks; {remedy}"

    def score(self, sums: Array) -> Array:
        return bleu_from_sums(sums, effective_order=False)

    def segment_scores(self, statistics: Array) -> Array:
        """Compute sentence BLEU with the effective order, as sacreBLEU advises for sentences."""
        return bleu_from_sums(statistics, effective_order=True)


def bleu_from_sums(sums: Array, effective_order: bool) -> Array:
    """Compute BLEU (...,) from 0 to 100 of summed statistics (..., 10).

    This is sacreBLEU's `compute_bleu` for many corpora at once: brevity penalty times the geometric mean of
    the n-gram precisions. An order without a match counts as 1 / (2^j · possible) at its j-th occurrence
    ("exp" smoothing). If the text is too short for an order, the score is 0; with `effective_order` the mean
    omits that order.
    """
    sums = np.asarray(sums, dtype=np.float64)
    length, reference = sums[..., 0], sums[..., 1]
    matched, possible = sums[..., 2 : 2 + ORDER], sums[..., 2 + ORDER :]
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity = np.where(length < reference, np.exp(1.0 - reference / length), 1.0)
        # orders 1 … k are possible: a text has no n-gram without an (n-1)-gram
        has_order = possible > 0
        unmatched = has_order & (matched == 0)
        smoothed = 1.0 / (2.0 ** np.cumsum(unmatched, axis=-1) * possible)
        logs = np.where(has_order, np.log(100.0 * np.where(unmatched, smoothed, matched / possible)), 0.0)
        orders = has_order.sum(axis=-1)
        score = brevity * np.exp(logs.sum(axis=-1) / np.where(effective_order, orders, ORDER))
    complete = (orders == ORDER) | effective_order
    return np.where(complete & (matched > 0).any(axis=-1), score, 0.0)


def build(spec: Bleu, languages: Languages, context: StepContext[Any]) -> BleuMetric:
    return BleuMetric(spec, languages)
