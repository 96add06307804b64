"""Error rates of words: WER, PER, accuracy, mean Levenshtein distance.

Peters and Martins 2021, sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from creamtea.contract.step import StepContext
from creamtea.methods.metrics import OfWords
from creamtea.methods.texts import Languages
from creamtea.words import normalise
from creamtea_workers.metrics.base import Array, Texts


def count(metric: str, hypothesis: str, reference: str) -> tuple[float, float]:
    """Return a word's number of errors (for accuracy: successes), and of units to divide by."""
    match metric:
        case "wer":
            return float(hypothesis != reference), 1.0
        case "accuracy":
            return float(hypothesis == reference), 1.0
        case "levenshtein":
            return float(Levenshtein.distance(hypothesis, reference)), 1.0
    tokens = reference.split()
    return float(Levenshtein.distance(hypothesis.split(), tokens)), float(len(tokens))


@dataclass
class WordMetric:
    """The mean over groups of scale · Σ errors / Σ units.

    Statistics (n, 2G): errors and units in the column pair of the word's group, 0 in the others.
    """

    name: str
    note: str = ""
    groups: int = 0  # known once `statistics` has run

    @property
    def scale(self) -> float:
        return 1.0 if self.name == "levenshtein" else 100.0

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"rapidfuzz": version("rapidfuzz")}

    def statistics(self, texts: Texts) -> Array:
        names = sorted(set(texts.groups))
        self.groups = len(names)
        rows = np.zeros((len(texts.references), len(names), 2))
        for n, (hypothesis, reference, group) in enumerate(
            zip(texts.hypotheses, texts.references, texts.groups, strict=True)
        ):
            rows[n, names.index(group)] = count(self.name, normalise(hypothesis), normalise(reference))
        return rows.reshape(len(rows), -1)

    def score(self, sums: Array) -> Array:
        of_groups = sums.reshape(*sums.shape[:-1], -1, 2)  # (..., G, 2)
        return np.asarray(self.scale * _rate(of_groups).mean(axis=-1))

    def segment_scores(self, statistics: Array) -> Array:
        return np.asarray(self.scale * _rate(self.of_own_group(statistics)))

    def of_own_group(self, statistics: Array) -> Array:
        """Sum over groups: (n, 2G) -> (n, 2), the errors and units of each word."""
        return np.asarray(statistics.reshape(len(statistics), -1, 2).sum(axis=1))

    def signature(self) -> str:
        return f"metric:{self.name}|mean of groups:{self.groups}|text:NFC"


def _rate(sums: Array) -> Array:
    """Divide errors by units: (..., 2) -> (...). Empty references count as one unit."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1.0))


def build(spec: OfWords, languages: Languages, context: StepContext[Any]) -> WordMetric:
    return WordMetric(spec.kind)
