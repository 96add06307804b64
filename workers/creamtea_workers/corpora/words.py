"""Words and their phones, lemmas and inflected forms: task 1 of SIGMORPHON 2020 and of 2019 (Peters and
Martins 2021, sections 4.1 and 4.2).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from rapidfuzz.distance import Levenshtein

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import G2pCorpus, InflectionCorpus, filled, pair_parts
from creamtea.methods.test_sets import G2pTestSet, InflectionTestSet
from creamtea.methods.texts import INFLECTIONS, PRONUNCIATIONS, WordLine, WordLines
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea.words import normalise
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.segments import Prepared, Segment


def read_words(files: Files, name: str, lines: WordLines) -> Iterator[WordLine]:
    """Read the words of a file in the format `lines`. Raise StepError that names a malformed line.

    (The plan of a new study has already checked the file.)
    """
    number = 0
    for number, line in enumerate(files.lines(name), start=1):
        try:
            yield lines.read(line)
        except ValueError as error:
            raise StepError(f"{name}, line {number}: {error}; a line is {lines.wanted}") from None
    if not number:
        raise StepError(f"{name} is empty: it needs at least one line")


def pair_of(language: str, line: WordLine) -> Pair:
    """Make a pair, with the language and each tag as one symbol: "<zulu>hamba<V><PST>"."""
    tags = "".join(f"<{tag}>" for tag in line.tags)
    return Pair(f"<{language}>{line.word}{tags}", line.target)


def prepare_corpus(spec: G2pCorpus | InflectionCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    """Concatenate the words of all languages, or of all pairs of languages.

    The words of a pair's second language occur `repeat` times, followed by words hallucinated from them.
    """
    files = Files.of(context)
    if isinstance(spec, G2pCorpus):
        spoken = [pair for language in spec.languages for pair in _pairs(files, spec.train, language)]
        held_out = {language: _pairs(files, spec.dev, language) for language in spec.languages}
        return FilteredCorpus(
            spoken,
            dev=[pair for pairs in held_out.values() for pair in pairs],
            train_read=len(spoken),
            dev_read=sum(map(len, held_out.values())),
            dropped={},
            dev_groups=[language for language, pairs in held_out.items() for _ in pairs],
        )
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


def prepare_test_set(spec: G2pTestSet | InflectionTestSet, context: StepContext[TestSetParams]) -> Prepared:
    files = Files.of(context)
    if isinstance(spec, G2pTestSet):
        words = [(language, _pairs(files, spec.file, language)) for language in spec.languages]
    else:
        words = [
            (parts["low"], [pair_of(parts["low"], word) for word in _words(files, filled(spec.file, parts))])
            for parts in spec.parts()
        ]
    grouped = [(Segment(*pair, []), language) for language, pairs in words for pair in pairs[: spec.limit]]
    return Prepared([segment for segment, _ in grouped], groups=[language for _, language in grouped])


def _pairs(files: Files, path: str, language: str) -> list[Pair]:
    name = filled(path, {"language": language})
    return [pair_of(language, line) for line in read_words(files, name, PRONUNCIATIONS)]


def _words(files: Files, name: str) -> list[WordLine]:
    return list(read_words(files, name, INFLECTIONS))


# Made-up words for a language with few words: data hallucination (Anastasopoulos and Neubig 2019).
#
# At least `MIN_STEM` characters in a row that a lemma and its form share count as a stem. Each character of
# the stem is replaced with probability 1/2 by a random one, the same in both; the tags stay. If a stem has
# more than `MAX_WHOLE` characters, its first and last are kept, as in the code of the paper's authors. Their
# code samples an alignment of the whole corpus, and takes characters also from the development words; here
# lemma and form are aligned by edit distance, and characters come from the training words.


MIN_STEM, MAX_WHOLE = 3, 5  # characters
MAX_DRAWS = 100  # tries per word


def hallucinate(words: Sequence[WordLine], count: int, seed: int, language: str) -> list[WordLine]:
    """Make up `count` words, in rounds over the words with a stem. Raise StepError if there is none.

    A made-up word that normalisation would change (a letter and a mark would become one character) is drawn
    again; after MAX_DRAWS draws the original word is used.
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
    """Yield each replaceable piece: its start in the lemma, its start in the form, its length."""
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
