"""The alignment lexicon: the most probable target subwords of each source subword (Domhan et al. 2022, § 2).

Selecting out of context, word by word, is the method that neural vocabulary selection is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.corpora.subwords import EOS
from creamtea_workers.selection.aligner import TranslationTable

_PART = 1 << 22  # entries of a table that are sorted at a time, if no source has more
MIN_PROBABILITY = 1e-9  # entries below carry no mass and are not stored


@dataclass(frozen=True)
class Lexicon:
    """Rows of target subwords, the most probable first (equals by id), one after the other."""

    starts: NDArray[np.int64]  # (V + 1,): the row of source id s is [starts[s], starts[s + 1])
    targets: NDArray[np.int32]
    probabilities: NDArray[np.float32]

    @classmethod
    def build(cls, table: TranslationTable, max_k: int) -> Lexicon:
        """The `max_k` most probable targets of every source subword; NULL has no row."""
        sizes = np.zeros(table.vocabulary_size, dtype=np.int64)
        targets, probabilities = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.float32)]
        ends = np.searchsorted(table.source, np.arange(table.vocabulary_size), side="right")
        first = 0
        while first < table.vocabulary_size:  # a part of the sources at a time
            start = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, start + _PART, side="right")), first + 1)
            part = slice(start, int(ends[last - 1]))
            source, target, probability = table.source[part], table.target[part], table.probability[part]
            stored = probability >= MIN_PROBABILITY
            source, target, probability = source[stored], target[stored], probability[stored]
            order = np.lexsort((target, -probability, source))
            before = np.searchsorted(source[order], source[order])  # the first entry of each one's source
            order = order[np.arange(len(order)) - before < max_k]
            sizes += np.bincount(source[order], minlength=table.vocabulary_size)
            targets.append(target[order].astype(np.int32))
            probabilities.append(probability[order].astype(np.float32))
            first = last
        return cls(
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            targets=np.concatenate(targets),
            probabilities=np.concatenate(probabilities),
        )

    @classmethod
    def load(cls, path: Path) -> Lexicon:
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**arrays)

    def save(self, path: Path) -> None:
        np.savez_compressed(path, **vars(self))

    @property
    def entries(self) -> int:
        return len(self.targets)

    def select(self, source_ids: Iterable[int], k: int) -> NDArray[np.int64]:
        """The allowed target ids of a sentence, sorted, each once: the first `k` of each source subword's
        row, and EOS, without which no translation could end.

        A row with fewer than k entries gives all of them (so a k above the lexicon's `max_k` is as
        `max_k`). A source subword that training never saw, and the special ids, give nothing. Pad and bos
        are never in it, unk only where training text had it. ValueError if k < 1.
        """
        if k < 1:
            raise ValueError(f"k must be 1 or more, not {k}")
        rows = [self.targets[self.starts[id_] : self.starts[id_ + 1]][:k] for id_ in set(source_ids)]
        return np.unique(np.concatenate([np.array([EOS], dtype=np.int64), *rows]))

    def rank(self, source_ids: Iterable[int], target: int) -> int | None:
        """The smallest k with which `select` allows the target id; None where no row has it."""
        rows = [self.targets[self.starts[id_] : self.starts[id_ + 1]] for id_ in set(source_ids)]
        places = [int(place) + 1 for row in rows for place in np.flatnonzero(row == target)]
        return min(places, default=None)
