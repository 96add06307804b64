"""Idioms of IdiomTranslationDS (Fadaee, Bisazza and Monz 2018) in their sentences.

A line of an `.info` file belongs to a line of the test set. Of its columns, which its authors do not
document, three are used: the second is the idiom, lower-cased (English verb phrases with a leading "to",
German as lemmas), the third its dictionary translation, the first its spread in the source: its span in
Moses' tokens, minus the number of the idiom's words, minus 1. So -1 is a phrase without a gap; the words may
be in any order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, product
from typing import NamedTuple

from creamtea.errors import StepError
from creamtea.methods.texts import Languages
from creamtea_workers.corpora.lemmas import places_of
from creamtea_workers.corpora.moses import detokenise, primary
from creamtea_workers.corpora.text import normalise

# roughly Moses' tokens: numbers, words with their hyphens, what follows an apostrophe, single marks
_WORD = re.compile(r"\d+(?:[.,:]\d+)+|(?<=\w)['’]\w+|\w+(?:-\w+)*|\.{2,}|[^\w\s]")
_BROKEN_ESCAPE = re.compile(r"&(\w+) ;")  # as in "auf gehen &apos ; s !"


class Word(NamedTuple):
    """A word, lower-cased, and its characters [start, end)."""

    text: str
    start: int
    end: int


def is_mark(word: str) -> bool:
    """Whether the word has neither a letter nor a digit."""
    return not re.search(r"[^\W_]", word)


class Idiom(NamedTuple):
    name: str
    words: list[str]
    spread: int
    translation: str = ""  # of a dictionary


def split_words(text: str) -> list[Word]:
    """The words and marks of normalised text. (Lower-casing may change a length, so it comes last.)"""
    return [Word(match[0].lower().replace("’", "'"), *match.span()) for match in _WORD.finditer(text)]


def read_info(lines: Sequence[str], name: str, languages: Languages) -> list[Idiom]:
    """The idioms of an `.info` file; StepError where a line is not `spread TAB idiom …`."""
    idioms = []
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) < 2 or not re.fullmatch(r"-?\d+", columns[0]) or not columns[1].strip():
            raise StepError(
                f"{name}, line {number}: a line must be the idiom's spread (a whole number), a tab and the "
                "idiom, as in the .info files of IdiomTranslationDS"
            )
        phrase = _text(columns[1], languages.source)
        # "|" between alternatives of a lemma is not a mark
        words = [word.text.replace("_", "|") for word in split_words(phrase.replace("|", "_"))]
        translation = _text(columns[2], languages.target) if len(columns) > 2 else ""
        idioms.append(Idiom(phrase, words, int(columns[0]), translation))
    return idioms


def _text(column: str, language: str) -> str:
    return normalise(detokenise(_BROKEN_ESCAPE.sub(r"&\1;", column), language))


# ---------------------------------------------------------------- the words in the source


def find(idiom: Idiom, words: Sequence[Word], language: str) -> list[int] | None:
    """The places, in order, of the idiom's words in a sentence; None if one of them has no form there.

    Every word has the places of its lemma's forms. Of the choices of one place for each word the one is taken
    that gives the stated spread (one place may serve two words: "without a shadow of doubt"); of several the
    one with the fewest shared places, then the one whose words stand most in the idiom's order, then the
    first. Where no choice gives the spread, the rarest word of the idiom is an anchor: every other word takes
    its nearest place, and the narrowest of these choices, over the anchor's places, is taken.

    Marks, and the infinitive's "to" (which the spread counts, wherever it stands), are looked for as well;
    but the sentence may lack them, and their places are not returned.
    """
    texts = [word.text for word in words]
    options = [places_of(word, texts, language) for word in idiom.words]
    optional = [_is_marginal(idiom, number, language) for number in range(len(options))]
    present = [places for places in options if places]
    if not present or any(not places and not spare for places, spare in zip(options, optional, strict=True)):
        return None
    width = idiom.spread + len(present) + 1
    choice = _exact(present, width) or _nearest(present)
    kept = [spare for places, spare in zip(options, optional, strict=True) if places]
    places = sorted({place for place, spare in zip(choice, kept, strict=True) if not spare})
    return places or None


def _is_marginal(idiom: Idiom, number: int, language: str) -> bool:
    word = idiom.words[number]
    infinitive = primary(language) == "en" and number == 0 and word == "to" and len(idiom.words) > 1
    return infinitive or is_mark(word)


def _exact(options: Sequence[Sequence[int]], width: int) -> tuple[int, ...] | None:
    """The best choice whose first and last place are `width` - 1 apart."""
    found: list[tuple[tuple[int, int, int], tuple[int, ...]]] = []
    for first in sorted({place for places in options for place in places}):
        window = [[place for place in places if first <= place < first + width] for places in options]
        for choice in product(*window):
            if min(choice) == first and max(choice) == first + width - 1:
                shared = len(choice) - len(set(choice))
                disorder = sum(a > b for a, b in pairwise(choice))
                found.append(((shared, disorder, first), choice))
    return min(found)[1] if found else None


def _nearest(options: Sequence[Sequence[int]]) -> tuple[int, ...]:
    anchors = min(options, key=len)
    choices = [
        tuple(min(places, key=lambda place: abs(place - anchor)) for places in options) for anchor in anchors
    ]
    return min(choices, key=lambda choice: max(choice) - min(choice))
