"""Idioms of IdiomTranslationDS found by `corpora/idioms.py` and by simplemma.

`pip install simplemma==2.0.0; python bench/idiom_lemmas.py DATA`, where DATA holds itds-en-de and itds-de-en.

For each file: lines in which all words of the stated idiom are found; those of them where some choice of
places has the spread that the `.info` file states; lines in which an idiom drawn from the others is found,
which would be a mistake.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import simplemma

from creamtea_workers.corpora import idioms as matching
from creamtea_workers.corpora.text import detokenise, normalise, read_lines

PlacesOf = Callable[[str, Sequence[str], str], list[int]]


@cache
def lemmas_of(word: str, language: str) -> frozenset[str]:
    """Of the word as a noun (German ones are capitalised) and as any other word."""
    forms = (word, word.capitalize())
    return frozenset({word, *(simplemma.lemmatize(form, lang=language).lower() for form in forms)})


def alone(lemma: str, words: Sequence[str], language: str) -> list[int]:
    """simplemma and nothing else."""
    wanted = [lemmas_of(alternative, language) for alternative in lemma.split("|") if alternative]
    return [n for n, word in enumerate(words) if any(lemmas_of(word, language) & ids for ids in wanted)]


def with_tables(lemma: str, words: Sequence[str], language: str) -> list[int]:
    """simplemma, with our tables of German articles and pronouns and our rule for separated verbs."""
    if language != "de":
        return alone(lemma, words, language)
    if lemma in matching._GERMAN_CLOSED:
        return matching.places_of(lemma, words, language)
    separated = [
        n
        for prefix, base in matching._separable(lemma.split("|"))
        for n in alone(base, words, language)
        if prefix in words[n + 1 :]
    ]
    return sorted({*alone(lemma, words, language), *separated})


def measure(places_of: PlacesOf, folder: Path, part: str, language: str) -> str:
    lines = read_lines(folder / f"{part}.{language}")
    idioms = matching.read_info(read_lines(folder / f"{part}.info"), f"{part}.info", language)
    sentences = [matching.split_words(normalise(detokenise(line, language))) for line in lines]
    draw = random.Random(1)
    others = [draw.choice([other for other in idioms if other.name != idiom.name]) for idiom in idioms]
    matching.places_of = places_of  # type: ignore[attr-defined]
    found = agreeing = mistakes = 0
    for idiom, other, words in zip(idioms, others, sentences, strict=True):
        mistakes += matching.find(other, words, language) is not None
        if matching.find(idiom, words, language) is not None:
            found += 1
            texts = [word.text for word in words]
            options = [places for word in idiom.words if (places := places_of(word, texts, language))]
            agreeing += matching._exact(options, idiom.spread + len(options) + 1) is not None
    return f"found {found}/{len(idioms)}, spread agrees {agreeing}, other idioms found {mistakes}"


def main() -> None:
    variants = {"idioms.py": matching.places_of, "simplemma": alone, "simplemma + tables": with_tables}
    for folder, language in (("itds-en-de", "en"), ("itds-de-en", "de")):
        for part in ("idiom_test", "idiom_trainplus"):
            for name, places_of in variants.items():
                print(folder, part, name, measure(places_of, Path(sys.argv[1]) / folder, part, language))


if __name__ == "__main__":
    main()
