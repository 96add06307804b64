"""Reading what the metrics compare: a test set's segments and a system's hypotheses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from creamtea.errors import StepError
from creamtea_workers.corpora.text import read_jsonl


@dataclass(frozen=True)
class Texts:
    """Aligned by position; `indices` are the segments' own numbers in their test set."""

    indices: list[int]
    sources: list[str]
    hypotheses: list[str]
    references: list[str]


def read_texts(test_set: Path, decode: Path) -> Texts:
    """The texts in two steps' output folders. Raises StepError where they do not belong together."""
    segments = read_jsonl(test_set / "segments.jsonl")
    hypotheses = read_jsonl(decode / "hypotheses.jsonl")
    expected = [row["index"] for row in segments]
    if not expected:
        raise StepError("the test set has no segments: nothing can be scored")
    if [row["index"] for row in hypotheses] != expected:
        raise StepError(
            f"{len(hypotheses)} hypotheses do not line up with the test set's {len(expected)} segments"
        )
    return Texts(
        expected,
        [row["source"] for row in segments],
        [row["text"] for row in hypotheses],
        [row["reference"] for row in segments],
    )


def read_segment_scores(score: Path) -> list[float]:
    """The values that a score step left in `segment_scores.jsonl`, in the test set's order."""
    return [float(row["value"]) for row in read_jsonl(score / "segment_scores.jsonl")]
