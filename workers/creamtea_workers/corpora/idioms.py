"""Find idioms in sentences, and their translations in references.

The words of the training text and of the test set, lower-cased and cut to their first letters (there is
little text, and inflection does not matter here), are aligned together in both directions by the built-in
aligner. The links of both directions count, their intersection (Och and Ney 2003). Grow-diag, which adds
links of one direction, annotates a fifth more segments of IdiomTranslationDS, but on inspection most of these
are wrong.

The idiom's translation is every word of the reference, except punctuation, that is aligned to a word of the
idiom. A translation that occurs nowhere else is missed. So idiom recall on such a test set covers only
translations that an aligner can learn, which favours a lexicon over other selections.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import compress, islice, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from creamtea.errors import StepError
from creamtea.methods.texts import Languages
from creamtea.words import main_language
from creamtea_workers.corpora.files import Pair, SeenHashes, pair_hash
from creamtea_workers.corpora.segments import Prepared, Segment
from creamtea_workers.corpora.text import detokenise, normalise
from creamtea_workers.corpora.tokens import SHARD, Rows, Shard
from creamtea_workers.selection.aligner import train_aligner, viterbi

ITERATIONS = 5  # of the aligner
LETTERS = 4  # first letters that represent a word
VOCABULARY = 30_000  # most frequent word beginnings per side; all others share one id
PART = 1 << 16  # training pairs to compare with earlier ones at a time
MAX_WORDS = 80  # per side; longer training pairs are not aligned
Link = tuple[int, int]  # places of a source and a target word


def annotate(
    segments: Sequence[Segment],
    idioms: Sequence[Idiom],
    training: Iterable[Pair],
    source_language: str,
    progress: Callable[[int, int], None],
) -> Prepared:
    """Add to each segment its idiom, and the idiom's words in the metadata.

    An idiom in several pieces has several entries (`entries`). An idiom has no spans if its words are not
    found, or not aligned. The counts are `found`, segments with the idiom's words in the source, and
    `aligned`, found segments with an aligned word in the reference.
    """
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
    """Return characters [from, to) of the words at ascending places; neighbouring words form one piece."""
    pieces: list[list[int]] = []
    for number, place in enumerate(places):
        if number and place == places[number - 1] + 1:
            pieces[-1][1] = words[place].end
        else:
            pieces.append([words[place].start, words[place].end])
    return pieces


def entries(name: str, source: Sequence[list[int]], target: Sequence[list[int]]) -> list[dict[str, Any]]:
    """Return one entry per piece of an idiom, at least one; all entries have the idiom's name.

    The side with fewer pieces repeats its last one, or [] if it has none.
    """
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
    """Return the links of each test pair on which both directions agree.

    The aligner is trained on the test pairs and on each distinct training pair. Training pairs are read once,
    and take 4 bytes per word.
    """
    source_side, target_side = _Side(), _Side()
    for source, target in zip(sources, targets, strict=True):
        source_side.add(source)
        target_side.add(target)
    for pair in _different(training):
        source, target = split_words(pair.source), split_words(pair.target)
        if max(len(source), len(target)) <= MAX_WORDS:
            source_side.add(source)
            target_side.add(target)
    source_rows, target_rows = source_side.rows(), target_side.rows()
    forward = _best(source_rows, target_rows, len(sources), lambda done: progress(done, 2 * ITERATIONS))
    backward = _best(
        target_rows, source_rows, len(sources), lambda done: progress(ITERATIONS + done, 2 * ITERATIONS)
    )
    return [
        {(s, t) for t, s in enumerate(sources) if s >= 0} & {(s, t) for s, t in enumerate(targets) if t >= 0}
        for sources, targets in zip(forward, backward, strict=True)
    ]


def _different(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yield each distinct pair once (hash collisions aside)."""
    seen, left = SeenHashes(), iter(pairs)
    while some := list(islice(left, PART)):
        yield from compress(some, seen.add([pair_hash(*pair) for pair in some]))


class _Side:
    """The beginnings of the words of one side's sentences, as numbers."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}  # number of each beginning, from 0, in order of occurrence
        self._numbers = array("i")
        self._offsets = array("q", [0])

    def add(self, words: Sequence[Word]) -> None:
        known = self._known
        self._numbers.extend(known.setdefault(word.text[:LETTERS], len(known)) for word in words)
        self._offsets.append(len(self._numbers))

    def rows(self) -> Rows:
        """Return the words' frequency ranks, from 1; 0 for all but the most frequent words."""
        numbers = np.frombuffer(self._numbers, dtype=np.int32)
        counts = np.bincount(numbers, minlength=len(self._known))
        common = np.argsort(-counts, kind="stable")[:VOCABULARY]
        ids = np.zeros(len(self._known), dtype=np.int32)
        ids[common] = np.arange(1, len(common) + 1)
        return Rows(ids[numbers], np.frombuffer(self._offsets, dtype=np.int64))


