"""The synthetic language pair: an invented language, and corpora and test sets with annotated idioms.

The pair exists for its idioms. An idiom is a phrase of two to four ordinary words with a special translation,
in words that occur nowhere else. The idiom's words are the most frequent of their classes, ambiguous, part of
several idioms each, and mostly used literally. So their rows in a word-by-word lexicon are full of literal
translations, and a short list misses the idiom's translation. In context there is no doubt: the phrase is
never meant literally (`Grammar.sentence`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice

from creamtea.contract.step import StepContext
from creamtea.methods.corpora import SyntheticCorpus
from creamtea.methods.test_sets import SyntheticTestSet
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea_workers.corpora.files import FilteredCorpus, Pair
from creamtea_workers.corpora.ibm3 import Diagonal, Distribution, Ibm3, Tables, Target
from creamtea_workers.corpora.segments import Prepared, Segment


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Word classes, most frequent word first (`_zipf`). The words of idioms are the most frequent.
TRANSITIVE = _words(
    """
    kicked broke held burned crossed dropped pulled carried saw found took pushed painted cleaned opened
    closed washed moved bought sold followed watched heard liked lost hid turned threw counted raised
    covered shook
    """
)
INTRANSITIVE = _words("sat walked slept stood laughed waited sang danced worked ran cried smiled")
NOUNS = _words(
    """
    bucket ice candle bridge horse rope bread fire cat boat bone hat man woman child dog house door bird
    tree book garden river farmer teacher king stone road table window letter box apple sailor doctor
    baker queen soldier painter singer fish cow wolf bear duck goat sheep mouse chair wall roof gate
    ship hill field bag cup bottle knife lamp song coat shoe ring clock egg cake soup
    """
)
ADJECTIVES = _words(
    """
    cold black golden empty old bitter young big small red white green blue warm dry wet long short
    heavy light quiet dark bright clean dirty wooden sweet happy sad kind
    """
)
ADVERBS = _words(
    """
    quickly slowly quietly often never always soon again yesterday today carefully gladly suddenly early
    """
)
PREPOSITIONS = _words("on under in over behind near with from before beside")
CONJUNCTIONS = _words("and but while because when so")
DETERMINERS = _words("the my this that every some his her")


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(","))


IDIOMS = {
    "verb": _phrases(
        """
        kicked the bucket, kicked the bread, kicked the candle,
        broke the ice, broke the bread, broke the rope,
        held the candle, held the horse, held the rope,
        burned the bread, burned the bridge, burned the bucket,
        crossed the ice, crossed the fire, crossed the bridge,
        dropped the rope, dropped the horse, dropped the fire,
        sat on the horse, walked over the ice, slept in the bucket, stood under the candle
        """
    ),
    "noun": _phrases(
        """
        cold fire, cold horse, cold bread, black horse, black candle, black bridge,
        golden bridge, golden bucket, golden rope, empty bucket, empty candle, empty ice
        """
    ),
    "place": _phrases(
        "on the rope, under the bridge, over the fire, behind the ice, in the fire, near the horse"
    ),
}
KINDS = {phrase: kind for kind, phrases in IDIOMS.items() for phrase in phrases}
PHRASES = tuple(KINDS)
IDIOM_WORDS = frozenset(word for phrase in PHRASES for word in phrase.split())

MIN_WORDS, MAX_WORDS = 4, 14  # of a source sentence


# ---------------------------------------------------------------- the grammar


def _zipf(words: Sequence[str]) -> Distribution[str]:
    return Distribution({word: 1 / (rank + 4) for rank, word in enumerate(words)}, gamma=1)


class Grammar:
    """Makes source sentences as lists of units: a unit is a word, or an idiom's whole phrase."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._classes = {words: _zipf(words) for words in _CLASSES}

    def sentence(self, idiom_rate: float) -> list[str]:
        """Make a sentence, with an idiom at probability `idiom_rate`; no other phrase of an idiom occurs."""
        idiom = PHRASES[int(self._rng.random() * len(PHRASES))] if self._happens(idiom_rate) else None
        while True:
            units = self._sentence(idiom)
            text = " ".join(units)
            phrases = sum(f" {text} ".count(f" {phrase} ") for phrase in PHRASES)  # also by chance
            if MIN_WORDS <= len(text.split()) <= MAX_WORDS and phrases == (idiom is not None):
                return units

    def _sentence(self, idiom: str | None) -> list[str]:
        opening = [self._word(ADVERBS)] if self._happens(0.1) else []
        if not self._happens(0.3):
            return opening + self._clause(idiom)
        in_first = self._happens(0.5)
        first, second = self._clause(idiom if in_first else None), self._clause(None if in_first else idiom)
        return [*opening, *first, self._word(CONJUNCTIONS), *second]

    def _clause(self, idiom: str | None) -> list[str]:
        kind, phrase = (KINDS[idiom], idiom) if idiom else (None, "")
        transitive = self._happens(0.7)
        as_subject = kind == "noun" and (not transitive or self._happens(0.5))
        units = self._noun_phrase(phrase if as_subject else "")
        if kind == "verb":
            units += [phrase]
        elif transitive:
            as_object = kind == "noun" and not as_subject
            units += [self._word(TRANSITIVE), *self._noun_phrase(phrase if as_object else "")]
        else:
            units += [self._word(INTRANSITIVE)]
        if kind == "place":
            units += [phrase]
        elif self._happens(0.3):
            units += [self._word(PREPOSITIONS), *self._noun_phrase()]
        return units + ([self._word(ADVERBS)] if self._happens(0.2) else [])

    def _noun_phrase(self, idiom: str = "") -> list[str]:
        determiner = self._word(DETERMINERS)
        if idiom:
            return [determiner, idiom]
        adjective = [self._word(ADJECTIVES)] if self._happens(0.4) else []
        return [determiner, *adjective, self._word(NOUNS)]

    def _word(self, words: tuple[str, ...]) -> str:
        return self._classes[words].draw(self._rng)

    def _happens(self, probability: float) -> bool:
        return self._rng.random() < probability


