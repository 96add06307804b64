"""Batches of encoded sentence pairs, bounded by target tokens.

The batches of an epoch are a function of (pairs, limits, seed, epoch) alone: a training resumes at any
(epoch, position), and nothing depends on the number of processes or threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from creamtea_workers.corpora.tokens import Ids, Rows, Split
from creamtea_workers.models.interface import BOS, EOS, PAD, UNK

Item = TypeVar("Item")
Result = TypeVar("Result")
# bound on sentences × (subwords of the longest source)², the size of the encoder's attention
ATTENDED = 1 << 24
ROOM = 32, 128  # sentences of padding at the end of packed batches: below MANY subwords, and from MANY on
MANY = 4096


@dataclass(frozen=True)
class Batch:
    source: Tensor  # (B, S) subwords + eos, padded
    target: Tensor  # (B, T) subwords + eos, padded: the tokens to emit
    positions: Tensor  # (N,) where the flattened `target` is not padding
    read: Tensor | None = None  # (B, T) tokens that the decoder reads instead of `target`, before the shift

    @classmethod
    def of(cls, source: NDArray[np.int64], target: NDArray[np.int64]) -> Batch:
        """Make a batch of padded rows (B, S) and (B, T)."""
        positions = np.flatnonzero(target != PAD)
        return cls(*(torch.from_numpy(ids) for ids in (source, target, positions)))

    @property
    def target_in(self) -> Tensor:
        """The decoder's input (B, T): bos + subwords, padded; the longest row's eos is cut."""
        shifted = self.target.new_full(self.target.shape, BOS)
        shifted[:, 1:] = (self.target if self.read is None else self.read)[:, :-1]
        return shifted

    def without_words(self, share: float, seed: int) -> Batch:
        """Replace each subword that the model reads by the unknown one, with probability `share`."""
        random = np.random.default_rng(seed)

        def dropped(ids: Tensor) -> Tensor:
            drawn = torch.from_numpy(random.random(ids.shape) < share)
            return ids.masked_fill(drawn & (ids > EOS), UNK)

        return replace(self, source=dropped(self.source), read=dropped(self.target))

    def real(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of hidden (B, T, D) and the targets at real positions: (N, D), (N,)."""
        hidden, target = hidden.flatten(0, 1), self.target.flatten()
        if len(self.positions) == len(target):
            return hidden, target
        return hidden.index_select(0, self.positions), target.index_select(0, self.positions)

    def to(self, device: torch.device) -> Batch:
        if device.type == "cpu":
            return self

        def moved(ids: Tensor) -> Tensor:
            return ids.pin_memory().to(device, non_blocking=True)

        read = None if self.read is None else moved(self.read)
        return Batch(moved(self.source), moved(self.target), moved(self.positions), read)