def _best(given: Rows, made: Rows, tested: int, progress: Callable[[int], None]) -> list[list[int]]:
    """Train on all pairs; for each word of the first `tested` in `made`, return its position in `given`."""
    firsts = range(0, len(given), SHARD)
    shards = [
        Shard(*(side.copy(first, min(first + SHARD, len(side))) for side in (given, made)))
        for first in firsts
    ]
    aligner = train_aligner(shards, VOCABULARY + 1, ITERATIONS, lambda iteration, value: progress(iteration))
    alignments = viterbi(aligner, Shard(given.copy(0, tested), made.copy(0, tested)))
    return [row.tolist() for row in alignments]


# Idioms of IdiomTranslationDS (Fadaee, Bisazza and Monz 2018) in their sentences.
#
# A line of an `.info` file belongs to a line of the test set. Its columns are undocumented; three are used.
# The first is the idiom's spread in the source: its span in Moses' tokens, minus the number of its words,
# minus 1, so -1 is a phrase without a gap; the words may be in any order. The second is the idiom,
# lower-cased (English verb phrases with a leading "to", German as lemmas), the third its dictionary
# translation.


# roughly Moses' tokens: numbers, words with hyphens, letters after an apostrophe, single marks
_WORD = re.compile(r"\d+(?:[.,:]\d+)+|(?<=\w)['’]\w+|\w+(?:-\w+)*|\.{2,}|[^\w\s]")
_BROKEN_ESCAPE = re.compile(r"&(\w+) ;")  # as in "auf gehen &apos ; s !"


class Word(NamedTuple):
    """A word, lower-cased, and its characters [start, end)."""

    text: str
    start: int
    end: int


def is_mark(word: str) -> bool:
    """Return True if the word has neither a letter nor a digit."""
    return not re.search(r"[^\W_]", word)


class Idiom(NamedTuple):
    name: str
    words: list[str]
    spread: int
    translation: str = ""  # from a dictionary


def split_words(text: str) -> list[Word]:
    """Split normalised text into words and marks. (Lower-casing may change a length, so it comes last.)"""
    return [Word(match[0].lower().replace("’", "'"), *match.span()) for match in _WORD.finditer(text)]


def read_info(lines: Sequence[str], name: str, languages: Languages) -> list[Idiom]:
    """Read the idioms of an `.info` file. Raise StepError unless each line is `spread TAB idiom …`."""
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
    """Find the ascending places of the idiom's words in a sentence; None if a word has no form there.

    A word's candidate places are the forms of its lemma. A choice has one place for each word (one place may
    serve two words: "without a shadow of doubt"). The best choice has the stated spread; then the fewest
    shared places, then the fewest inversions of the idiom's order, then the earliest place. If no choice has
    the stated spread, the idiom's rarest word is the anchor: for each of its places every other word takes
    its nearest place, and the narrowest choice wins.

    Marks and the infinitive's "to" (which the spread counts, wherever it stands) are optional: the sentence
    may lack them, and their places are not returned.
    """
    texts = [word.text for word in words]
    options = [places_of(word, texts, language) for word in idiom.words]
    infinitive = main_language(language) == "en" and len(idiom.words) > 1
    optional = [
        is_mark(word) or (infinitive and number == 0 and word == "to")
        for number, word in enumerate(idiom.words)
    ]
    present = [places for places in options if places]
    if not present or any(not places and not spare for places, spare in zip(options, optional, strict=True)):
        return None
    width = idiom.spread + len(present) + 1
    choice = _exact(present, width) or _nearest(present)
    kept = [spare for places, spare in zip(options, optional, strict=True) if places]
    places = sorted({place for place, spare in zip(choice, kept, strict=True) if not spare})
    return places or None


def _exact(options: Sequence[Sequence[int]], width: int) -> tuple[int, ...] | None:
    """Return the best choice whose first and last place are `width` - 1 apart."""
    choices: list[tuple[tuple[int, int, int], tuple[int, ...]]] = []
    for first in sorted({place for places in options for place in places}):
        window = [[place for place in places if first <= place < first + width] for places in options]
        for choice in product(*window):
            if min(choice) == first and max(choice) == first + width - 1:
                shared = len(choice) - len(set(choice))
                disorder = sum(a > b for a, b in pairwise(choice))
                choices.append(((shared, disorder, first), choice))
    return min(choices)[1] if choices else None


def _nearest(options: Sequence[Sequence[int]]) -> tuple[int, ...]:
    anchors = min(options, key=len)
    choices = [
        tuple(min(places, key=lambda place: abs(place - anchor)) for places in options) for anchor in anchors
    ]
    return min(choices, key=lambda choice: max(choice) - min(choice))


# A crude test whether a word is a form of a lemma: enough to find an idiom's words in a sentence that is
# known to hold them, not a lemmatiser. All strings are lower case; `|` separates alternatives of a lemma.
#
# - *English*: the regular endings, and irregular verbs from a table.
# - *German*: umlauts and ß are folded; common endings, `ge-` and `zu` of participles and infinitives,
#   prefixes of verbs; strong verbs and pronouns from a table. `die` stands for every article, `sein` for the
#   verb and for every possessive, as in IdiomTranslationDS. If the prefix of a separable verb stands later in
#   the sentence, only the verb's form is returned.
# - *Other languages*: the word shares the first four letters (or all of a shorter lemma), and the lengths
#   differ by at most four letters.


