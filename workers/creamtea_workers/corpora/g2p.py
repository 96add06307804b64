"""Words and their phones: SIGMORPHON 2020, task 1 (Peters and Martins 2021, section 4.1)."""

from __future__ import annotations

from creamtea.contract.step import StepContext
from creamtea.methods.corpora import G2pCorpus, filled
from creamtea.methods.test_sets import G2pTestSet
from creamtea.methods.word_lines import PRONUNCIATIONS
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.segments import Prepared
from creamtea_workers.corpora.words import of_groups, pair_of, read_words


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
