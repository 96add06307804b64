"""A rating protocol in a package of its own: spans with a severity, and fluency, about one output at a time.

An answer is {"spans": [[start, end, severity], …], "fluency": 0 to 100}. Its score begins at the fluency;
each minor error takes 1 point of it and each major one 5, in tenths of a point from 0 to 100.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from creamtea.human.protocols import Protocol, Scale, ScoredAnswer

POINTS = {"minor": 1, "major": 5}


class ErrorSpans(Protocol):
    name = "error-spans"
    title = "error spans with fluency"
    summary = "error spans: one output, its errors and its fluency"
    welcome = "You will mark the errors of one translation at a time."
    task = "Mark the errors, then say how fluent the translation is."
    scale = Scale(1001, Fraction(0), Fraction(1, 10), decimals=1)
    usual_delta = 2.0
    ratio_note = "A ratio depends on how severities are weighed."
    usual_selection = "all"
    widget = "spans"
    scripts = (Path(__file__).with_name("spans.js"),)

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        if not isinstance(answer, dict) or set(answer) != {"spans", "fluency"}:
            raise ValueError("an answer has spans and fluency")
        fluency, spans = answer["fluency"], self._spans(answer["spans"], output)
        if type(fluency) is not int or not 0 <= fluency <= 100:
            raise ValueError(f"fluency is a whole number from 0 to 100, not {fluency!r}")
        points = max(0, fluency - sum(POINTS[severity] for _, _, severity in spans))
        return ScoredAnswer(10 * points, {"spans": spans, "fluency": fluency})

    def check_draft(self, answer: Any, output: str) -> None:
        """Spans may be there before the fluency."""
        self.read_answer({"fluency": 0} | answer if isinstance(answer, dict) else answer, output)

    def _spans(self, spans: Any, output: str) -> list[list[Any]]:
        if not isinstance(spans, list):
            raise ValueError("spans are a list")
        for span in spans:
            if not (isinstance(span, list) and len(span) == 3 and span[2] in POINTS):
                raise ValueError("a span is [start, end, minor or major]")
            start, end, _ = span
            if not (type(start) is type(end) is int and 0 <= start < end <= len(output)):
                raise ValueError(f"a span lies within the {len(output)} characters of the output")
        return spans