_FOLD = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _table(name: str, fold: Mapping[int, str] | None = None) -> dict[str, frozenset[str]]:
    """Read forms/NAME.txt. A line is a lemma, then forms; a lemma may have several lines."""
    text = Path(__file__).with_name("forms").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    table: dict[str, frozenset[str]] = {}
    for lemma, *forms in (line.split() for line in text.translate(fold or {}).splitlines()):
        table[lemma] = table.get(lemma, frozenset()) | frozenset(forms)
    return table


def places_of(lemma: str, words: Sequence[str], language: str) -> list[int]:
    """Return the places of lower-case words that are forms of the lemma. `language`: a code such as `de`."""
    is_form = _TESTS.get(main_language(language), _generic)
    alternatives = [form for form in lemma.split("|") if form] or [lemma]
    separable = _separable(alternatives) if is_form is _german else []
    return [
        place
        for place, word in enumerate(words)
        if any(word == form or is_form(form, word) for form in alternatives)
        or any(_german(base, word) and prefix in words[place + 1 :] for prefix, base in separable)
    ]


# ---------------------------------------------------------------- English

_ENGLISH = _table("english")  # forms that the endings of `_english` do not give


def _english(lemma: str, word: str) -> bool:
    if word in _ENGLISH.get(lemma, ()):
        return True
    if word in (lemma + "s", lemma + "es"):
        return True
    stems = [lemma, lemma.removesuffix("e"), lemma + lemma[-1]]  # pass-ing, tak-ing, sell-ing, begin-n-ing
    if lemma.endswith("y"):
        stems.append(lemma[:-1] + "i")  # carri-ed, carri-es
    return (
        any(word in (stem + "ing", stem + "ed") for stem in stems) or word == lemma.removesuffix("y") + "ies"
    )


# ---------------------------------------------------------------- German

_GERMAN_CLOSED = _table("german-closed")  # words that take no endings: all their forms
# further stems of verbs and adjectives, which take the endings too
_GERMAN = _table("german", _FOLD)
_ENDINGS = frozenset(
    _words(
        """
    e em en er es est et n s st t te tem ten ter tes test tet end ende enden ender endes ens
    ern ere eren erer eres erem este esten ester estes ste sten ster stes nen ne
        """
    )
) | {""}
_SEPARABLE = _words(
    """
    zusammen zurück hinter heraus hinaus herein hinein weiter wieder unter durch statt stand nach fest fort
    frei los mit vor weg auf aus bei ein hin her ab an zu um
    """
)
_PREFIXES = tuple(
    prefix.translate(_FOLD)
    for prefix in (*_SEPARABLE, "ver", "be", "ge", "er", "ent", "zer", "über", "wider")
)


@cache
def _german(lemma: str, word: str) -> bool:
    if lemma in _GERMAN_CLOSED:
        return word in _GERMAN_CLOSED[lemma]
    lemma, word = lemma.translate(_FOLD), word.translate(_FOLD)
    if _inflected(lemma, word) or _inflected(lemma, word.removeprefix("ge")):
        return True
    for prefix in _PREFIXES:
        base, rest = lemma.removeprefix(prefix), word.removeprefix(prefix)
        if base != lemma and rest != word and len(base) > 3 and len(rest) > 2:
            # annehmen: an-nimmt, an-zu-nehmen, an-genommen; vergehen: ver-(ge)gangen
            forms = (rest, rest.removeprefix("ge"), rest.removeprefix("zu"), "ge" + rest)
            if any(_inflected(base, form) for form in forms):
                return True
    return False


def _separable(lemmas: Sequence[str]) -> list[tuple[str, str]]:
    """Split the lemmas into prefix and verb in each possible way, as in: nimmt … an."""
    return [
        (prefix, lemma.removeprefix(prefix))
        for lemma in lemmas
        for prefix in _SEPARABLE
        if lemma.startswith(prefix) and len(lemma) > len(prefix) + 3
    ]


def _inflected(lemma: str, word: str) -> bool:
    """Return True if the word is a stem of the lemma with an ending; both are folded."""
    stems = {lemma, *_GERMAN.get(lemma, ())}
    stems |= {lemma.removesuffix(ending) for ending in ("en", "n", "e") if len(lemma) > len(ending) + 2}
    return any(word.startswith(stem) and word[len(stem) :] in _ENDINGS for stem in stems)


# ---------------------------------------------------------------- other languages


def _generic(lemma: str, word: str) -> bool:
    return word.startswith(lemma[:4]) and abs(len(word) - len(lemma)) <= 4


_TESTS: dict[str, Callable[[str, str], bool]] = {"en": _english, "de": _german}
