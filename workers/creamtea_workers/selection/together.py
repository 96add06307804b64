"""Which source and target subwords occur together, and the number of each such pair among all of them.

A bitmap with the number of set bits before each of its words: a number is found with two reads, and the index
takes a quarter of a byte for each possible pair of subwords (30 MB where 11,000 source and 11,000 target
subwords occur), however large the corpus is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.corpora.tokens import Shard

Ids = NDArray[np.int64]
CELLS = 1 << 20  # maximum of pairs × m × n in a group of more than one pair
MAX_CELLS = 1 << 24  # m × n of a sentence pair; longer ones are left out
_BLOCK = 1 << 29  # possible pairs that are marked in one pass over the corpus, in bytes
_ENTRIES = 1 << 22  # of a table that are handled at a time


def same_shape(shard: Shard) -> Iterator[tuple[Ids, Ids, Ids]]:
    """The places of pairs of one shape, their sources (pairs, n) and targets (pairs, m), at most `CELLS`
    cells at a time, shapes in order; pairs with an empty side, and with more than `MAX_CELLS` cells, are
    omitted."""
    n, m = shard.sources.lengths, shard.targets.lengths
    places = np.flatnonzero((n > 0) & (m > 0) & (m * n <= MAX_CELLS))
    order = places[np.lexsort((n[places], m[places]))]
    changes = np.flatnonzero(np.diff(m[order]) | np.diff(n[order])) + 1
    for group in np.split(order, changes) if len(order) else []:
        shape = int(n[group[0]]), int(m[group[0]])
        size = max(1, CELLS // (shape[0] * shape[1]))
        for first in range(0, len(group), size):
            part = group[first : first + size]
            source, target = (
                side.tokens[side.offsets[part][:, None] + np.arange(length)].astype(np.int64)
                for side, length in zip(shard, shape, strict=True)
            )
            yield part, source, target


@dataclass(frozen=True)
class Together:
    """The source id `vocabulary_size` is NULL, which occurs with all targets; its row is the last."""

    sources: Ids  # (R,) the ids that occur, ascending
    targets: Ids  # (T,)
    rows: Ids  # (vocabulary_size + 1,) of each source id its row
    columns: Ids  # (vocabulary_size,) of each target id its column
    bits: NDArray[np.uint64]  # (R, words of a row)
    before: Ids  # (R × words + 1,) set bits before each word
    left_out: int  # sentence pairs with more than MAX_CELLS cells

    @classmethod
    def of(cls, shards: Iterable[Shard], vocabulary_size: int) -> Together:
        """ValueError where no sentence pair has words on both sides."""
        seen_source = np.zeros(vocabulary_size + 1, dtype=np.bool_)
        seen_target = np.zeros(vocabulary_size, dtype=np.bool_)
        left_out = 0
        for shard in shards:
            left_out += int((shard.sources.lengths * shard.targets.lengths > MAX_CELLS).sum())
            for _, source, target in same_shape(shard):
                seen_source[source] = True
                seen_target[target] = True
        if not seen_target.any():
            raise ValueError("no pair to align: every one has an empty side")
        seen_source[vocabulary_size] = True
        rows, columns = np.cumsum(seen_source) - 1, np.cumsum(seen_target) - 1
        bits = _bitmap(shards, rows, columns)
        before = np.concatenate([[0], np.cumsum(np.bitwise_count(bits), dtype=np.int64)])
        ids = np.flatnonzero(seen_source), np.flatnonzero(seen_target)
        return cls(*ids, rows, columns, bits, before, left_out)

    def __len__(self) -> int:
        return int(self.before[-1])

    @property
    def starts(self) -> Ids:
        """(R + 1,): the numbers of the pairs of row r are [starts[r], starts[r + 1])."""
        return self.before[:: self.bits.shape[1]]

    def numbers(self, source: Ids, target: Ids) -> Ids:
        """Of every word of sources (pairs, n) with every word of their targets (pairs, m): (pairs, m, n)."""
        column = self.columns[target]
        words = self.rows[source][:, None, :] * self.bits.shape[1] + (column >> 6)[:, :, None]
        lower = (np.uint64(1) << (column & 63).astype(np.uint64)) - np.uint64(1)
        set_before = np.bitwise_count(self.bits.ravel()[words] & lower[:, :, None])
        numbers: Ids = self.before[words]
        numbers += set_before
        return numbers

    def null_numbers(self, target: Ids) -> Ids:
        """Of every word of targets with NULL."""
        return self.starts[-2] + self.columns[target]

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Rows [first, last) with about `_ENTRIES` pairs, one block after the other."""
        first = 0
        while first < len(self.sources):
            last = int(np.searchsorted(self.starts, self.starts[first] + _ENTRIES, side="right")) - 1
            last = min(max(last, first + 1), len(self.sources))
            yield first, last
            first = last

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The source and target id of each pair, by number."""
        source, target = (np.empty(len(self), dtype=np.int32) for _ in range(2))
        for first, last in self.blocks():
            unpacked = np.unpackbits(self.bits[first:last].view(np.uint8), axis=1, bitorder="little")
            rows, columns = np.nonzero(unpacked)
            place = slice(self.starts[first], self.starts[last])
            source[place], target[place] = self.sources[first + rows], self.targets[columns]
        return source, target


def _bitmap(shards: Iterable[Shard], rows: Ids, columns: Ids) -> NDArray[np.uint64]:
    """(R, words of a row), bit c of row r set where they occur together. As many passes over the corpus as
    it takes to mark `_BLOCK` possible pairs at a time, mostly one."""
    count, width = int(rows[-1]) + 1, int(columns[-1]) + 1
    bits = np.zeros((count, -(-width // 64)), dtype="<u8")
    size = max(1, _BLOCK // width)
    for first in range(0, count, size):
        last = min(first + size, count)
        marks = np.zeros((last - first) * width, dtype=np.bool_)
        for shard in shards:
            for _, source, target in same_shape(shard):
                flat = rows[source][:, None, :] * width + columns[target][:, :, None]
                if last - first < count:
                    flat = flat[(flat >= first * width) & (flat < last * width)] - first * width
                marks[flat] = True
        if last == count:
            marks[-width:] = True  # NULL
        packed = np.packbits(marks.reshape(-1, width), axis=1, bitorder="little")
        bits[first:last].view(np.uint8)[:, : packed.shape[1]] = packed
    return bits
