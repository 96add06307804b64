"""A survey of parallel text, read once before any step: pairs, lengths, characters, repetitions."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea.files import unpacked
from creamtea.methods.texts import Filters, Symbols, WordLines
from creamtea.words import count_words, normalise

FILTERS = Filters()  # the filters of a corpus that names none


@dataclass(frozen=True)
class Side:
    """One side of a text. `sentences`: a hash of each line's key, in the order of the file.

    Hashes are the same only within a process.
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
    uneven: int  # other pairs of which one side has more than FILTERS.max_ratio times the other's words
    repeated: int  # pairs that passed and occurred before
    source: Side
    target: Side
    held_out: int = 0  # other pairs with a source sentence of the test set
    same: int = 0  # pairs whose sides are the same, not empty, text

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


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a plain or gzip file of UTF-8 that `scan` has accepted."""
    with path.open("rb") as raw:
        for number, line in enumerate(unpacked(raw)):
            yield line.decode("utf-8-sig" if number == 0 else "utf-8").rstrip("\n")


def survey(
    source: Path,
    target: Path,
    key: Callable[[str], str] = normalise,
    limit: int | None = None,
    unspaced: bool = False,
    held_out: frozenset[str] = frozenset(),
) -> Survey:
    """Survey the first `limit` pairs, or all, of two files that `scan` has accepted.

    `unspaced`: as of `count_words`. `held_out`: normalised source sentences that training text may not have.
    """
    counts = [_Counts(unspaced), _Counts(unspaced)]
    pairs, same, dropped = 0, 0, Counter[str | None]()
    seen: set[int] = set()
    for lines in islice(zip(lines_of(source), lines_of(target), strict=False), limit):
        pairs += 1
        texts = normalise(lines[0]), normalise(lines[1])
        lengths = [side.add(text, key) for side, text in zip(counts, texts, strict=True)]
        reason = _drop_reason(lines, texts, lengths, held_out)
        if reason is None:
            seen.add(hash(texts))
        same += texts[0] == texts[1] != ""
        dropped[reason] += 1
    sides = [side.result() for side in counts]
    repeated = dropped[None] - len(seen)
    empty, long, uneven = (dropped[name] for name in ("empty", "too_long", "ratio"))
    source_side, target_side = sides
    held = dropped["held_out"]
    return Survey(pairs, empty, long, uneven, repeated, source_side, target_side, held, same)


def usable_pairs(
    source: Path, target: Path, unspaced: bool = False, held_out: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Yield the normalised pairs that a survey of the same files counts as usable."""
    seen: set[int] = set()
    for lines in zip(lines_of(source), lines_of(target), strict=False):
        texts = normalise(lines[0]), normalise(lines[1])
        lengths = [count_words(text, unspaced) for text in texts]
        if _drop_reason(lines, texts, lengths, held_out) is None and hash(texts) not in seen:
            seen.add(hash(texts))
            yield texts


def _drop_reason(
    lines: tuple[str, str], texts: tuple[str, str], words: Sequence[int], held_out: frozenset[str]
) -> str | None:
    """Return the filter that drops a pair; `texts` are its normalised lines, of so many words."""
    if max(map(len, lines)) > FILTERS.max_characters:
        return "too_long"
    reason = FILTERS.drop_reason(*words)
    return "held_out" if reason is None and texts[0] in held_out else reason


@dataclass(frozen=True)
class WordSurvey:
    """A survey of a file of words. `letters` are those of the words, not of what they become."""

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
    def __init__(self, unspaced: bool) -> None:
        self._unspaced = unspaced
        self.words = self.characters = 0
        self.alphabet: set[str] = set()
        self.vocabulary: set[int] = set()
        self.sentences = array("q")

    def add(self, text: str, key: Callable[[str], str]) -> int:
        """Count a normalised line, and return its words."""
        words, length = text.split(), count_words(text, self._unspaced)
        self.words += length
        self.characters += sum(map(len, words))
        self.alphabet.update(*words)
        self.vocabulary.update(map(hash, words))
        self.sentences.append(hash(key(text)))
        return length

    def result(self) -> Side:
        sentences = np.frombuffer(self.sentences, dtype=np.int64) if self.sentences else np.zeros(0, np.int64)
        return Side(self.words, self.characters, len(self.alphabet), len(self.vocabulary), sentences)
