"""Reading what the metrics compare: a test set's segments and a system's hypotheses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creamtea.errors import StepError


@dataclass(frozen=True)
class Texts:
    """Aligned by position; `indices` are the segments' own numbers in their test set."""

    indices: list[int]
    sources: list[str]
    hypotheses: list[str]
    references: list[str]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file. Lines end in `\\n` only: a text may hold other line breaks."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except FileNotFoundError:
        raise StepError(f"{path.name} is missing from the outputs of the step before") from None


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
