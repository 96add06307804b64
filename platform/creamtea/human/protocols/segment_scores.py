"""Scores of segments that were made elsewhere, on whatever scale: z-scores, means over raters, penalties."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from creamtea.human.protocols.base import PointsFormat, Protocol, ScoredAnswer
from creamtea.human.protocols.scale import Scale, exact


class SegmentScores(Protocol):
    """The payload has the number as it was written: `{"score": "-1.6666666666666667"}`. Its step is the
    nearest millionth, which is what the statistics use."""

    name = "scores"
    title = "scores of segments"
    summary = "scores: of segments, on any scale (imported)"
    welcome = "You will see one sentence and one translation of it at a time."
    task = "How good is the translation?"
    scale = Scale(2 * 10**9 + 1, Fraction(-1000), Fraction(1, 10**6), decimals=6)
    usual_delta = 1.0  # by convention; `delta` says what matters on the scale that the scores have
    ratio_note = "Where the scale has its zero is not known here: read the points."
    usual_selection = "all"
    rated_here = False

    def read_value(self, value: str) -> ScoredAnswer:
        """As it is written: a scale of millionths does not have each of them."""
        return self.read_answer({"score": value}, "")

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """`{"score": "a decimal number"}`, or a step; ValueError for others, and for those beyond 1000."""
        if type(answer) is int:
            return ScoredAnswer(self.scale.check(answer))
        if not isinstance(answer, dict) or set(answer) != {"score"} or not isinstance(answer["score"], str):
            raise ValueError(f"a score is an object with a number as text under score, not {answer!r}")
        return ScoredAnswer(self._step(exact(answer["score"])), dict(answer))

    def _step(self, score: Fraction) -> int:
        if not self.scale.lowest <= score <= self.scale.highest:
            raise ValueError(f"{float(score):g} is beyond the scores that can be kept, -1000 to 1000")
        return round((score - self.scale.lowest) / self.scale.size)

    def value(self, step: int, payload: Mapping[str, Any] | None) -> Fraction:
        return self.scale.value(step) if payload is None else exact(payload["score"])

    @property
    def points(self) -> PointsFormat:
        return PointsFormat(3)
