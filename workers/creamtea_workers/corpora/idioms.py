"""Finds the translation of an idiom in a reference by word alignment.

The words of the training text and of the test set, lower-cased and cut to their first letters (there is
little text, and inflection does not matter here), are aligned together in both directions by the built-in
aligner. The links of both directions count, their intersection (Och and Ney 2003). Grow-diag, which adds
links of one direction, annotates a fifth more segments of IdiomTranslationDS, but on inspection most of these
are wrong.

The idiom's translation is every word of the reference, marks aside, that is aligned to one of the idiom's. A
translation that occurs nowhere else is missed. So the recall of idioms on such a test set is that of
translations which an aligner can learn, which favours a lexicon over other selections.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, islice
from typing import Any

import numpy as np

from creamtea_workers.corpora.files import Pair
from creamtea_workers.corpora.itds import Idiom, Word, find, is_mark, split_words
from creamtea_workers.corpora.seen import SeenHashes, pair_hash
from creamtea_workers.corpora.segments import Prepared, Segment
from creamtea_workers.corpora.tokens import SHARD, Rows, Shard
from creamtea_workers.selection.aligner import train_aligner
from creamtea_workers.selection.viterbi import viterbi

ITERATIONS = 5  # of the aligner
LETTERS = 4  # of a word
VOCABULARY = 30_000  # most frequent beginnings of a side; all others share one id
PART = 1 << 16  # training pairs compared at a time with those before
MAX_WORDS = 80  # of a side; longer training pairs are not aligned
Link = tuple[int, int]  # places of a source and a target word


def annotate(
    segments: Sequence[Segment],
    idioms: Sequence[Idiom],
    training: Iterable[Pair],
    source_language: str,
    progress: Callable[[int, int], None],
) -> Prepared:
    """The segments, each with its idiom and its words in the metadata, as several entries where it is in
    several pieces (`entries`); without spans where its words are not found, or not aligned. Counted are the
    segments whose source holds the words of their idiom (`found`), and of these those with a word of the
    reference aligned to them (`aligned`)."""
    sources = [split_words(segment.source) for segment in segments]
    targets = [split_words(segment.reference) for segment in segments]
    alignments = align(sources, targets, training, progress)
    annotated, found, aligned = [], 0, 0
    for segment, idiom, source, target, links in zip(
        segments, idioms, sources, targets, alignments, strict=True
    ):
        places = find(idiom, source, source_language)
        found += places is not None
        inside = sorted({t for s, t in links if s in (places or ()) and not is_mark(target[t].text)})
        aligned += bool(inside)
        first, *others = entries(idiom.name, spans(source, places or ()), spans(target, inside))
        first["words"] = {"source": idiom.name, "target": idiom.translation}
        annotated.append(segment._replace(idioms=[first, *others]))
    return Prepared(annotated, {"found": found, "aligned": aligned})


def spans(words: Sequence[Word], places: Sequence[int]) -> list[list[int]]:
    """The characters [from, to) of the words in these places, ascending; neighbours are one piece."""
    pieces: list[list[int]] = []
    for number, place in enumerate(places):
        if number and place == places[number - 1] + 1:
            pieces[-1][1] = words[place].end
        else:
            pieces.append([words[place].start, words[place].end])
    return pieces


def entries(name: str, source: Sequence[list[int]], target: Sequence[list[int]]) -> list[dict[str, Any]]:
    """An idiom in pieces as a segment holds it: entries of one name, whose spans together are the idiom. The
    side with fewer pieces repeats its last one, or [] where it has none; there is always an entry."""
    source, target = source or [[]], target or [[]]
    return [
        {
            "name": name,
            "source": source[min(number, len(source) - 1)],
            "target": target[min(number, len(target) - 1)],
        }
        for number in range(max(len(source), len(target)))
    ]


# ---------------------------------------------------------------- the alignment


def align(
    sources: Sequence[Sequence[Word]],
    targets: Sequence[Sequence[Word]],
    training: Iterable[Pair],
    progress: Callable[[int, int], None],
) -> list[set[Link]]:
    """The links of each test pair on which both directions agree. The training pairs are aligned with them,
    each once, however often it is repeated; they are read once, and kept as a number of 4 bytes per word."""
    source_side, target_side = _Side(), _Side()
    for source, target in zip(sources, targets, strict=True):
        source_side.add(source)
        target_side.add(target)
    for pair in _different(training):
        source, target = split_words(pair.source), split_words(pair.target)
        if max(len(source), len(target)) <= MAX_WORDS:
            source_side.add(source)
            target_side.add(target)
    given, made = source_side.rows(), target_side.rows()
    forward = _best(given, made, len(sources), lambda done: progress(done, 2 * ITERATIONS))
    backward = _best(made, given, len(sources), lambda done: progress(ITERATIONS + done, 2 * ITERATIONS))
    return [
        {(s, t) for t, s in enumerate(sources) if s >= 0} & {(s, t) for s, t in enumerate(targets) if t >= 0}
        for sources, targets in zip(forward, backward, strict=True)
    ]


def _different(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Each pair where it is first (but for `pair_hash`)."""
    seen, left = SeenHashes(), iter(pairs)
    while some := list(islice(left, PART)):
        yield from compress(some, seen.add([pair_hash(*pair) for pair in some]))


class _Side:
    """The beginnings of the words of one side's sentences, as numbers."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}  # by their first occurrence, from 0
        self._numbers = array("i")
        self._offsets = array("q", [0])

    def add(self, words: Sequence[Word]) -> None:
        known = self._known
        self._numbers.extend(known.setdefault(word.text[:LETTERS], len(known)) for word in words)
        self._offsets.append(len(self._numbers))

    def rows(self) -> Rows:
        """Numbered by their frequency, from 1; 0 for all but the most frequent ones."""
        numbers = np.frombuffer(self._numbers, dtype=np.int32)
        counts = np.bincount(numbers, minlength=len(self._known))
        common = np.argsort(-counts, kind="stable")[:VOCABULARY]
        ids = np.zeros(len(self._known), dtype=np.int32)
        ids[common] = np.arange(1, len(common) + 1)
        return Rows(ids[numbers], np.frombuffer(self._offsets, dtype=np.int64))


def _best(given: Rows, made: Rows, tested: int, progress: Callable[[int], None]) -> list[list[int]]:
    """The alignments of the first pairs, when all are aligned: for each word of `made` a place in `given`."""
    firsts = range(0, len(given), SHARD)
    shards = [
        Shard(*(side.copy(first, min(first + SHARD, len(side))) for side in (given, made)))
        for first in firsts
    ]
    aligner = train_aligner(shards, VOCABULARY + 1, ITERATIONS, lambda iteration, value: progress(iteration))
    ((_, alignments),) = viterbi(aligner, [Shard(given.copy(0, tested), made.copy(0, tested))])
    return [row.tolist() for row in alignments]