_CLASSES = (TRANSITIVE, INTRANSITIVE, NOUNS, ADJECTIVES, ADVERBS, PREPOSITIONS, CONJUNCTIONS, DETERMINERS)


# ---------------------------------------------------------------- the tables


@cache
def tables() -> Tables[str]:
    """Return n, t, d and the NULL words of the invented language."""
    rng = random.Random("creamtea: the invented language")
    invented = _invent(rng)
    fertility: dict[str, dict[int, float]] = {}
    lexical: dict[str, dict[str, float]] = {}
    for words in _CLASSES:
        for word in words:
            fertility[word] = {1: 0.7, 0: 0.3} if words is DETERMINERS else {1: 0.85, 2: 0.1, 0: 0.05}
            lexical[word] = {next(invented): 0.6**rank for rank in range(_ambiguity(word, words, rng))}
    for phrase in PHRASES:  # one unit on each side, so that its words stay together
        fertility[phrase] = {1: 1.0}
        lexical[phrase] = {" ".join(next(invented) for _ in range(2 + int(rng.random() * 3))): 1.0}
    null_words = {next(invented): weight for weight in (0.6, 0.3, 0.1)}
    return Tables(fertility, lexical, null_words, p1=0.15, distortion=Diagonal(spread=0.5))


def _ambiguity(word: str, words: Sequence[str], rng: random.Random) -> int:
    """Return the number of translations of a word."""
    if words in (DETERMINERS, CONJUNCTIONS):
        return 2
    if word in IDIOM_WORDS:
        return 5
    return (1, 1, 1, 2, 2, 3)[int(rng.random() * 6)]


def _invent(rng: random.Random) -> Iterator[str]:
    """Yield distinct pronounceable words of two or three syllables that the source language lacks."""
    onsets, vowels = _words("b d f g k l m n p r s t v z sh tr kl"), "aeiou"
    codas = ("", "", "", "n", "r", "l", "s")

    def pick(choices: Sequence[str]) -> str:
        return choices[int(rng.random() * len(choices))]

    used = {word for words in _CLASSES for word in words}
    while True:
        syllables = 2 + (rng.random() < 0.4)
        word = "".join(pick(onsets) + pick(vowels) for _ in range(syllables)) + pick(codas)
        if word not in used:
            used.add(word)
            yield word


