"""The segments of a test set, as `test_set` prepares them and as later steps read them with hypotheses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.words import is_blank
from creamtea_workers.corpora.subwords import TextModel, load_text_model
from creamtea_workers.corpora.text import read_jsonl


class Segment(NamedTuple):
    """A segment with plain texts (`creamtea.words.plain`). Readers normalise the texts themselves."""

    source: str
    reference: str
    # {name, source: [from, to], target: [from, to]}, [] if the text lacks it. Entries with the same name are
    # parts of one idiom; one of them may have `words: {source, target}` from a dictionary
    idioms: list[dict[str, Any]]


class IdiomWords(NamedTuple):
    """The words of an idiom without their sentence, and the words of its translation."""

    name: str
    source: str
    target: str


def idiom_words(segment: Mapping[str, Any]) -> list[IdiomWords]:
    """Return the words of each idiom in a line of segments.jsonl: its `words`, or the text of its spans."""
    words = []
    for name in dict.fromkeys(idiom["name"] for idiom in segment["idioms"]):
        parts = [idiom for idiom in segment["idioms"] if idiom["name"] == name]
        given = [part["words"] for part in parts if "words" in part]
        sides = given[0] if given else {side: _text_of(segment, parts, side) for side in ("source", "target")}
        if sides["source"] and sides["target"]:
            words.append(IdiomWords(name, sides["source"], sides["target"]))
    return words


def _text_of(segment: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], side: str) -> str:
    text = segment["source" if side == "source" else "reference"]
    spans = dict.fromkeys(tuple(part[side]) for part in parts if part[side])
    return " ".join(text[start:end] for start, end in spans)


@dataclass(frozen=True)
class Prepared:
    """The segments of a test set, and the counts specific to its kind."""

    segments: Sequence[Segment]  # at least one
    counts: dict[str, int] = field(default_factory=dict)
    groups: Sequence[str] = ()  # for words: the language of each
    more_references: Sequence[Sequence[str]] = ()  # references of each segment beyond the first; () if none
    detokenised: bool = False  # Moses' tokens and escapes were undone; score signatures say so


def encode_sources(subwords: TextModel, lines: Sequence[str]) -> list[list[int]]:
    """Encode each line. A blank line gets no subwords, so it is not translated."""
    encoded = subwords.encode_lines(lines)
    return [[] if is_blank(line) else ids for line, ids in zip(lines, encoded, strict=True)]


@dataclass(frozen=True)
class EncodedTestSet:
    """A test set in the subwords of a model."""

    subwords: TextModel
    segments: list[dict[str, Any]]  # lines of segments.jsonl: index, and the fields of `Segment`
    sources: list[list[int]]  # subwords of each, without </s>

    @classmethod
    def of_step(cls, context: StepContext[Any]) -> EncodedTestSet:
        segments = read_jsonl(context.input("test_set") / "segments.jsonl")
        subwords = load_text_model(context)
        return cls(subwords, segments, encode_sources(subwords, [row["source"] for row in segments]))

    @property
    def indices(self) -> list[int]:
        return [row["index"] for row in self.segments]


def read_hypotheses(decode: Path, indices: Sequence[int]) -> list[dict[str, Any]]:
    """Read a decode step's hypotheses.jsonl. Raise StepError unless its lines match `indices`."""
    rows = read_jsonl(decode / "hypotheses.jsonl")
    if [row["index"] for row in rows] != list(indices):
        raise StepError(f"{len(rows)} hypotheses do not line up with the test set's {len(indices)} segments")
    return rows
