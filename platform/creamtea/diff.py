"""Differences between hypotheses, word by word, as data: whoever shows them escapes the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

from creamtea.words import UNSPACED, WORD, characters, main_language, with_one_mark

_TOKENS = re.compile(rf"{WORD}|[^\w\s]")
_CONTRACTED = re.compile(rf"{WORD}(?:['’]{WORD})*|[^\w\s]")  # "don't" is one word
_ELIDED = re.compile(rf"{WORD}['’]?|[^\w\s]")  # "l'eau" is two
ELIDING = ("ca", "fr", "it")  # languages


@dataclass(frozen=True)
class Piece:
    """A stretch of a text. The pieces of a text, put together, are the text."""

    text: str
    marked: bool


def differences(text: str, other: str) -> list[Piece]:
    """The pieces of `text`, marked where `other` has something else in their place.

    White space alone is not a difference. Words are compared as written; punctuation marks are words.
    """
    spans = word_spans(text)
    matcher = SequenceMatcher(None, words(text), words(other), autojunk=False)
    same = [False] * len(spans)
    for match in matcher.get_matching_blocks():
        same[match.a : match.a + match.size] = [True] * match.size
    return _pieces(text, spans, same)


def words(text: str) -> list[str]:
    """The words and punctuation marks of a text; characters with their marks, where a script
    has no spaces."""
    return [text[start:end] for start, end in word_spans(text)]


def words_of_language(text: str, language: str) -> list[str]:
    """`words`, but contractions are whole, or in two where the language elides words."""
    pattern = _ELIDED if main_language(language) in ELIDING else _CONTRACTED
    return [text[start:end] for start, end in word_spans(text, pattern)]


def joined(pieces: Sequence[str]) -> str:
    """Neighbouring words of a text, as it is written: without blanks where their script has none."""
    shown = ""
    for before, piece in pairwise(["", *pieces]):
        blank = before and not UNSPACED.search(before) and not UNSPACED.search(piece)
        shown += f" {piece}" if blank else piece
    return shown


def word_spans(text: str, pattern: re.Pattern[str] = _TOKENS) -> list[tuple[int, int]]:
    """Where each of `words` begins and ends."""
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(with_one_mark(text)):
        if UNSPACED.search(text, *match.span()):
            stretch = text[slice(*match.span())]
            spans += pairwise(accumulate(map(len, characters(stretch)), initial=match.start()))
        else:
            spans.append(match.span())
    return spans


def _pieces(text: str, spans: Sequence[tuple[int, int]], same: Sequence[bool]) -> list[Piece]:
    """Neighbours with the same mark become one piece; the space between two belongs to a marked piece
    only when both are marked."""
    pieces: list[Piece] = []

    def add(stretch: str, marked: bool) -> None:
        if not stretch:
            return
        if pieces and pieces[-1].marked == marked:
            pieces[-1] = Piece(pieces[-1].text + stretch, marked)
        else:
            pieces.append(Piece(stretch, marked))

    position, before = 0, False
    for (start, end), matched in zip(spans, same, strict=True):
        add(text[position:start], before and not matched)
        add(text[start:end], not matched)
        position, before = end, not matched
    add(text[position:], False)
    return pieces