# Synthetic pairs with annotated idioms: grammar → source sentence → IBM-3 → target sentence.
#
# Every split has two random streams, named by seed and split: for source sentences and for targets. So a test
# set can draw a corpus's source sentences again, without their targets, and exclude them: no test sentence
# was seen in training.


def prepare_corpus(spec: SyntheticCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    """Make a corpus. It needs no filter: no side is empty, and all sources differ."""
    train, dev = training_and_dev(spec, lambda done, total: context.progress(done, total, "sampling"))
    return FilteredCorpus(
        train=[Pair(segment.source, segment.reference) for segment in train],
        dev=[Pair(segment.source, segment.reference) for segment in dev],
        train_read=len(train),
        dev_read=len(dev),
        dropped=dict.fromkeys(("empty", "too_long", "ratio", "duplicate"), 0),
    )


def prepare_test_set(spec: SyntheticTestSet, context: StepContext[TestSetParams]) -> Prepared:
    corpus = context.params.corpus
    assert isinstance(corpus, SyntheticCorpus)  # the study's check ensures it
    return Prepared(unseen_segments(spec, corpus))


def training_and_dev(
    corpus: SyntheticCorpus, progress: Callable[[int, int], None] | None = None
) -> tuple[list[Segment], list[Segment]]:
    """Make the segments of a corpus. Every source sentence is different; none of dev is in training."""
    train_units, dev_units = _corpus_sources(corpus)
    train = _translate(train_units, corpus.gamma, f"{corpus.seed} train", progress)
    return train, _translate(dev_units, corpus.gamma, f"{corpus.seed} dev")


def unseen_segments(test_set: SyntheticTestSet, corpus: SyntheticCorpus) -> list[Segment]:
    """Make segments of the corpus's language and temperature with new sources.

    No source is in the corpus's training or development set, and all sources differ.
    """
    seen = {" ".join(units) for split in _corpus_sources(corpus) for units in split}
    units = list(islice(_unseen(f"{test_set.seed} test", test_set.idiom_rate, seen), test_set.lines))
    return _translate(units, corpus.gamma, f"{test_set.seed} test")


def _corpus_sources(corpus: SyntheticCorpus) -> tuple[list[list[str]], list[list[str]]]:
    seen: set[str] = set()
    train = list(islice(_unseen(f"{corpus.seed} train", corpus.idiom_rate, seen), corpus.train))
    dev = list(islice(_unseen(f"{corpus.seed} dev", corpus.idiom_rate, seen), corpus.dev))
    return train, dev


def _unseen(stream: str, idiom_rate: float, seen: set[str]) -> Iterator[list[str]]:
    """Yield source sentences that are not in `seen`, and add each to it."""
    grammar = Grammar(random.Random(f"source {stream}"))
    while True:
        units = grammar.sentence(idiom_rate)
        text = " ".join(units)
        if text not in seen:
            seen.add(text)
            yield units


def _translate(
    sources: list[list[str]], gamma: float, stream: str, progress: Callable[[int, int], None] | None = None
) -> list[Segment]:
    model, rng = Ibm3(tables(), gamma), random.Random(f"target {stream}")
    segments = []
    for done, units in enumerate(sources):
        if progress is not None and done % 1000 == 0:
            progress(done, len(sources))
        segments.append(_annotate(units, model.sample(units, rng)))
    return segments


def _annotate(units: list[str], target: list[Target[str]]) -> Segment:
    """Join both sides by blanks and note the characters of each idiom and its translation."""
    words = [word for word, _ in target]
    origins = [origin for _, origin in target]
    idioms = [
        {"name": unit, "source": _span(units, i), "target": _span(words, origins.index(i + 1))}
        for i, unit in enumerate(units)
        if " " in unit
    ]
    return Segment(" ".join(units), " ".join(words), idioms)


def _span(units: list[str], place: int) -> list[int]:
    start = sum(len(unit) + 1 for unit in units[:place])
    return [start, start + len(units[place])]
