"""The segments of a test set: as they are prepared, and as later steps read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from creamtea.contract.step import StepContext
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import read_jsonl


class Segment(NamedTuple):
    source: str
    reference: str
    idioms: list[dict[str, Any]]  # {name, source: [from, to], target: [from, to]}; one name is one idiom


@dataclass(frozen=True)
class Prepared:
    """The segments of a test set, and counts that only its kind has."""

    segments: Sequence[Segment]
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class EncodedTestSet:
    """A test set in the subwords of a model."""

    subwords: SubwordModel
    segments: list[dict[str, Any]]  # lines of segments.jsonl: index, and the fields of `Segment`
    sources: list[list[int]]  # subwords of each, without </s>

    @classmethod
    def of_step(cls, context: StepContext[Any]) -> EncodedTestSet:
        """From a step's inputs test_set and subwords."""
        segments = read_jsonl(context.input("test_set") / "segments.jsonl")
        subwords = SubwordModel.of_step(context)
        return cls(subwords, segments, subwords.encode_lines([row["source"] for row in segments]))

    @property
    def indices(self) -> list[int]:
        """The segments' numbers."""
        return [row["index"] for row in self.segments]
