"""Lemmas and inflected forms: SIGMORPHON 2019, task 1 (Peters and Martins 2021, section 4.2)."""

from __future__ import annotations

from creamtea.contract.step import StepContext
from creamtea.methods.corpora import InflectionCorpus, filled, pair_parts
from creamtea.methods.test_sets import InflectionTestSet
from creamtea.methods.word_lines import INFLECTIONS, WordLine
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.hallucination import hallucinate
from creamtea_workers.corpora.segments import Prepared
from creamtea_workers.corpora.words import of_groups, pair_of, read_words


def prepare_corpus(spec: InflectionCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    """The words of each pair of languages after each other; those of the second are there `repeat` times, and
    then what is made up of them."""
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
