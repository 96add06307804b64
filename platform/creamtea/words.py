"""Text in any script: the forms in which steps have it, its words, and differences between texts.

Words are runs of letters and digits, with the marks that belong to them.

Python's `\\w` has no marks (the vowel signs of Hindi, the vowels of Arabic, combining accents): by it alone
"हिन्दी" would be six pieces. Patterns are therefore matched against a text in which one sign stands for every
mark.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

_ALSO_WHITE = str.maketrans("\0\u2581", "  ")
_CONTROLS = dict.fromkeys(map(ord, "\t\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"), " ")
# Languages that are written without blanks between words. The rating page has the same list (board/texts.js).
UNSPACED_LANGUAGES = ("zh", "yue", "ja", "th", "lo", "km", "my")
_OTHER_CODES = {
    **{"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "kor": "ko", "tha": "th", "lao": "lo"},
    **{"khm": "km", "mya": "my", "bur": "my"},
}
_KANA_AND_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_THAI_LAO_MYANMAR_KHMER = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
KANA_OR_HAN = re.compile(f"[{_KANA_AND_HAN}]")
UNSPACED = re.compile(f"[{_KANA_AND_HAN}{_THAI_LAO_MYANMAR_KHMER}]")  # a character of their scripts
# Of these scripts' characters, how much of a word each is. Kana and Han: 255 characters are 158 words a
# minute in Chinese, 357 are 193 in Japanese (IReST norms, Trauzettel-Klosinski and Dietz 2012). No such
# norms are known of Thai, Lao, Khmer and Burmese: five letters are a word, as where typing is measured.
WORDS_PER_CHARACTER = 0.6
WORDS_PER_LETTER = 0.2
_STACKERS = "\u17d2\u1039"  # of Khmer and Burmese: what follows stands below what precedes

MARK = "\u0300"  # stands for any mark
WORD = rf"\w[\w{MARK}]*"  # of the result of `with_one_mark`
_JOINERS = "\u200c\u200d"  # inside words of Persian and of India's scripts


def plain(line: str) -> str:
    """The text that is shown and scored: the line as it is, without white space at its end. Tabs and what
    might end a line elsewhere (carriage return, U+0085, U+2028 …) are blanks, which changes no score of
    sacreBLEU's. Idempotent."""
    return line.translate(_CONTROLS).rstrip()


def normalise(line: str) -> str:
    """The text that models read: single blanks for white space, none at the ends, and Unicode's form NFC. NUL
    and U+2581, with which SentencePiece marks blanks, count as white space. Idempotent."""
    return unicodedata.normalize("NFC", " ".join(line.translate(_ALSO_WHITE).split()))


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: it has only white space, controls and signs without width."""
    return all(unicodedata.category(character)[0] in "ZC" for character in normalise(text))


def look(name: str) -> str:
    """Return what a name looks like: names with one look are hard to tell apart, as "José" is in NFC and in
    NFD, and names with other blanks or with characters of no width."""
    shown = unicodedata.normalize("NFKC", normalise(name))
    return "".join(character for character in shown if unicodedata.category(character) != "Cf")


def meant(name: str, names: Iterable[str]) -> str:
    """Return the one of `names` that a person means who writes `name`: the same, else the only one that looks
    alike; `name` itself if there is none."""
    known = list(names)
    alike = [other for other in known if look(other) == look(name)]
    return alike[0] if name not in known and len(alike) == 1 else name


def with_one_mark(text: str) -> str:
    """The text with MARK in place of every mark and joiner; each character keeps its position."""
    return text if text.isascii() else text.translate(_ONE_MARK)


def main_language(code: str) -> str:
    """The language of a code without script and region: `zh` of `zh-TW`, `zh_CN`, `zho_Hans` and `cmn`."""
    main = re.split(r"[-_]", code.lower())[0]
    return _OTHER_CODES.get(main, main)


def is_unspaced(language: str) -> bool:
    """Whether a language, by a code such as `th`, `zh-TW`, `zh_CN` or `jpn`, is written without blanks."""
    return main_language(language) in UNSPACED_LANGUAGES


def looks_unspaced(texts: Iterable[str]) -> bool:
    """Whether most characters of the texts, blanks aside, are of scripts that are written without blanks."""
    together = "".join("".join(text.split()) for text in texts)
    return 2 * len(UNSPACED.findall(together)) > len(together)


def any_unspaced(*languages: str) -> bool:
    return any(map(is_unspaced, languages))


def count_words(text: str, unspaced: bool) -> int:
    """The length of a text in words: what white space parts. With `unspaced` (`any_unspaced`), what has
    characters of scripts without blanks is as many words as they are worth together, so that 30 characters of
    Japanese are about as long as 18 words of English."""
    pieces = text.split()
    if not unspaced or not UNSPACED.search(text):
        return len(pieces)
    large = len(KANA_OR_HAN.findall(text))
    worth = WORDS_PER_CHARACTER * large + WORDS_PER_LETTER * (len(UNSPACED.findall(text)) - large)
    return math.ceil(round(worth, 9)) + sum(UNSPACED.search(piece) is None for piece in pieces)


def characters(text: str) -> list[str]:
    """The characters of a text, each with the marks that belong to it; put together, they are the text."""
    found: list[str] = []
    joined = False
    for character, sign in zip(text, with_one_mark(text), strict=True):
        if found and (sign == MARK or joined):
            found[-1] += character
        else:
            found.append(character)
        joined = character in _STACKERS
    return found


class _OneMark(dict[int, int]):
    """By code point, looked up once for each character."""

    def __missing__(self, code: int) -> int:
        is_mark = chr(code) in _JOINERS or unicodedata.category(chr(code)).startswith("M")
        self[code] = ord(MARK) if is_mark else code
        return self[code]


_ONE_MARK = _OneMark()


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
