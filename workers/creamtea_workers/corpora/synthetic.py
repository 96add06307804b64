"""Synthetic pairs with annotated idioms: grammar → source sentence → IBM-3 → target sentence.

Every split draws its source sentences from a stream of its own, named by seed and split, and its targets
from another. So a test set can have a corpus's source sentences drawn again, without their targets, and
leave them out: nothing in it was seen in training.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice

from creamtea.contract.step import StepContext
from creamtea.methods.corpora import SyntheticCorpus
from creamtea.methods.test_sets import SyntheticTestSet
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea_workers.corpora.files import FilteredCorpus, Pair
from creamtea_workers.corpora.ibm3 import Ibm3, Target
from creamtea_workers.corpora.language import Grammar, tables
from creamtea_workers.corpora.segments import Prepared, Segment


def prepare_corpus(spec: SyntheticCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    """What is made to measure needs no filter: no side is empty, no source comes twice."""
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
    assert isinstance(corpus, SyntheticCorpus)  # its check has seen to it
    return Prepared(unseen_segments(spec, corpus))


def training_and_dev(
    corpus: SyntheticCorpus, progress: Callable[[int, int], None] | None = None
) -> tuple[list[Segment], list[Segment]]:
    """The segments of a corpus. Every source sentence is different; none of dev is in training."""
    train_units, dev_units = _corpus_sources(corpus)
    train = _translate(train_units, corpus.gamma, f"{corpus.seed} train", progress)
    return train, _translate(dev_units, corpus.gamma, f"{corpus.seed} dev")


def unseen_segments(test_set: SyntheticTestSet, corpus: SyntheticCorpus) -> list[Segment]:
    """Segments of the corpus's language and temperature whose sources are in neither its training nor its
    development set (nor twice in the test set)."""
    seen = {" ".join(units) for split in _corpus_sources(corpus) for units in split}
    units = list(islice(_unseen(f"{test_set.seed} test", test_set.idiom_rate, seen), test_set.lines))
    return _translate(units, corpus.gamma, f"{test_set.seed} test")


def _corpus_sources(corpus: SyntheticCorpus) -> tuple[list[list[str]], list[list[str]]]:
    seen: set[str] = set()
    train = list(islice(_unseen(f"{corpus.seed} train", corpus.idiom_rate, seen), corpus.train))
    dev = list(islice(_unseen(f"{corpus.seed} dev", corpus.idiom_rate, seen), corpus.dev))
    return train, dev


def _unseen(stream: str, idiom_rate: float, seen: set[str]) -> Iterator[list[str]]:
    """Source sentences (`Grammar.sentence`) that are not in `seen`, which grows by each."""
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
