"""The interface of metrics, and the texts that they compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from unicodedata import is_normalized

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.corpora.segments import read_hypotheses
from creamtea_workers.corpora.subwords import BLANK
from creamtea_workers.corpora.text import read_jsonl

Array = NDArray[np.float64]


class Metric(Protocol):
    """A corpus metric as a function of summed statistics of the segments.

    The same sums serve the corpus value, the bootstrap and the paired test (`creamtea.stats.resampling`).
    Scores are on the scale of the metric's authors.
    """

    name: str  # the row's name in the report: "bleu", "chrf", "comet"
    note: str  # a warning to readers of the score, or ""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Versions, device and the like, for people; known once `statistics` has run."""

    def statistics(self, texts: Texts) -> Array:
        """Return sufficient statistics (n, F) of n segments."""

    def score(self, sums: Array) -> Array:
        """Compute corpus scores (...,) from summed statistics (..., F)."""

    def segment_scores(self, statistics: Array) -> Array:
        """Compute scores (n,) of single segments from their statistics (n, F)."""

    def signature(self) -> str:
        """Name every choice that the score depends on. Known once `statistics` has run."""


def mean_statistics(values: Sequence[float]) -> Array:
    """Return statistics (n, 2) whose summed ratio is the mean."""
    return np.column_stack([values, np.ones(len(values))])


def ratio(sums: Array) -> Array:
    """Divide the first column by the second: (..., 2) -> (...). NaN for a divisor of 0."""
    ratios = np.full(sums.shape[:-1], np.nan)
    return np.asarray(np.divide(sums[..., 0], sums[..., 1], out=ratios, where=sums[..., 1] > 0))


# ---------------------------------------------------------------- texts to compare


@dataclass(frozen=True)
class Texts:
    """Texts of the segments, aligned by position. `indices`: the segments' numbers in their test set."""

    indices: list[int]
    sources: list[str]
    hypotheses: list[str]
    references: list[str]
    groups: list[str] = field(default_factory=list)  # name of each segment's group, or ""
    more_references: list[list[str]] = field(default_factory=list)  # each as long as `references`
    treatment: str = ""  # how references were changed, for the signature

    @property
    def all_references(self) -> list[list[str]]:
        return [self.references, *self.more_references]


def read_texts(test_set: Path, decode: Path, without_reference: int | None = None) -> Texts:
    """Read the texts to compare from the output folders of two steps.

    `without_reference`: the number (from 1) of a reference to leave out. Raises StepError if the folders do
    not belong together.
    """
    segments = read_jsonl(test_set / "segments.jsonl")
    indices = [row["index"] for row in segments]
    references = references_of(segments)
    if without_reference is not None:
        del references[without_reference - 1]
    return Texts(
        indices=indices,
        sources=[row["source"] for row in segments],
        hypotheses=[row["text"] for row in read_hypotheses(decode, indices)],
        references=references[0],
        groups=groups_of(segments),
        more_references=references[1:],
        treatment=treatment_of(segments),
    )


def obstacles(texts: Texts) -> dict[str, int]:
    """Return reasons why texts that look equal differ as strings, each with its number of segments."""
    segments_by_reason: dict[str, int] = {}
    total = len(texts.hypotheses)
    marked = sum(BLANK in text for text in texts.hypotheses)
    if marked and not any(BLANK in text for text in texts.references):
        reason = (
            f"{marked:,} of {total:,} outputs have ▁ (U+2581), and no reference has: their subwords were not "
            "joined"
        )
        segments_by_reason[reason] = marked
    rows = zip(texts.hypotheses, *texts.all_references, strict=True)
    mixed = sum(len({is_normalized("NFC", text) for text in row}) > 1 for row in rows)
    if mixed:
        reason = (
            f"in {mixed:,} of {total:,} segments some texts are in Unicode's form NFC and others are not: an "
            "accented letter of one character does not match the same letter of two"
        )
        segments_by_reason[reason] = mixed
    return segments_by_reason


def references_of(segments: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the references in lines of segments.jsonl: for each reference, a list over the segments."""
    rows = [[row["reference"], *row.get("more_references", [])] for row in segments]
    return [list(column) for column in zip(*rows, strict=True)]


def treatment_of(segments: Sequence[Mapping[str, Any]]) -> str:
    """Return the signature's note on changed references; "" if references are as in the file."""
    return "|ref:detokenized" if any(row.get("detokenised") for row in segments) else ""


def groups_of(segments: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the groups of the lines of segments.jsonl."""
    return [row.get("group", "") for row in segments]


def read_segment_scores(score: Path) -> list[float]:
    """Read the scores that a score step wrote, in the test set's order."""
    return [float(row["value"]) for row in read_jsonl(score / "segment_scores.jsonl")]
