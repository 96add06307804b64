"""Read the user's parallel text: align pairs, filter them, and count the dropped ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import chain, compress, islice, zip_longest
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import FilesCorpus
from creamtea.methods.planning import HeldOut
from creamtea.methods.test_sets import FilesTestSet
from creamtea.methods.texts import DropReason, Filters, Languages, TextPair, Tokenized
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea.wording import counted
from creamtea.words import count_words
from creamtea_workers.corpora.text import UserFile, detokenise, normalise

Filter = DropReason | Literal["held_out", "duplicate"]
Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
T = TypeVar("T")
PART = 1 << 13  # pairs to filter at a time


_END: Any = object()  # stands for a line beyond the end of its file


class Pair(NamedTuple):
    source: str
    target: str


@dataclass(frozen=True)
class Files:
    """The user's files of a step: their locations on this machine, and their digests at planning."""

    digests: Mapping[str, str]
    languages: Languages
    locations: Mapping[str, str]

    @classmethod
    def of(cls, context: StepContext[CorpusParams] | StepContext[TestSetParams]) -> Files:
        return cls(context.params.digests, context.params.languages, context.locations)

    def lines(self, name: str) -> Iterator[str]:
        return self._file(name).lines()

    def text(self, name: str, side: Side, tokenized: Tokenized) -> Iterator[str]:
        """Read the lines of one side, detokenised and unescaped but not yet normalised."""
        return map(self._plain(side, tokenized), self.lines(name))

    def raw_pairs(self, text: TextPair | FilesTestSet) -> Iterator[Pair]:
        """Read the aligned lines of two files, as `text` reads them.

        Raises StepError at the end of the shorter file if their lengths differ.
        """
        lines = [
            map(self._plain(side, text.tokenized), self._file(name).lines(column))
            for side, (name, column) in zip(SIDES, sides_of(text), strict=True)
        ]
        return (Pair(*pair) for pair in aligned(names(text), *lines))

    def pairs(self, text: TextPair) -> Iterator[Pair]:
        """Read the aligned lines of two files, normalised."""
        return (Pair(normalise(source), normalise(target)) for source, target in self.raw_pairs(text))

    def pairs_within(self, text: TextPair, longest: int) -> Iterator[Pair | None]:
        """Read pairs as `pairs` does; None for a pair with a side of more than `longest` characters."""
        plain = [self._plain(side, text.tokenized) for side in SIDES]
        sides = [self._file(name).lines_within(longest, column) for name, column in text.sides()]
        for source, target in aligned(names(text), *sides):
            if source is None or target is None:
                yield None
            else:
                yield Pair(normalise(plain[0](source)), normalise(plain[1](target)))

    def _file(self, name: str) -> UserFile:
        return UserFile.find(name, self.locations, self.digests)

    def _plain(self, side: Side, tokenized: Tokenized) -> Callable[[str], str]:
        """Return the function that detokenises and unescapes a line."""
        if tokenized == "no":
            return str
        language = self.languages.source if side == "source" else self.languages.target
        return partial(detokenise, language=language)


def names(text: TextPair | FilesTestSet) -> tuple[str, str]:
    assert text.target is not None  # callers check it: test sets may lack one
    return text.source, text.target


def sides_of(text: TextPair | FilesTestSet) -> list[tuple[str, int | None]]:
    """Return the path and column of each side; a test set has no columns."""
    return text.sides() if isinstance(text, TextPair) else [(name, None) for name in names(text)]


def aligned(names: Sequence[str], sources: Iterator[T], targets: Iterator[T]) -> Iterator[tuple[T, T]]:
    """Yield the files' lines in pairs. StepError at the end of the shorter file if their lengths differ."""
    for number, (source, target) in enumerate(zip_longest(sources, targets, fillvalue=_END)):
        if source is _END or target is _END:
            longer = number + 1 + sum(1 for _ in chain(sources, targets))
            counts = (number, longer) if source is _END else (longer, number)
            same_length(dict(zip(names, counts, strict=True)))
        yield source, target


def same_length(lines: Mapping[str, int]) -> None:
    """Raise StepError unless the files, given by name, have the same number of lines."""
    if len(set(lines.values())) > 1:
        counts = ", ".join(f"{name} has {counted(count, 'line')}" for name, count in lines.items())
        raise StepError(f"files that must be aligned line by line are not: {counts}")


# ---------------------------------------------------------------- training and development text


@dataclass
class FilteredCorpus:
    """Training and development pairs. Read `train`, then `dev`, each once: then the counts are final."""

    train: Iterable[Pair]
    dev: Iterable[Pair]
    train_read: int
    dev_read: int
    dropped: dict[str, int]  # training pairs by reason
    train_added: int = 0  # how many of `train` were added by `repeat`
    train_made_up: int = 0  # how many of `train` are made-up words
    dev_groups: list[str] = field(default_factory=list)  # for words: the language of each pair of `dev`


