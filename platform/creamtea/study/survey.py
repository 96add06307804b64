"""A survey of parallel text, read once before any step: pairs, lengths, characters, repetitions."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea.files import unpacked
from creamtea.methods.texts import Filters, Symbols, WordLines, in_column
from creamtea.words import count_words, normalise, without_csv_quotes

FILTERS = Filters()  # the filters of a corpus that names none


@dataclass(frozen=True)
class Side:
    """One side of a text. `sentences`: a hash of each line's key, in the order of the file.

    Hashes are comparable only within a process.
    """

    words: int
    characters: int  # without blanks
    alphabet: int  # distinct characters
    vocabulary: int  # distinct words
    sentences: NDArray[np.int64]


@dataclass(frozen=True)
class Survey:
    pairs: int
    empty: int  # pairs with an empty side
    long: int  # pairs with more words or characters on a side than FILTERS allow
    uneven: int  # other pairs in which one side has more than FILTERS.max_ratio times the other's words
    repeated: int  # pairs that passed the filters and occurred before
    source: Side
    target: Side
    held_out: int = 0  # other pairs with a source sentence of the test set
    same: int = 0  # pairs with the same text, not empty, on both sides
    quoted: int = 0  # pairs with a side that a CSV writer has put into quotes

    @property
    def alphabet(self) -> int:
        """Distinct characters of both sides; a character of both sides counts twice."""
        return self.source.alphabet + self.target.alphabet

    @property
    def usable(self) -> int:
        """Pairs that the filters keep."""
        return self.pairs - self.empty - self.long - self.uneven - self.held_out - self.repeated

    def tokens(self, vocabulary: int) -> float:
        """Estimate the target subwords of all usable pairs, end of sentence included.

        `vocabulary`: the size of the joint vocabulary. Subwords consist of letters, and their length grows
        with the logarithm of the vocabulary. In a script of thousands of characters a subword has hardly more
        than one.
        """
        side = self.target
        letters = 1.3 if side.alphabet > 1000 else max(1.3, 2.25 + 1.35 * np.log10(vocabulary / 1000))
        each = max(side.characters / letters, side.words) / max(1, self.pairs) + 1
        return float(each * self.usable)


def bare(line: str) -> str:
    """Remove case and punctuation from a sentence: "Come in!" and "come in" count as one."""
    return re.sub(r"[\W_]+", " ", normalise(line).casefold()).strip() or normalise(line)


def lines_of(path: Path, column: int | None = None) -> Iterator[str]:
    """Yield the lines of a plain or gzip file of UTF-8 that `scan` has accepted, or a column of the lines."""
    with path.open("rb") as raw:
        for number, line in enumerate(unpacked(raw)):
            text = line.decode("utf-8-sig" if number == 0 else "utf-8").removesuffix("\n").removesuffix("\r")
            yield in_column(text, column)


def survey(
    lines: Iterable[tuple[str, str]],
    key: Callable[[str], str] = normalise,
    limit: int | None = None,
    unspaced: bool = False,
    held_out: frozenset[str] = frozenset(),
) -> Survey:
    """Survey the first `limit` pairs of lines, or all.

    `unspaced`: see `count_words`. `held_out`: normalised source sentences that training text may not have.
    """
    counts = [_Counts(), _Counts()]
    same, quoted, dropped = 0, 0, Counter[str | None]()
    seen: set[int] = set()
    for texts, lengths, reason in islice(judged(lines, unspaced, held_out), limit):
        for side, text, length in zip(counts, texts, lengths, strict=True):
            side.add(text, length, key)
        if reason is None:
            seen.add(hash(texts))
        same += texts[0] == texts[1] != ""
        quoted += in_csv_quotes(texts)
        dropped[reason] += 1
    repeated = dropped[None] - len(seen)
    empty, long, uneven, held = (dropped[name] for name in ("empty", "too_long", "ratio", "held_out"))
    source_side, target_side = (side.result() for side in counts)
    return Survey(
        dropped.total(), empty, long, uneven, repeated, source_side, target_side, held, same, quoted
    )


def in_csv_quotes(pair: tuple[str, str]) -> bool:
    return any(without_csv_quotes(side) != side for side in pair)


def usable_pairs(
    lines: Iterable[tuple[str, str]], unspaced: bool = False, held_out: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Yield the normalised pairs that a survey of the same lines counts as usable."""
    seen: set[int] = set()
    for texts, _, reason in judged(lines, unspaced, held_out):
        if reason is None and hash(texts) not in seen:
            seen.add(hash(texts))
            yield texts


def judged(
    pairs: Iterable[tuple[str, str]], unspaced: bool, held_out: frozenset[str], filters: Filters = FILTERS
) -> Iterator[tuple[tuple[str, str], list[int], str | None]]:
    """Yield the normalised pairs with the words of each side and the filter that drops the pair, if any."""
    for lines in pairs:
        texts = normalise(lines[0]), normalise(lines[1])
        words = [count_words(text, unspaced) for text in texts]
        reason: str | None = filters.drop_reason(*words)
        if max(map(len, lines)) > filters.max_characters:
            reason = "too_long"
        elif reason is None and texts[0] in held_out:
            reason = "held_out"
        yield texts, words, reason


@dataclass(frozen=True)
class WordSurvey:
    """A survey of a file of words. `letters`: the letters of the words, without their targets."""

    words: int
    letters: frozenset[str]
    tags: frozenset[str]
    units: dict[Symbols, int]  # characters or tokens of the targets, with an end for each


def survey_words(path: Path, lines: WordLines) -> WordSurvey:
    """Survey a file of words whose lines have been checked."""
    words, letters, tags = 0, set[str](), set[str]()
    units: dict[Symbols, int] = {"characters": 0, "tokens": 0}
    for line in map(lines.read, lines_of(path)):
        words += 1
        letters.update(line.word)
        tags.update(line.tags)
        units["characters"] += len(line.target) + 1
        units["tokens"] += len(line.target.split()) + 1
    return WordSurvey(words, frozenset(letters), frozenset(tags), units)


class _Counts:
    def __init__(self) -> None:
        self.words = self.characters = 0
        self.alphabet: set[str] = set()
        self.vocabulary: set[int] = set()
        self.sentences = array("q")

    def add(self, text: str, length: int, key: Callable[[str], str]) -> None:
        """Count a normalised line of `length` words."""
        words = text.split()
        self.words += length
        self.characters += sum(map(len, words))
        self.alphabet.update(*words)
        self.vocabulary.update(map(hash, words))
        self.sentences.append(hash(key(text)))

    def result(self) -> Side:
        sentences = np.frombuffer(self.sentences, dtype=np.int64) if self.sentences else np.zeros(0, np.int64)
        return Side(self.words, self.characters, len(self.alphabet), len(self.vocabulary), sentences)