@dataclass(frozen=True)
class PackedBatch:
    """The sentences of a batch, concatenated (`models.packed`).

    Padding keeps the number of different tensor sizes small: each side ends with ROOM short sentences of
    padding, and `source_starts` and `target_starts` with empty sentences.
    """

    source: Tensor  # (N_s,) subwords + eos
    target_in: Tensor  # (N_t,) bos + subwords
    places: Tensor  # (N_s + N_t,) position of each token in its sentence, source then target
    targets: Tensor  # (N,) tokens that the decoder's first N rows must emit; the other rows are padding
    source_starts: Tensor  # (R + 1,)
    target_starts: Tensor  # (R + 1,)
    seed: Tensor  # () random seed of dropout
    longest: tuple[int, int]  # powers of two that no sentence of source and target exceeds

    @classmethod
    def of(cls, batch: Batch, seed: int, device: torch.device) -> PackedBatch:
        """Pack a batch, and copy it to the device in one transfer."""
        room = ROOM[max(batch.source.numel(), batch.target.numel()) >= MANY]
        rows = 1 << (len(batch.source) + room - 1).bit_length()
        sides, longest = [], []
        # a batch is filled up to its target tokens: their number hardly differs
        for ids, table, parts in ((batch.source, batch.source, 16), (batch.target_in, batch.target, 32)):
            inside = table.numpy() != PAD
            lengths = inside.sum(1)
            used = int(lengths.sum())
            padding = rounded_up(used + room, parts) - used
            lengths = np.concatenate([lengths, (padding + np.arange(room)) // room])
            starts = np.full(rows + 1, used + padding)
            starts[: len(lengths) + 1] = np.concatenate([[0], np.cumsum(lengths)])
            packed = np.full(used + padding, PAD)
            packed[:used] = ids.numpy()[inside]
            places = np.arange(len(packed)) - np.repeat(starts[: len(lengths)], lengths)
            sides.append((packed, places, starts))
            longest.append(1 << (int(lengths.max()) - 1).bit_length())
        (source, source_places, source_starts), (target_in, target_places, target_starts) = sides
        targets = batch.target.flatten().index_select(0, batch.positions).numpy()
        drawn = np.array([seed], dtype=np.uint64).view(np.int64)
        places = np.concatenate([source_places, target_places])
        arrays = [source, target_in, places, targets, source_starts, target_starts, drawn]
        flat = torch.from_numpy(np.concatenate(arrays))
        if device.type != "cpu":
            flat = flat.pin_memory().to(device, non_blocking=True)
        *tensors, last = flat.split([*map(len, arrays)])
        fields: list[Any] = [*tensors, last[0], tuple(longest)]
        return cls(*fields)


def rounded_up(rows: int, parts: int) -> int:
    """Round up to a multiple of 8, and to few different numbers: by at most 1 / `parts` of the rows."""
    step = max(8, (1 << (rows - 1).bit_length()) // (2 * parts))
    return -(-rows // step) * step


class Pairs:
    """Encoded sentence pairs, in memory or mapped.

    Pairs with more than `max_tokens` subwords on a side, eos not counted, are left out. `source_lengths` and
    `target_lengths` count eos, which a batch adds and `sources` and `targets` do not have.
    """

    def __init__(
        self, sources: Rows | Iterable[Ids], targets: Rows | Iterable[Ids], max_tokens: int | None = None
    ) -> None:
        source, target = Rows.of(sources), Rows.of(targets)
        if len(source) != len(target):
            raise ValueError(f"{len(source)} sources and {len(target)} targets are not pairs")
        kept = np.ones(len(source), dtype=np.bool_)
        if max_tokens is not None:
            kept = np.maximum(source.lengths, target.lengths) <= max_tokens
        self.left_out = int(len(kept) - kept.sum())
        rows = np.flatnonzero(kept) if self.left_out else None  # one array for both sides
        self.sources, self.targets = source.only(rows), target.only(rows)
        self.source_lengths = self.sources.lengths + 1
        self.target_lengths = self.targets.lengths + 1

    @classmethod
    def load(cls, folder: Path, split: Split, max_tokens: int | None = None) -> Pairs:
        return cls(Rows.load(folder, split, "src"), Rows.load(folder, split, "tgt"), max_tokens)

    def __len__(self) -> int:
        return len(self.sources)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        return Batch.of(self.sources.table(rows, PAD, EOS), self.targets.table(rows, PAD, EOS))


def plan_epoch(
    pairs: Pairs, batch_tokens: int, seed: int, epoch: int, batch_sentences: int | None = None
) -> list[NDArray[np.int64]]:
    """Plan an epoch: return the rows of each batch, in training order. Every pair occurs once.

    The pairs are shuffled, then sorted by target and source length (ties stay shuffled), cut into batches
    of at most `batch_tokens` target positions, padding included, and the batches are shuffled. A pair
    longer than `batch_tokens` is a batch of its own. `batch_sentences`: batches of this many pairs instead.
    """
    random = np.random.default_rng((seed, epoch))
    shuffled = random.permutation(len(pairs))
    order = shuffled[order_by_length(pairs.target_lengths[shuffled], pairs.source_lengths[shuffled])]
    if batch_sentences is None:
        cuts = cut(pairs.target_lengths[order], batch_tokens)
    else:
        cuts = [*range(0, len(order), batch_sentences), len(order)]
    batches = [order[first:last] for first, last in pairwise(cuts)]
    return [batches[i] for i in random.permutation(len(batches))]


def plan_in_order(pairs: Pairs, batch_tokens: int) -> list[NDArray[np.int64]]:
    """Plan batches for evaluation: by length, not shuffled."""
    order = order_by_length(pairs.target_lengths, pairs.source_lengths)
    cuts = cut(pairs.target_lengths[order], batch_tokens)
    return [
        np.array(rows)
        for first, last in pairwise(cuts)
        for rows in parts(order[first:last].tolist(), pairs.source_lengths)
    ]


def order_by_length(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return np.lexsort((second, first)): the places by `first`, then `second`, then place, ascending.

    It sorts single numbers that hold all three keys, which is faster than lexsort.
    """
    if not len(first):
        return np.zeros(0, dtype=np.int64)
    keys = first * (int(second.max()) + 1) + second
    bits = len(first).bit_length()
    if int(keys.max()) >> (63 - bits):
        raise ValueError(f"{len(first)} pairs of up to {first.max()} subwords cannot be put in order")
    keys <<= bits
    keys |= np.arange(len(first))
    keys.sort()
    return keys & ((1 << bits) - 1)


def cut(lengths: NDArray[np.int64], batch_tokens: int) -> list[int]:
    """Return where to cut ascending lengths > 0 so that rows × longest stays within `batch_tokens`."""
    cuts = [0]
    # rows of one length, [start, end), have their cuts at equal distances
    starts = np.flatnonzero(np.diff(lengths, prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(lengths)]):
        rows = max(1, batch_tokens // int(lengths[start]))
        # the first cut among these rows is where the batch begun with shorter rows would grow too large
        place = max(start, cuts[-1] + rows)
        cuts += range(place, end, rows)
    return [*cuts, len(lengths)] if len(lengths) else cuts


def in_batches(
    batches: Iterable[Sequence[int]], items: Sequence[Item], work: Callable[[list[Item]], Sequence[Result]]
) -> list[Result]:
    """Do `work` on batches of all items, given by position; return the results in the items' order."""
    results: dict[int, Result] = {}
    for batch in batches:
        results.update(zip(batch, work([items[n] for n in batch]), strict=True))
    return [results[n] for n in range(len(items))]


def parts(
    order: Sequence[int],
    lengths: Sequence[int] | NDArray[np.int64],
    most: int | None = None,
    may_pad: bool = True,
) -> Iterator[list[int]]:
    """Cut sentences, in the given order, into batches of at most `most` sentences and of ATTENDED.

    `lengths`: the length of every source. Without `may_pad` (a property of the model), all sources of a batch
    have the same length.
    """
    part: list[int] = []
    longest = 0
    for n in order:
        length, before = int(lengths[n]), longest
        longest = max(longest, length)
        full = len(part) == most or (len(part) + 1) * longest**2 > ATTENDED
        if part and (full or not (may_pad or length == before)):
            yield part
            part, longest = [], length
        part.append(n)
    if part:
        yield part
