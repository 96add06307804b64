"""Protocols in which raters mark the errors of an output: ESA and MQM.

The marked errors are an answer's payload. Positions are characters of the output, the last one included, as
Appraise and Pearmut export them. An omission has no place in the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, model_validator

from creamtea.document.mistakes import mistakes_of_pydantic
from creamtea.document.values import Strict
from creamtea.human.protocols.base import Protocol, ScoredAnswer
from creamtea.human.protocols.da import Da
from creamtea.human.scale import Scale

Severity = Literal["undecided", "neutral", "minor", "major", "critical"]
Position = Annotated[int, Field(ge=0, le=10**6)]
TENTHS = 10


class Span(Strict):
    """A marked error; an omission without `start` and `end`."""

    start: Position | None = None
    end: Position | None = None  # of the last character
    in_source: bool = False  # the place is in the source: an omission, say
    severity: Severity
    category: Annotated[list[str], Field(max_length=5)] = Field(default_factory=list)  # from wide to narrow

    @model_validator(mode="after")
    def _check(self) -> Span:
        if (self.start is None) != (self.end is None):
            raise ValueError("has a start without an end, or the other way")
        if self.start is not None and self.end is not None and self.start > self.end:
            raise ValueError("ends before it begins")
        return self


class MarkedErrors(Strict):
    """The payload. `score`: of ESA, 0 to 100; MQM's follows from the errors."""

    score: Annotated[int, Field(ge=0, le=100)] | None = None
    spans: Annotated[list[Span], Field(max_length=1000)]

    def payload(self) -> dict[str, Any]:
        """In one way of writing."""
        return self.model_dump(mode="json", exclude_defaults=True)


def read_marked(answer: Any, output: str) -> MarkedErrors:
    """ValueError for what no rater can have marked on this output (any text if it is empty: not known)."""
    if not isinstance(answer, dict):
        raise ValueError(f"marked errors are an object with spans, not {answer!r}")
    try:
        marked = MarkedErrors.model_validate(answer)
    except ValidationError as error:
        mistakes = mistakes_of_pydantic(error.errors(), MarkedErrors, answer)
        raise ValueError("; ".join(dict.fromkeys(mistake.line() for mistake in mistakes))) from None
    if output:
        for span in marked.spans:
            if span.end is not None and not span.in_source and span.end >= len(output):
                raise ValueError(f"an error ends at character {span.end} of an output of {len(output)}")
    return marked


class Esa(Da):
    """Error span annotation (Kocmi et al. 2024, arXiv 2406.11580): errors first, then a score, 0 to 100."""

    name = "esa"
    title = "error span annotation"
    summary = "ESA: marked errors, then 0 to 100 (imported ratings)"
    marks_errors = True
    rated_here = False

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """`{"score": 0 to 100, "spans": […]}`."""
        marked = read_marked(answer, output)
        if marked.score is None:
            raise ValueError("error span annotation needs a score from 0 to 100")
        return ScoredAnswer(marked.score, marked.payload())


class Mqm(Protocol):
    """Multidimensional quality metrics (Freitag et al. 2021): the score is what the marked errors cost,
    negated as in mt-metrics-eval, so that higher is better."""

    name = "mqm"
    title = "multidimensional quality metrics"
    summary = "MQM: marked errors with category and severity (imported ratings)"
    welcome = "You will see one sentence and one translation of it at a time, and mark its errors."
    task = "Mark every error of the translation, with its category and severity."
    scale = Scale(1000 * TENTHS + 1, Fraction(-1000), Fraction(1, TENTHS), decimals=1)
    usual_delta = 0.5  # by convention: half a minor error a segment
    bin_width = 1.0
    ratio_note = "A ratio of penalties to penalties: the points say more."
    usual_selection = "all"
    marks_errors = True
    rated_here = False
    reads_appraise = True

    # tenths of a point (Freitag et al. 2021, Table 2)
    weights: ClassVar[Mapping[Severity, int]] = {
        "undecided": 0, "neutral": 0, "minor": 10, "major": 50, "critical": 50
    }  # fmt: skip
    punctuation: ClassVar[int] = 1
    non_translation: ClassVar[int] = 250

    def penalty(self, span: Span) -> int:
        """Tenths of a point.

        Punctuation costs a tenth where it is minor (Google's "Fluency/Punctuation"). Of the categories that
        Appraise has ("Linguistic conventions", "Punctuation") it does whatever its severity, as in the
        published segment scores of github.com/wmt-conference/ErrorSpanAnnotation.
        """
        names = [part.lower() for part in span.category]
        if any(name.startswith("non-translation") for name in names):
            return self.non_translation
        if any("punctuation" in name for name in names) and (
            span.severity == "minor" or names[0] == "linguistic conventions"
        ):
            return self.punctuation
        return self.weights[span.severity]

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """`{"spans": […]}`."""
        marked = read_marked(answer, output)
        if marked.score is not None:
            raise ValueError("the score of MQM follows from the errors")
        step = self.scale.steps - 1 - sum(self.penalty(span) for span in marked.spans)
        return ScoredAnswer(self.scale.check(step), marked.payload())


def spans_of(payload: Mapping[str, Any] | None) -> Sequence[Span]:
    """The errors of a stored answer; none of an answer without them."""
    return [] if payload is None else MarkedErrors.model_validate(payload).spans
