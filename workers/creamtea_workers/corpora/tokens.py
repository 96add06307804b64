"""Encoded text: the tokens of all sentences in one array, and where each sentence begins.

A step `encode` writes both arrays of each side as `.npy` files, and other steps map them: only the parts that
are read take memory, and processes on one machine share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

Ids = Sequence[int]
Split = Literal["train", "dev"]
SPLITS: tuple[Split, Split] = ("train", "dev")
SIDES: tuple[Literal["src"], Literal["tgt"]] = ("src", "tgt")
SHARD = 1 << 19  # pairs of a shard, a few hundred bytes each
_PART = 1 << 16  # sentences whose tokens are gathered at a time


@dataclass(frozen=True)
class Rows:
    """Sentences as rows of ids, without eos."""

    tokens: NDArray[Any]  # all sentences, concatenated; 16 or 32 bits
    offsets: NDArray[np.int64]  # (sentences + 1,): a sentence is tokens[offsets[n] : offsets[n + 1]]
    kept: NDArray[np.int64] | None = None  # numbers of the sentences that are rows, ascending; None: all

    @classmethod
    def of(cls, rows: Rows | Iterable[Ids]) -> Rows:
        if isinstance(rows, Rows):
            return rows
        arrays = [np.array(row, dtype=np.int32) for row in rows]
        offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        return cls(np.concatenate([np.zeros(0, dtype=np.int32), *arrays]), offsets)

    @classmethod
    def load(cls, folder: Path, split: Split, side: Literal["src", "tgt"]) -> Rows:
        """Map the arrays that an encode step wrote."""
        tokens, offsets = (
            np.asarray(np.load(folder / f"{split}.{side}.{part}.npy", mmap_mode="r", allow_pickle=False))
            for part in ("tokens", "offsets")
        )
        return cls(tokens, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.kept is None else len(self.kept)

    def __getitem__(self, row: int) -> NDArray[Any]:
        if self.kept is not None:
            row = int(self.kept[row])
        return self.tokens[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        lengths = np.diff(self.offsets)
        return lengths if self.kept is None else lengths[self.kept]

    def only(self, rows: NDArray[np.int64] | None) -> Rows:
        """Return these rows (None: all). `rows` are sentence numbers, even if `kept` was set before."""
        return self if rows is None else Rows(self.tokens, self.offsets, rows)

    def copy(self, first: int, last: int) -> Rows:
        """Copy rows [first, last) into new memory."""
        offsets = np.array(self.offsets[first : last + 1])
        return Rows(np.array(self.tokens[offsets[0] : offsets[-1]]), offsets - offsets[0])

    def without(self, token: int) -> Rows:
        """Remove each `token` from all rows."""
        stays = self.tokens != token
        before = np.concatenate([[0], np.cumsum(stays)])
        return Rows(self.tokens[stays], before[self.offsets])

    def table(self, rows: NDArray[np.int64], fill: int, end: int) -> NDArray[np.int64]:
        """Return B rows as (B, longest + 1), each with `end` behind it, padded with `fill`."""
        if self.kept is not None:
            rows = self.kept[rows]
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        columns = np.arange(lengths.max() + 1)
        inside = columns < lengths[:, None]  # (B, longest + 1)
        table = np.full(inside.shape, fill, dtype=np.int64)
        table[inside] = self.tokens[(starts[:, None] + columns)[inside]]
        table[np.arange(len(rows)), lengths] = end
        return table

    def parts(self) -> Iterator[NDArray[Any]]:
        """Yield the tokens of all rows, some rows at a time."""
        for first in range(0, len(self), _PART):
            last = min(first + _PART, len(self))
            if self.kept is None:
                yield self.tokens[self.offsets[first] : self.offsets[last]]
                continue
            starts, ends = self.offsets[self.kept[first:last]], self.offsets[self.kept[first:last] + 1]
            before = np.cumsum(ends - starts) - (ends - starts)  # tokens of the rows before each
            yield self.tokens[np.repeat(starts - before, ends - starts) + np.arange((ends - starts).sum())]


class Shard(NamedTuple):
    """Sentence pairs in memory."""

    sources: Rows
    targets: Rows

    @classmethod
    def of(cls, sources: Iterable[Ids], targets: Iterable[Ids]) -> Shard:
        return cls(Rows.of(sources), Rows.of(targets))


class Shards:
    """The training pairs of an encode step, shard by shard; each iteration starts anew.

    `watch` is called before each shard. `without`: a token to remove from both sides.
    """

    def __init__(self, folder: Path, without: int | None = None) -> None:
        self._folder, self._without = folder, without
        self.pairs = len(Rows.load(folder, "train", "src"))
        self.watch: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[Shard]:
        for first in range(0, self.pairs, SHARD):
            self.watch()
            # mapped anew for each shard, so that earlier shards do not stay in this process's memory
            sides = [
                Rows.load(self._folder, "train", side).copy(first, min(first + SHARD, self.pairs))
                for side in SIDES
            ]
            yield Shard(*(side if self._without is None else side.without(self._without) for side in sides))


class RowWriter:
    """Writes rows into the two files of a side such as "train.src"."""

    def __init__(self, folder: Path, name: str, vocabulary_size: int) -> None:
        width: DTypeLike = np.uint16 if vocabulary_size <= 1 << 16 else np.uint32
        self._tokens, self._offsets = (
            _ArrayWriter((folder / f"{name}.{part}.npy").open("wb"), dtype)
            for part, dtype in (("tokens", width), ("offsets", np.int64))
        )
        self._offsets.write(np.zeros(1, dtype=np.int64))

    @property
    def written(self) -> int:
        """Number of tokens so far."""
        return self._tokens.size

    def write(self, rows: Sequence[Ids]) -> None:
        ends = self.written + np.cumsum([len(row) for row in rows], dtype=np.int64)
        self._tokens.write(np.fromiter(chain.from_iterable(rows), dtype=np.int64))
        self._offsets.write(ends)

    def close(self) -> None:
        self._tokens.close()
        self._offsets.close()


class _ArrayWriter:
    """An array in one `.npy` file, written part by part: numpy's header has room for its later length."""

    def __init__(self, file: BinaryIO, dtype: DTypeLike) -> None:
        self._file, self._dtype, self.size = file, np.dtype(dtype), 0
        self._header()

    def write(self, part: NDArray[Any]) -> None:
        self._file.write(part.astype(self._dtype).tobytes())
        self.size += len(part)

    def close(self) -> None:
        self._file.seek(0)
        self._header()
        self._file.close()

    def _header(self) -> None:
        described = npy.dtype_to_descr(self._dtype)
        header = {"descr": described, "fortran_order": False, "shape": (self.size,)}
        npy.write_array_header_1_0(self._file, header)
