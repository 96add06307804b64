"""Parallel text of the user: aligned pairs, and the filters with their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import FilesCorpus
from creamtea.methods.planning import HeldOut
from creamtea.methods.test_sets import FilesTestSet
from creamtea.methods.texts import Filters, Languages, TextPair, Tokenized
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea_workers.corpora.moses import detokenise
from creamtea_workers.corpora.text import UserFile, normalise

Filter = Literal["empty", "too_long", "ratio", "held_out", "duplicate"]
Side = Literal["source", "target"]


class Pair(NamedTuple):
    source: str
    target: str


@dataclass(frozen=True)
class Files:
    """The user's files of a step: where they are on this machine, and what they held when it was planned."""

    digests: Mapping[str, str]
    languages: Languages
    locations: Mapping[str, str]

    @classmethod
    def of(cls, context: StepContext[CorpusParams] | StepContext[TestSetParams]) -> Files:
        return cls(context.params.digests, context.params.languages, context.locations)

    def lines(self, name: str) -> list[str]:
        return UserFile.find(name, self.locations, self.digests).lines()

    def text(self, name: str, side: Side, tokenized: Tokenized) -> list[str]:
        """The lines of a file on one side of the study's languages, tokens and escapes undone, not yet
        normalised."""
        lines = self.lines(name)
        if tokenized == "no":
            return lines
        language = self.languages.source if side == "source" else self.languages.target
        return [detokenise(line, language) for line in lines]

    def raw_pairs(self, text: TextPair | FilesTestSet) -> list[Pair]:
        """The aligned lines of two files, as `text` gives them. StepError where the counts differ."""
        sources = self.text(text.source, "source", text.tokenized)
        targets = self.text(text.target, "target", text.tokenized)
        same_length({text.source: sources, text.target: targets})
        return [Pair(*pair) for pair in zip(sources, targets, strict=True)]

    def pairs(self, text: TextPair) -> list[Pair]:
        """The same, normalised."""
        return [Pair(normalise(source), normalise(target)) for source, target in self.raw_pairs(text)]

    def sources_of(self, held_out: Sequence[HeldOut]) -> frozenset[str]:
        """The source sentences, normalised, of test sets that no training pair may hold."""
        return frozenset(
            normalise(line)
            for test_set in held_out
            for line in self.text(test_set.source, "source", test_set.tokenized)
        )


def same_length(files: Mapping[str, list[Any]]) -> None:
    """StepError unless the files, by their names, have the same number of lines."""
    if len({len(lines) for lines in files.values()}) > 1:
        counts = ", ".join(f"{name} has {len(lines)} lines" for name, lines in files.items())
        raise StepError(f"files that must be aligned line by line are not: {counts}")


# ---------------------------------------------------------------- training and development text


@dataclass
class FilteredCorpus:
    train: list[Pair]
    dev: list[Pair]
    train_read: int
    dev_read: int
    dropped: dict[str, int]  # of training, by reason
    train_added: int = 0  # how many of `train` were added by `repeat`
    dev_groups: list[str] = field(default_factory=list)  # of words: the language of each of `dev`


def prepare_corpus(spec: FilesCorpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    context.progress(0, 1, "reading and filtering")
    return read_corpus(spec, Files.of(context), context.params.held_out or [])


def read_corpus(corpus: FilesCorpus, files: Files, held_out: Sequence[HeldOut]) -> FilteredCorpus:
    """Training pairs through all filters, then repeated; a development set loses only pairs with an empty
    side, so that its loss is that of the text that the researcher chose. StepError if either ends up empty.

    Repetition comes last, and text by text: the filter of duplicates sees every pair of the files once, and
    what it keeps of a text is repeated `repeat` times. So train_read - dropped + train_added = len(train).
    """
    sieve, train, read, added = Sieve(corpus.filters, files.sources_of(held_out)), [], 0, 0
    for text in corpus.train:
        pairs = files.pairs(text)
        kept = [pair for pair in pairs if sieve.passes(pair)]
        train += kept * text.repeat
        read += len(pairs)
        added += len(kept) * (text.repeat - 1)
    dev_read = files.pairs(corpus.dev)
    dev = [pair for pair in dev_read if pair.source and pair.target]
    if not train:
        counts = ", ".join(f"{name} {count}" for name, count in sieve.dropped.items() if count)
        names = ", ".join(text.source for text in corpus.train)
        raise StepError(
            f"no training pair is left of the {read} in {names} (dropped: {counts or 'nothing to drop'})"
        )
    if not dev:
        raise StepError(f"no development pair is left of the {len(dev_read)} in {corpus.dev.source}")
    return FilteredCorpus(train, dev, read, len(dev_read), sieve.dropped, added)


class Sieve:
    """Applies the filters pair by pair; a dropped pair counts for the first filter that drops it."""

    def __init__(self, filters: Filters, held_out: frozenset[str] = frozenset()) -> None:
        self._filters, self._held_out = filters, held_out
        self._seen: set[Pair] = set()
        names: list[Filter] = ["empty", "too_long", "ratio"]
        names += ["held_out"] if filters.held_out else []
        self.dropped: dict[str, int] = dict.fromkeys([*names, "duplicate"], 0)

    def passes(self, pair: Pair) -> bool:
        reason = drop_reason(pair, self._filters)
        if reason is None and pair.source in self._held_out:
            reason = "held_out"
        if reason is None and self._filters.duplicates:
            reason = "duplicate" if pair in self._seen else None
            self._seen.add(pair)
        if reason is not None:
            self.dropped[reason] += 1
        return reason is None


def drop_reason(pair: Pair, filters: Filters) -> Filter | None:
    """The first of the filters of single pairs that drops this one; None if none does."""
    shorter, longer = sorted((len(pair.source.split()), len(pair.target.split())))
    if shorter == 0:
        return "empty"
    if longer > filters.max_words:
        return "too_long"
    if longer >= filters.ratio_from and longer > filters.max_ratio * shorter:
        return "ratio"
    return None
