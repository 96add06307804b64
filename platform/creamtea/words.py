"""Text in any script: plain and normalised text, words, and differences between texts.

Words are runs of letters and digits, with the marks that belong to them.

Python's `\\w` has no marks (the vowel signs of Hindi, the vowels of Arabic, combining accents): with it alone
"हिन्दी" would be six pieces. So patterns are matched against a text in which MARK replaces every mark.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, filterfalse, pairwise, takewhile

from babel.core import get_global
from rapidfuzz.distance import OSA

_SHOW_NOTHING = ("Zs", "Zl", "Zp", "Cc", "Cf")  # categories
_ALSO_WHITE = str.maketrans("\0\u2581", "  ")
# letters of Cyrillic and Greek that look like Latin ones; dashes and apostrophes as editors write them
_LIKE_LATIN = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf"
    "\u2010\u2012\u2013\u2014\u2212\u2018\u2019\u00b4`",
    "ABEKMHOPCTYXSIJaeopcyxsijABEZHIKMNOPTYXo-----''''",
)
_CONTROLS = dict.fromkeys(map(ord, "\t\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"), " ")
# Languages written without blanks between words. The rating page has the same list (board/texts.js).
# not nan and hak, which are often written in Latin letters: nan-Hant names the script
CHINESE = ("zh", "yue", "wuu", "lzh", "gan")
UNSPACED_LANGUAGES = (*CHINESE, "ja", "th", "lo", "km", "my", "bo", "dz")
_KANA_AND_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_THAI_TO_KHMER = "\u0e00-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Burmese and Khmer
KANA_OR_HAN = re.compile(f"[{_KANA_AND_HAN}]")
THAI_TO_KHMER = re.compile(f"[{_THAI_TO_KHMER}]")
UNSPACED = re.compile(f"[{_KANA_AND_HAN}{_THAI_TO_KHMER}]")  # a character of their scripts
# Words per character of these scripts. Kana and Han: people read 255 characters or 158 words per minute in
# Chinese, 357 or 193 in Japanese (IReST norms, Trauzettel-Klosinski and Dietz 2012). For the others no such
# norms are known: five letters count as a word, as in measuring typing.
WORDS_PER_CHARACTER = 0.6
WORDS_PER_LETTER = 0.2
MAX_LINE = 1000  # words of a line to translate; a longer line is a whole text, which may take minutes
_STACKERS = "\u17d2\u1039"  # Khmer and Burmese: the next letter is written below the last

MARK = "\u0300"  # stands for any mark
WORD = rf"\w[\w{MARK}]*"  # matches the result of `with_one_mark`
_JOINERS = "\u200c\u200d"  # inside words of Persian and of India's scripts


def plain(line: str) -> str:
    """Return the text to show and score: the line without white space at its end.

    Tabs and characters that some programs take as line ends (carriage return, U+0085, U+2028 …) become
    blanks, which changes no sacreBLEU score. Idempotent.
    """
    return line.translate(_CONTROLS).rstrip()


def normalise(line: str) -> str:
    """Return the text for models: in form NFC, with single blanks for white space, none at the ends.

    NUL and U+2581, with which SentencePiece marks blanks, count as white space. Idempotent.
    """
    return unicodedata.normalize("NFC", " ".join(line.translate(_ALSO_WHITE).split()))


def without_accents(text: str) -> str:
    """Return the text with è as e, ﬁ as fi and ² as 2, for names of few letters."""
    plain = "".join(filterfalse(unicodedata.combining, unicodedata.normalize("NFKD", text)))
    return unicodedata.normalize("NFC", plain)  # a syllable of Hangul stays one character


def without_csv_quotes(cell: str) -> str:
    """Return a cell's text without the quotes of a CSV writer.

    Such a cell has quotes around it and doubled quotes within. A text that merely has quotes around it has no
    doubled ones and stays as it is.
    """
    inside = cell[1:-1]
    if not (cell.startswith('"') and cell.endswith('"') and '""' in inside):
        return cell
    return cell if '"' in inside.replace('""', "") else inside.replace('""', '"')


def is_blank(text: str) -> bool:
    """Return True if a text shows nothing: only white space, controls and characters without width."""
    # private characters, and those that this Python does not know yet (new emoji), show something
    return all(unicodedata.category(character) in _SHOW_NOTHING for character in normalise(text))


def look(name: str) -> str:
    """Return a key for a name's appearance; names with the same key are hard to tell apart.

    Examples are "José" in NFC and NFD, names with different blanks, dashes or apostrophes or with zero-width
    characters, and "Anna" with a Cyrillic letter.
    """
    shown = unicodedata.normalize("NFKC", normalise(name)).translate(_LIKE_LATIN)
    return "".join(character for character in shown if unicodedata.category(character) != "Cf")


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that look alike or differ only in case."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(look(name).casefold(), []).append(name)
    return [group for group in alike.values() if len(group) > 1]


MISSPELT = "within a document of nearly the same name: write them alike if they are one"


def misspelt(names: Sequence[str]) -> list[str]:
    """Return the names that stand once, between two equal names that differ from them by one or two edits.

    `names`: the document of each segment. A document is in one piece, so such a name is probably misspelt.
    """
    often = Counter(names)
    return [
        name
        for before, name, after in zip(names, names[1:], names[2:], strict=False)
        if often[name] == 1 and before == after and OSA.distance(before, name) <= min(2, (len(name) - 1) // 2)
    ]


def meant(name: str, names: Iterable[str]) -> str:
    """Return the name in `names` that equals `name`, or the only one that looks alike.

    Returns `name` itself if there is none.
    """
    known = list(names)
    alike = [other for other in known if look(other) == look(name)]
    return alike[0] if name not in known and len(alike) == 1 else name


def shared_start(sequences: Sequence[Sequence[str]]) -> list[str]:
    """Return the longest common prefix of sequences of words."""
    together = takewhile(lambda items: len(set(items)) == 1, zip(*sequences, strict=False))
    return [items[0] for items in together]


def with_one_mark(text: str) -> str:
    """Replace every mark and joiner by MARK; each character keeps its position."""
    return text if text.isascii() else text.translate(_ONE_MARK)


def main_language(code: str) -> str:
    """Return a code without script and region, of two letters if there is one: `zh` for `zh_CN` and `cmn`."""
    main = re.split(r"[-_]", code.lower())[0]
    return str(get_global("language_aliases").get(main, main)).partition("_")[0]  # sh: sr_Latn


def is_unspaced(language: str) -> bool:
    """Return True if a language (`th`, `zh-TW`, `zh_CN`, `jpn`, `nan-Hant`) is written without blanks."""
    return main_language(language) in UNSPACED_LANGUAGES or in_han(language)


def in_han(language: str) -> bool:
    """Return True if a code names Chinese characters as its script (`nan_Hant`, `hak-Hani-TW`)."""
    return not {"hans", "hant", "hani"}.isdisjoint(re.split(r"[-_]", language.lower())[1:])


def looks_unspaced(texts: Iterable[str], scripts: re.Pattern[str] = UNSPACED) -> bool:
    """Return True if most characters, except blanks, belong to `scripts`, written without blanks."""
    together = "".join("".join(text.split()) for text in texts)
    return 2 * len(scripts.findall(together)) > len(together)


def any_unspaced(*languages: str) -> bool:
    return any(map(is_unspaced, languages))


def count_words(text: str, unspaced: bool) -> int:
    """Count words, separated by white space.

    With `unspaced` (`any_unspaced`), characters of scripts without blanks count as fractions of a word, so
    that 30 characters of Japanese count like 18 words of English.
    """
    pieces = text.split()
    if not unspaced or not UNSPACED.search(text):
        return len(pieces)
    large = len(KANA_OR_HAN.findall(text))
    worth = WORDS_PER_CHARACTER * large + WORDS_PER_LETTER * (len(UNSPACED.findall(text)) - large)
    return math.ceil(round(worth, 9)) + sum(UNSPACED.search(piece) is None for piece in pieces)


def characters(text: str) -> list[str]:
    """Split a text into characters, each with the marks that belong to it."""
    clusters: list[str] = []
    stacked = False
    for character, sign in zip(text, with_one_mark(text), strict=True):
        if clusters and (sign == MARK or stacked):
            clusters[-1] += character
        else:
            clusters.append(character)
        stacked = character in _STACKERS
    return clusters


class _OneMark(dict[int, int]):
    """A translation table by code point; each character is looked up once."""

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
    """A stretch of a text. Joined, the pieces of a text are the text."""

    text: str
    marked: bool


def differences(text: str, other: str) -> list[Piece]:
    """Split `text` into pieces, and mark those that differ from `other`.

    White space alone is not a difference. Words are compared as written; punctuation marks are words.
    """
    spans = word_spans(text)
    matcher = SequenceMatcher(None, words(text), words(other), autojunk=False)
    same = [False] * len(spans)
    for match in matcher.get_matching_blocks():
        same[match.a : match.a + match.size] = [True] * match.size
    return _pieces(text, spans, same)


def words(text: str) -> list[str]:
    """Split a text into words and punctuation marks, or characters if a script has no spaces."""
    return [text[start:end] for start, end in word_spans(text)]


def words_of_language(text: str, language: str) -> list[str]:
    """Split into `words`, but keep contractions, or split them in two if the language elides words."""
    pattern = _ELIDED if main_language(language) in ELIDING else _CONTRACTED
    return [text[start:end] for start, end in word_spans(text, pattern)]


def joined(pieces: Sequence[str]) -> str:
    """Join words as they are written: without blanks if their script has none."""
    shown = ""
    for before, piece in pairwise(["", *pieces]):
        blank = before and not UNSPACED.search(before) and not UNSPACED.search(piece)
        shown += f" {piece}" if blank else piece
    return shown


def word_spans(text: str, pattern: re.Pattern[str] = _TOKENS) -> list[tuple[int, int]]:
    """Return the start and end of each of `words`."""
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(with_one_mark(text)):
        if UNSPACED.search(text, *match.span()):
            stretch = text[slice(*match.span())]
            spans += pairwise(accumulate(map(len, characters(stretch)), initial=match.start()))
        else:
            spans.append(match.span())
    return spans


def _pieces(text: str, spans: Sequence[tuple[int, int]], same: Sequence[bool]) -> list[Piece]:
    """Join neighbours with the same mark; blanks are marked only between two marked words."""
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


def split_words(text: str) -> list[str]:
    """Split a text at blanks; punctuation stays with its words.

    In a script without blanks, each character is a word, with its marks.
    """
    if not UNSPACED.search(text):
        return text.split()
    pieces = (f" {piece} " if UNSPACED.match(piece) else piece for piece in characters(text))
    return "".join(pieces).split()
