"""What of a reference a selection reaches (NVS paper, section 2.3).

Recall is the share of the *unique* subwords of the reference that are in the sentence's selected set, EOS
on neither side. Two scopes: the whole reference, and only its subwords that overlap the target span of
an idiom. In both the set is the one that decoding uses: selected from the whole source sentence. (The
paper asks the lexicon in idiom scope for the idiom's source words only, which a lexicon can only lose by.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.models.interface import EOS, TranslationModel
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection.lexicon import Lexicon
from creamtea_workers.selection.nvs import logit

Ids = NDArray[np.int64]
Counts = NDArray[np.int64]  # (settings, 3): selected ids, those of the reference, those of its idioms

_CELLS = 1 << 24  # NVS logits held at once: 64 MB


@dataclass(frozen=True)
class Reference:
    """Unique subwords of a reference."""

    sentence: Ids
    idiom: Ids  # those that overlap an idiom; empty where the segment has none

    @classmethod
    def of(cls, subwords: SubwordModel, text: str, spans: Iterable[Sequence[int]]) -> Reference:
        """`spans`: the idioms' [from, to) characters in the text."""
        offsets, spans = subwords.offsets(text), list(spans)
        inside = [
            offset.id
            for offset in offsets
            if any(offset.start < end and start < offset.end for start, end in spans)
        ]
        return cls(_unique(offset.id for offset in offsets), _unique(inside))


def _unique(ids: Iterable[int]) -> Ids:
    return np.unique(np.fromiter(ids, dtype=np.int64))


def full_counts(vocabulary_size: int, reference: Reference) -> Counts:
    """Of the one setting "everything"."""
    return np.array([[vocabulary_size, len(reference.sentence), len(reference.idiom)]])


def lexicon_counts(
    lexicon: Lexicon, source: Sequence[int], reference: Reference, ks: Sequence[int]
) -> Counts:
    """One row for each k."""
    rows = []
    for k in ks:
        ids = lexicon.select(source, k)
        rows.append([len(ids), *(int(np.isin(wanted, ids).sum()) for wanted in _scopes(reference))])
    return np.array(rows)


def nvs_counts(
    model: TranslationModel,
    sources: Sequence[Sequence[int]],
    references: Sequence[Reference],
    thresholds: Sequence[float],
) -> list[Counts]:
    """For each sentence of a batch one row for each threshold; the model runs once for all of them."""
    with torch.inference_mode():
        memory = model.encode(source_batch(sources, model.output_weight.device))
        logits = model.nvs_logits(memory).cpu().numpy()  # (B, V)
    logits[:, EOS] = np.inf  # always selected
    least = np.array([logit(threshold) for threshold in thresholds])[:, None]
    return [
        np.stack([(row[wanted] > least).sum(axis=1) for wanted in (slice(None), *_scopes(reference))], axis=1)
        for row, reference in zip(logits, references, strict=True)
    ]


def nvs_batch_size(vocabulary_size: int) -> int:
    return max(1, min(64, _CELLS // vocabulary_size))


def _scopes(reference: Reference) -> tuple[Ids, Ids]:
    return reference.sentence, reference.idiom
