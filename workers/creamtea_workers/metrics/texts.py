"""Reading what the metrics compare: a test set's segments and a system's hypotheses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from creamtea_workers.corpora.segments import read_hypotheses
from creamtea_workers.corpora.text import read_jsonl


@dataclass(frozen=True)
class Texts:
    """Aligned by position; `indices` are the segments' own numbers in their test set."""

    indices: list[int]
    sources: list[str]
    hypotheses: list[str]
    references: list[str]
    groups: list[str] = field(default_factory=list)  # the name of each segment's, "" where there is none
    more_references: list[list[str]] = field(default_factory=list)  # each as long as `references`

    @property
    def all_references(self) -> list[list[str]]:
        return [self.references, *self.more_references]


def read_texts(test_set: Path, decode: Path, without_reference: int | None = None) -> Texts:
    """The texts in two steps' output folders, without the reference of this number (from 1). Raises StepError
    where they do not belong together."""
    segments = read_jsonl(test_set / "segments.jsonl")
    indices = [row["index"] for row in segments]
    references = references_of(segments)
    if without_reference is not None:
        del references[without_reference - 1]
    return Texts(
        indices,
        [row["source"] for row in segments],
        [row["text"] for row in read_hypotheses(decode, indices)],
        references[0],
        groups_of(segments),
        references[1:],
    )


def references_of(segments: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The references of the lines of segments.jsonl: of each number those of all segments."""
    rows = [[row["reference"], *row.get("more_references", [])] for row in segments]
    return [list(column) for column in zip(*rows, strict=True)]


def groups_of(segments: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of the lines of segments.jsonl."""
    return [row.get("group", "") for row in segments]


def read_segment_scores(score: Path) -> list[float]:
    """The values that a score step left in `segment_scores.jsonl`, in the test set's order."""
    return [float(row["value"]) for row in read_jsonl(score / "segment_scores.jsonl")]
