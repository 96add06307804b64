"""Metrics of sacreBLEU, whose statistics of segments take nearly all of their time."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric

from creamtea_workers.metrics.base import Array, Texts

KEPT = 64  # results kept in this process, whose later steps compare the same outputs
_kept: OrderedDict[bytes, Array] = OrderedDict()


class SacreBleuMetric:
    """What metrics of sacreBLEU share; see `creamtea_workers.metrics.base.Metric`."""

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
    """Count read-only statistics (n, F) against all references.

    Afterwards the scorer's signature is known.
    """
    given = [_given(references) for references in zip(*texts.all_references, strict=True)]
    references = list(zip(*given, strict=True))
    counts = {sum(text is not None for text in texts) for texts in given}
    scorer.num_refs = counts.pop() if len(counts) == 1 else -1  # as sacreBLEU sets it while it counts
    asked = [type(scorer).__name__, str(scorer.get_signature()), texts.hypotheses, references]
    key = hashlib.sha256(json.dumps(asked).encode()).digest()
    if key not in _kept:
        rows = scorer._extract_corpus_statistics(texts.hypotheses, references)
        _kept[key] = np.array(rows, dtype=np.float64)
        _kept[key].setflags(write=False)
    _kept.move_to_end(key)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return _kept[key]


def _given(references: Sequence[str]) -> list[str | None]:
    """Return the references of one segment that count: an empty one only if there is no other.

    sacreBLEU would count an empty reference as a text of length 0, to which a short output comes closest.
    """
    others = [text or None for text in references]
    return others if any(others) else [references[0], *others[1:]]
