"""Words and their phones: SIGMORPHON 2020, task 1 (Peters and Martins 2021, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import G2pCorpus, filled
from creamtea.methods.test_sets import G2pTestSet
from creamtea.methods.texts import PRONUNCIATIONS, WordLine, WordLines
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.segments import Prepared, Segment


def read_words(files: Files, name: str, lines: WordLines) -> Iterator[WordLine]:
    """Read the words of a file.

    StepError names a line that is not as `lines` are, which the plan of a new study has found already.
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


def of_groups(words: Iterable[tuple[str, Sequence[Pair]]]) -> Prepared:
    """Make a test set of the words of each language."""
    grouped = [(Segment(*pair, []), language) for language, pairs in words for pair in pairs]
    return Prepared([segment for segment, _ in grouped], groups=[language for _, language in grouped])


def prepare_corpus(spec: G2pCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    files = Files.of(context)
    train = [pair for language in spec.languages for pair in _pairs(files, spec.train, language)]
    dev = {language: _pairs(files, spec.dev, language) for language in spec.languages}
    return FilteredCorpus(
        train,
        dev=[pair for pairs in dev.values() for pair in pairs],
        train_read=len(train),
        dev_read=sum(map(len, dev.values())),
        dropped={},
        dev_groups=[language for language, pairs in dev.items() for _ in pairs],
    )


def prepare_test_set(spec: G2pTestSet, context: StepContext[TestSetParams]) -> Prepared:
    files = Files.of(context)
    words = [(language, _pairs(files, spec.file, language)[: spec.limit]) for language in spec.languages]
    return of_groups(words)


def _pairs(files: Files, path: str, language: str) -> list[Pair]:
    name = filled(path, {"language": language})
    return [pair_of(language, line) for line in read_words(files, name, PRONUNCIATIONS)]
