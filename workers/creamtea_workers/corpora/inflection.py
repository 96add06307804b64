"""Lemmas and inflected forms: SIGMORPHON 2019, task 1 (Peters and Martins 2021, section 4.2)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from rapidfuzz.distance import Levenshtein

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import InflectionCorpus, filled, pair_parts
from creamtea.methods.test_sets import InflectionTestSet
from creamtea.methods.texts import INFLECTIONS, WordLine
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea.words import normalise
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.g2p import of_groups, pair_of, read_words
from creamtea_workers.corpora.segments import Prepared


def prepare_corpus(spec: InflectionCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    """Put the words of each pair of languages after each other.

    Those of the second are there `repeat` times, and then the words that are hallucinated from them.
    """
    files = Files.of(context)
    train: list[Pair] = []
    dev_pairs: list[Pair] = []
    corpus = FilteredCorpus(train, dev_pairs, train_read=0, dev_read=0, dropped={})
    for pair in spec.pairs:
        parts = pair_parts(pair)
        high, low, dev = (_words(files, filled(path, parts)) for path in (spec.high, spec.low, spec.dev))
        made_up = hallucinate(low, spec.hallucinated, spec.seed, parts["low"]) if spec.hallucinated else []
        train += [pair_of(parts["high"], word) for word in high]
        train += [pair_of(parts["low"], word) for word in [*(low * spec.repeat), *made_up]]
        corpus.train_read += len(high) + len(low)
        corpus.train_added += len(low) * (spec.repeat - 1)
        corpus.train_made_up += len(made_up)
        dev_pairs += [pair_of(parts["low"], word) for word in dev]
        corpus.dev_read += len(dev)
        corpus.dev_groups += [parts["low"]] * len(dev)
    return corpus


def prepare_test_set(spec: InflectionTestSet, context: StepContext[TestSetParams]) -> Prepared:
    files = Files.of(context)
    words = [
        (parts["low"], [pair_of(parts["low"], word) for word in _words(files, filled(spec.file, parts))])
        for parts in spec.parts()
    ]
    words = [(language, pairs[: spec.limit]) for language, pairs in words]
    return of_groups(words)


def _words(files: Files, name: str) -> list[WordLine]:
    return list(read_words(files, name, INFLECTIONS))


# Made-up words for a language with few: data hallucination (Anastasopoulos and Neubig 2019).
#
# Where a lemma and its form share at least `MIN_STEM` characters in a row, that is taken for the stem, and
# each of its characters is replaced with probability 1/2 by a random one, the same in both; the tags stay. Of
# more than `MAX_WHOLE` characters the first and the last are kept, as in the code of that paper's authors.
# Theirs samples an alignment of the whole corpus and takes characters from the development words as well;
# here lemma and form are aligned by edit distance, and the characters are those of the training words.


MIN_STEM, MAX_WHOLE = 3, 5  # characters
MAX_DRAWS = 100  # of a word


def hallucinate(words: Sequence[WordLine], count: int, seed: int, language: str) -> list[WordLine]:
    """Make up `count` words, round after round of those with a stem. StepError if no word has one.

    A word in which a letter and a mark beside it would become one character, which no word of the language
    may have, is drawn again, and stays as it was where that does not help.
    """
    draw = random.Random(f"{language} {seed}")
    alphabet = sorted({character for lemma, form, _ in words for character in lemma + form} - {" "})
    with_stems = [(word, shared) for word in words if (shared := list(stems(word[0], word[1])))]
    if not with_stems:
        raise StepError(
            f"no word of {language} shares {MIN_STEM} characters in a row with its form: nothing can be "
            "hallucinated; take `hallucinated` out of the corpus"
        )
    made: list[WordLine] = []
    while len(made) < count:
        for (lemma, form, tags), shared in with_stems[: count - len(made)]:
            for _ in range(MAX_DRAWS):
                letters, inflected = list(lemma), list(form)
                for first, other, length in shared:
                    for n in range(length):
                        if draw.random() < 0.5:
                            letters[first + n] = inflected[other + n] = draw.choice(alphabet)
                word = WordLine("".join(letters), "".join(inflected), tags)
                if all(text == normalise(text) for text in word[:2]):
                    break
            else:
                word = WordLine(lemma, form, tags)
            made.append(word)
    return made


def stems(lemma: str, form: str) -> Iterator[tuple[int, int, int]]:
    """Yield what may be replaced: where it begins in the lemma and in the form, and how long it is."""
    for block in Levenshtein.opcodes(lemma, form):
        if block.tag != "equal":
            continue
        first = block.src_start
        for part in lemma[block.src_start : block.src_end].split(" "):  # a blank stays
            length, other = len(part), first - block.src_start + block.dest_start
            if length > MAX_WHOLE:
                yield first + 1, other + 1, length - 2
            elif length >= MIN_STEM:
                yield first, other, length
            first += length + 1
