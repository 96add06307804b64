"""A crude test whether a word is a form of a lemma: enough to find an idiom's words in a sentence that is
known to hold them, not a lemmatiser. All strings are lower case; alternatives of a lemma stand beside `|`.

- *English*: the regular endings, and irregular verbs from a table.
- *German*: umlauts and ß are folded; common endings, `ge-` and `zu` of participles and infinitives, prefixes
  of verbs; strong verbs and pronouns from a table. `die` stands for every article, `sein` for the verb and
  for every possessive, as in IdiomTranslationDS. Of a separable verb whose prefix stands later in the
  sentence, the verb's form alone is taken.
- *Other languages*: the first four letters, or all of a shorter lemma, and at most four letters more than it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from creamtea_workers.corpora.moses import primary

_FOLD = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _table(name: str, fold: Mapping[int, str] | None = None) -> dict[str, frozenset[str]]:
    """forms/NAME.txt. A line: a lemma, then forms; a lemma may have several lines."""
    text = Path(__file__).with_name("forms").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    table: dict[str, frozenset[str]] = {}
    for lemma, *forms in (line.split() for line in text.translate(fold or {}).splitlines()):
        table[lemma] = table.get(lemma, frozenset()) | frozenset(forms)
    return table


def places_of(lemma: str, words: Sequence[str], language: str) -> list[int]:
    """Where the words, in lower case, are forms of the lemma. `language` is a code such as `de`."""
    is_form = _TESTS.get(primary(language), _generic)
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
# of verbs and adjectives further stems, which take the endings, too
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
    """How the lemmas may be prefix and verb, as in: nimmt … an."""
    return [
        (prefix, lemma.removeprefix(prefix))
        for lemma in lemmas
        for prefix in _SEPARABLE
        if lemma.startswith(prefix) and len(lemma) > len(prefix) + 3
    ]


def _inflected(lemma: str, word: str) -> bool:
    """Both folded: whether the word is a stem of the lemma with an ending."""
    stems = {lemma, *_GERMAN.get(lemma, ())}
    stems |= {lemma.removesuffix(ending) for ending in ("en", "n", "e") if len(lemma) > len(ending) + 2}
    return any(word.startswith(stem) and word[len(stem) :] in _ENDINGS for stem in stems)


# ---------------------------------------------------------------- other languages


def _generic(lemma: str, word: str) -> bool:
    return word.startswith(lemma[:4]) and abs(len(word) - len(lemma)) <= 4


_TESTS: dict[str, Callable[[str, str], bool]] = {"en": _english, "de": _german}
