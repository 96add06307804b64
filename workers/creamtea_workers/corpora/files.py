"""Parallel text of the user: aligned pairs, the filters with their counts, and annotated test sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from creamtea.errors import StepError
from creamtea.study.spec import FilesCorpus, FilesTestSet, Filters, TextPair
from creamtea_workers.corpora.text import UserFile, move_span, normalise

Filter = Literal["empty", "too_long", "ratio", "duplicate"]
FILTERS: tuple[Filter, ...] = ("empty", "too_long", "ratio", "duplicate")


class Pair(NamedTuple):
    source: str
    target: str


@dataclass(frozen=True)
class Files:
    """Where the user's files are: `params` of the step (their digests) and `locations` of the context."""

    params: Mapping[str, Any]
    locations: Mapping[str, str]

    def lines(self, name: str) -> list[str]:
        return UserFile.find(name, self.locations, self.params).lines()

    def raw_pairs(self, source: str, target: str) -> list[Pair]:
        """The aligned lines of two files as they are. StepError where the counts differ."""
        sources, targets = self.lines(source), self.lines(target)
        _same_length({source: sources, target: targets})
        return [Pair(*pair) for pair in zip(sources, targets, strict=True)]

    def pairs(self, text: TextPair) -> list[Pair]:
        """The same, normalised."""
        return [Pair(normalise(s), normalise(t)) for s, t in self.raw_pairs(text.source, text.target)]


def _same_length(files: Mapping[str, list[Any]]) -> None:
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
    dropped: Counter[str] = field(default_factory=Counter)  # of training, by filter


def read_corpus(corpus: FilesCorpus, files: Files) -> FilteredCorpus:
    """Training pairs through all filters; a development set loses only pairs with an empty side, so that
    its loss is of the text that the researcher chose. StepError if one of them ends up empty."""
    read = [pair for text in corpus.train for pair in files.pairs(text)]
    train, dropped = filter_pairs(read, corpus.filters)
    dev_read = files.pairs(corpus.dev)
    dev = [pair for pair in dev_read if pair.source and pair.target]
    if not train:
        counts = (
            ", ".join(f"{name} {dropped[name]}" for name in FILTERS if dropped[name]) or "nothing to drop"
        )
        names = ", ".join(text.source for text in corpus.train)
        raise StepError(f"no training pair is left of the {len(read)} in {names} (dropped: {counts})")
    if not dev:
        raise StepError(f"no development pair is left of the {len(dev_read)} in {corpus.dev.source}")
    return FilteredCorpus(train, dev, len(read), len(dev_read), dropped)


def filter_pairs(pairs: Iterable[Pair], filters: Filters) -> tuple[list[Pair], Counter[str]]:
    """The pairs that pass, and how many the others are, each counted under the first filter that drops it."""
    kept: list[Pair] = []
    seen: set[Pair] = set()
    dropped: Counter[str] = Counter()
    for pair in pairs:
        reason = drop_reason(pair, filters)
        if reason is None and filters.duplicates:
            if pair in seen:
                reason = "duplicate"
            seen.add(pair)
        if reason is None:
            kept.append(pair)
        else:
            dropped[reason] += 1
    return kept, dropped


def drop_reason(pair: Pair, filters: Filters) -> Filter | None:
    """Which filter, of those that look at one pair, drops this one."""
    shorter, longer = sorted((len(pair.source.split()), len(pair.target.split())))
    if shorter == 0:
        return "empty"
    if longer > filters.max_words:
        return "too_long"
    if longer >= filters.ratio_from and longer > filters.max_ratio * shorter:
        return "ratio"
    return None


# ---------------------------------------------------------------- test sets

Span = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]


class IdiomNote(BaseModel):
    """An idiom of a test sentence: its characters [from, to) in source and reference."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    source: Span
    target: Span


_NOTES = TypeAdapter(list[IdiomNote])


class Segment(NamedTuple):
    source: str
    reference: str
    idioms: list[dict[str, Any]]  # {name, source: [from, to], target: [from, to]}


def read_test_set(test_set: FilesTestSet, files: Files) -> list[Segment]:
    """Every line of a test set, empty ones too: nothing is filtered, so that an index is a line of the file.

    The offsets of idioms count the characters of the file's lines; the segments' count those of the
    normalised text. StepError for misaligned files and for annotation that does not fit the text.
    """
    raw = files.raw_pairs(test_set.source, test_set.target)
    if not raw:
        raise StepError(f"{test_set.source} has no line: a test set needs one at least")
    notes = [""] * len(raw)
    if test_set.idioms is not None:
        notes = files.lines(test_set.idioms)
        _same_length({test_set.source: raw, test_set.idioms: notes})
    segments = []
    for number, (pair, note) in enumerate(list(zip(raw, notes, strict=True))[: test_set.limit], start=1):
        idioms = _read_notes(note, pair, f"{test_set.idioms}, line {number}") if test_set.idioms else []
        segments.append(Segment(normalise(pair.source), normalise(pair.target), idioms))
    return segments


def _read_notes(line: str, pair: Pair, place: str) -> list[dict[str, Any]]:
    try:
        notes = _NOTES.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"[{part!r}]" for part in first["loc"])
        raise StepError(
            f"{place}: {where} {first['msg']}; a line is a JSON list of "
            '{"name": …, "source": [from, to], "target": [from, to]}'
        ) from error
    return [
        {
            "name": note.name,
            "source": _span_in(pair.source, note.source, f"{place}: source"),
            "target": _span_in(pair.target, note.target, f"{place}: target"),
        }
        for note in notes
    ]


def _span_in(line: str, span: list[int], place: str) -> list[int]:
    """The span in the normalised line; StepError unless it holds some text."""
    start, end = span
    if not start < end <= len(line) or not line[start:end].strip():
        raise StepError(f"{place} {span} is no span of text in a line of {len(line)} characters")
    return list(move_span(line, (start, end)))