def prepare_corpus(spec: FilesCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    def progress(read: int) -> None:
        context.progress(0, 1, f"reading and filtering: {counted(read, 'pair')}")

    params = context.params
    return read_corpus(spec, Files.of(context), params.held_out or [], progress, params.unspaced)


def read_corpus(
    spec: FilesCorpus,
    files: Files,
    held_out: Sequence[HeldOut],
    progress: Callable[[int], None] = lambda read: None,
    unspaced: bool = False,
) -> FilteredCorpus:
    """Stream the training pairs, filtered and then repeated, and the development pairs.

    Development pairs are dropped only if a side is empty: the development loss is about the text that the
    researcher chose. StepError if no training pair or no development pair is left.

    Each text is repeated after filtering, so the filter of duplicates sees every pair of the files once. The
    number of kept pairs is train_read - dropped + train_added.
    """
    sentences = frozenset(
        normalise(line)
        for test_set in held_out
        for line in files.text(test_set.source, "source", test_set.tokenized)
    )
    sieve = Sieve(spec.filters, sentences, unspaced)
    corpus = FilteredCorpus((), (), 0, 0, sieve.dropped)

    def training() -> Iterator[Pair]:
        kept_any = False
        for text in spec.train:
            kept = bytearray()  # a byte per pair; the text is read again for each repetition
            pairs = files.pairs_within(text, spec.filters.max_characters)
            while part := list(islice(pairs, PART)):
                progress(corpus.train_read)
                passed = sieve.passed(part)
                corpus.train_read += len(part)
                yield from (pair for pair in compress(part, passed) if pair is not None)
                kept += bytes(passed)
            for _ in range(text.repeat - 1):
                again = compress(files.pairs_within(text, spec.filters.max_characters), kept)
                yield from (pair for pair in again if pair is not None)
            corpus.train_added += kept.count(1) * (text.repeat - 1)
            kept_any = kept_any or 1 in kept
        if not kept_any:
            counts = ", ".join(f"{name} {count}" for name, count in sieve.dropped.items() if count)
            sources = ", ".join(text.source for text in spec.train)
            raise StepError(
                f"no training pair is left of the {corpus.train_read} in {sources} "
                f"(dropped: {counts or 'nothing to drop'})"
            )

    def development() -> Iterator[Pair]:
        kept_any = False
        for pair in files.pairs(spec.dev):
            corpus.dev_read += 1
            if pair.source and pair.target:
                kept_any = True
                yield pair
        if not kept_any:
            raise StepError(f"no development pair is left of the {corpus.dev_read} in {spec.dev.source}")

    corpus.train, corpus.dev = training(), development()
    return corpus


class Sieve:
    """Filter pairs, and count each dropped pair under the first filter that drops it.

    `unspaced`: see `count_words`.
    """

    def __init__(
        self, filters: Filters, held_out: frozenset[str] = frozenset(), unspaced: bool = False
    ) -> None:
        self._filters, self._held_out, self._unspaced = filters, held_out, unspaced
        self._seen = SeenHashes()
        reasons: list[Filter] = ["empty", "too_long", "ratio"]
        reasons += ["held_out"] if filters.held_out else []
        self.dropped: dict[str, int] = dict.fromkeys([*reasons, "duplicate"], 0)

    def passed(self, pairs: Sequence[Pair | None]) -> list[bool]:
        """Return for each pair whether it passes all filters. None stands for a pair with too long a side."""
        reasons = [self._reason(pair) for pair in pairs]
        if self._filters.duplicates:
            left = [(n, pair) for n, pair in enumerate(pairs) if pair is not None and reasons[n] is None]
            new = self._seen.add([pair_hash(*pair) for _, pair in left])
            for n, _ in compress(left, ~new):
                reasons[n] = "duplicate"
        for reason, times in Counter(filter(None, reasons)).items():
            self.dropped[reason] += times
        return [reason is None for reason in reasons]

    def _reason(self, pair: Pair | None) -> Filter | None:
        if pair is None:
            return "too_long"
        reason = self._filters.drop_reason(*(count_words(side, self._unspaced) for side in pair))
        return "held_out" if reason is None and pair.source in self._held_out else reason


# The filter of exact duplicates remembers 8 bytes per pair.


Hashes = NDArray[np.uint64]


def pair_hash(source: str, target: str) -> int:
    """Hash a pair to 64 bits.

    Among n different pairs, the expected number of collisions is n² / 2⁶⁵: 3 in a million for 10 million
    pairs, 3 in ten thousand for 100 million.
    """
    return int.from_bytes(blake2b(f"{source}\n{target}".encode(), digest_size=8).digest(), "little")


class SeenHashes:
    """A set of hashes as sorted arrays, each at least twice as long as the next.

    Adding n hashes costs O(n log² n). Memory is 8 bytes per hash, 16 while the longest two arrays are merged.
    """

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def add(self, hashes: Sequence[int]) -> NDArray[np.bool_]:
        """Add hashes; return for each whether it is new, neither in the set nor earlier in `hashes`."""
        keys, places = np.unique(np.array(hashes, dtype=np.uint64), return_index=True)
        new = np.ones(len(keys), dtype=np.bool_)
        for run in self._runs:
            nearest = np.minimum(np.searchsorted(run, keys), len(run) - 1)
            new &= run[nearest] != keys
        if new.any():
            self._runs.append(keys[new])
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort(kind="stable")  # merges sorted runs in linear time
            self._runs.append(merged)
        fresh = np.zeros(len(hashes), dtype=np.bool_)
        fresh[places[new]] = True
        return fresh
