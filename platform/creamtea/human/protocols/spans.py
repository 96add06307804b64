"""Protocols in which raters mark the errors of an output: ESA, contrastive ESA and MQM.

The marked errors are an answer's payload. The campaign's taxonomy has their names and costs. Items with known
answers have expected errors: ranges for their start and end, their severity and category.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, ValidationError, model_validator

from creamtea.document.mistakes import Mistake, mistakes_in_line, mistakes_of_pydantic
from creamtea.document.values import Strict
from creamtea.error_spans import MAX_SPANS, ErrorSpan, Position, Severity
from creamtea.errors import InputError
from creamtea.human.protocols.base import MAX_OUTPUTS, MIN_SYSTEMS, Protocol, Scale, ScoredAnswer, exact
from creamtea.human.protocols.scores import Da, DaSqm
from creamtea.human.protocols.taxonomy import ESA, GOOGLE, TENTHS, Taxonomy, usual_tenths
from creamtea.store.tables import Payload, StoredSpan
from creamtea.wording import counted

MAX_DECIMALS = 6  # of an MQM score; further ones are rounded


class Span(ErrorSpan):
    """An error that a rater marked."""

    in_source: bool = False  # the place is in the source: an omission, say
    proposed: Position | None = None  # number of the item's proposal that it came from
    cost: Annotated[float, Field(ge=0)] | None = None  # points, if an imported file has them


class MarkedErrors(Strict):
    """The payload. `score`: in ESA, 0 to 100; in MQM it follows from the errors.

    `begun`: in a draft, the rater has removed all marks but has not yet said that there are no errors.
    """

    score: Annotated[int, Field(ge=0, le=100)] | None = None
    spans: Annotated[list[Span], Field(max_length=MAX_SPANS)]
    begun: bool = False

    @model_validator(mode="after")
    def _check(self) -> MarkedErrors:
        proposed = [span.proposed for span in self.spans if span.proposed is not None]
        if len(set(proposed)) < len(proposed):
            raise ValueError("has two errors from one proposal")
        return self

    def payload(self) -> Payload:
        """Return the errors in their stored form, without default values."""
        return self.model_dump(mode="json", exclude_defaults=True)


def read_marked(answer: Any, output: str) -> MarkedErrors:
    """Read marked errors; ValueError for errors that cannot be marked in this output.

    An empty output means that the text is unknown: any place is then possible.
    """
    if not isinstance(answer, dict):
        raise ValueError(f"marked errors are an object with spans, not {answer!r}")
    try:
        marked = MarkedErrors.model_validate(answer)
    except ValidationError as error:
        found = mistakes_of_pydantic(error.errors(), MarkedErrors, answer)
        raise ValueError("; ".join(dict.fromkeys(map(_in_words, found)))) from None
    if output:
        for span in marked.spans:
            if span.end is not None and not span.in_source and span.end >= len(output):
                raise ValueError(f"an error ends at character {span.end} of an output of {len(output)}")
    return marked


def _in_words(mistake: Mistake) -> str:
    """Say which error is wrong by its number, from 1: only creamtea's own files have the key `spans`."""
    match mistake.path:
        case ("spans", int(number), *rest):
            return f"error {number + 1}: {replace(mistake, path=tuple(rest)).line()}"
    return mistake.line()


class MarksErrors(Protocol):
    """The common base of protocols with marked errors.

    `taxonomy` is the campaign's; None for imported ratings, whose errors keep their names.
    """

    marks_errors = True
    takes_scales = False
    widget = "spans"
    scored: ClassVar[bool] = False  # whether raters give a score beside the errors
    overlap: ClassVar[bool] = False  # whether one character can be in two errors
    usual_taxonomy: ClassVar[Taxonomy] = ESA
    taxonomy: Taxonomy | None = None

    def with_settings(self, settings: Mapping[str, Any]) -> Self:
        stored = settings.get("taxonomy")
        if stored is None:
            return self
        bound = copy.copy(self)
        try:
            bound.taxonomy = Taxonomy.model_validate(stored)
        except ValidationError as error:
            mistakes = mistakes_in_line(error, Taxonomy, stored)
            raise InputError(f"the taxonomy of the campaign: {mistakes}") from None
        return bound

    def read_errors(self, answer: Any, output: str) -> MarkedErrors:
        """Read the errors of a complete answer. ValueError if taxonomy or protocol do not allow them."""
        marked = read_marked(answer, output)
        if marked.begun:
            raise ValueError("say that there are no errors, or mark them")
        if self.taxonomy is not None:
            self.check_spans(marked.spans)
            at_most = self.taxonomy.at_most
            if at_most is not None and len(marked.spans) > at_most:
                raise ValueError(f"at most {at_most} errors can be marked, not {len(marked.spans)}")
        return marked

    def check_spans(self, spans: Sequence[Span]) -> None:
        """Raise ValueError for errors outside the taxonomy, or errors that overlap but must not."""
        taxonomy = self.taxonomy or self.usual_taxonomy
        for span in spans:
            taxonomy.check(span.severity, span.category, span.special_mark)
        if not self.overlap:
            places = sorted((span.start, span.end) for span in spans if span.start is not None)
            for (_, end), (start, _) in pairwise(places):
                if end is not None and start is not None and start <= end:
                    raise ValueError(f"two errors share character {start}: here errors do not overlap")

    def written_cost(self, span: Span) -> float | None:
        """Return an error's cost [points] if an export must write it; None if an import computes the same."""
        return span.cost

    def words_of(self, answer: ScoredAnswer) -> str:
        score = f"{self.scale.label(answer.step)}, " if self.scored else ""
        return score + counted(len(spans_of(answer.payload)), "error")

    def check_draft(self, answer: Any, output: str) -> None:
        """Allow that severities, categories and the score are missing."""
        read_marked(answer, output)

    def page_data(self) -> dict[str, Any]:
        taxonomy = self.taxonomy or self.usual_taxonomy
        return {
            **super().page_data(),
            "marking": {
                "severities": [level.name for level in taxonomy.severities],
                "categories": [category.model_dump(mode="json") for category in taxonomy.categories],
                "special_marks": taxonomy.special_marks,
                "at_most": taxonomy.at_most,
                "scored": self.scored,
                "overlap": self.overlap,
            },
        }


class Esa(MarksErrors, Da):
    """Error span annotation (Kocmi et al. 2024, arXiv 2406.11580): errors first, then a score, 0 to 100."""

    name = "esa"
    title = "error span annotation"
    summary = "ESA: one output, its errors marked, then 0 to 100"
    welcome = (
        "You will see a sentence and a translation of it, mark the errors of the translation, and then give "
        "it a score from 0 to 100."
    )
    task = (
        "Mark the errors: minor where the meaning is kept, major where it is changed or lost. Then say how "
        "good the translation is, from 0 to 100."
    )
    labelled_points = DaSqm.labelled_points
    minutes_per_output = 0.75
    scored = True

    def usual_deviation(self) -> float:
        return 27.0  # pooled over the 78 pairs of WMT 2023's ESA campaign (en-de, one rating per segment)

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """`{"score": 0 to 100, "spans": […]}`."""
        marked = self.read_errors(answer, output)
        if marked.score is None:
            raise ValueError("error span annotation needs a score from 0 to 100")
        return ScoredAnswer(marked.score, marked.payload())


class ContrastiveEsa(Esa):
    """ESA of all outputs of a segment side by side (WMT 2026)."""

    name = "cesa"
    title = "contrastive error span annotation"
    summary = "contrastive ESA: 2 to 8 outputs at once, errors marked, 0 to 100 each"
    welcome = (
        "You will see a sentence and several translations of it, mark the errors of each, and give each a "
        "score from 0 to 100."
    )
    task = (
        "Mark the errors of each translation: minor where the meaning is kept, major where it is changed or "
        "lost. Then say how good each is, from 0 to 100."
    )
    labelled_points = ()
    min_outputs, max_outputs = MIN_SYSTEMS, MAX_OUTPUTS
    page_steps = 25
    page_help = "25 points down or up"
    reads_appraise = False


class Mqm(MarksErrors, Protocol):
    """Multidimensional quality metrics (Freitag et al. 2021): the score is the negated cost of the errors.

    Negation makes higher scores better, as in mt-metrics-eval.
    """

    name = "mqm"
    title = "multidimensional quality metrics"
    summary = "MQM: one output, its errors marked with category and severity"
    welcome = "You will see a sentence and a translation of it, and mark the errors of the translation."
    task = "Mark every error of the translation, with its category and severity."
    scale = Scale(1000 * TENTHS + 1, Fraction(-1000), Fraction(1, TENTHS), decimals=1)
    usual_delta = 0.5  # by convention: half a minor error per segment
    bin_width = 1.0
    ratio_note = "Penalties have no % of the baseline: no score is above 0."
    usual_selection = "all"
    minutes_per_output = 1.0
    overlap = True
    usual_taxonomy = GOOGLE
    reads_appraise = True

    def usual_deviation(self) -> float:
        return 5.5  # 4.6 over the pairs of the TED talks (zh-en), 6.5 over the pairs of WMT 2023 (en-de)

    def far_apart(self) -> float:
        """Return half of the maximum cost of an output's errors (of five errors if there is no limit).

        The scale does not help: it has 1,000 points, so that every sum of costs fits.
        """
        taxonomy = self.taxonomy or GOOGLE
        return (taxonomy.at_most or 5) * max(level.weight for level in taxonomy.severities) / 2

    def with_settings(self, settings: Mapping[str, Any]) -> Self:
        bound = super().with_settings(settings)
        if decimals := settings.get("decimals"):
            bound = copy.copy(bound)
            # a scale for this campaign only, whose errors cost hundredths, say
            bound.scale = Scale(1000 * 10**decimals + 1, Fraction(-1000), Fraction(1, 10**decimals), decimals)  # type: ignore[misc]
        return bound

    def penalty(self, span: Span) -> Fraction:
        """Return an error's cost [points] by the campaign's taxonomy, or else by the usual weights."""
        tenths = usual_tenths if self.taxonomy is None else self.taxonomy.penalty
        return Fraction(tenths(span.severity, span.category), TENTHS)

    def cost(self, span: Span) -> Fraction:
        """Return an error's cost [points]: the cost in its file, or else its penalty."""
        return self.penalty(span) if span.cost is None else exact(repr(span.cost))

    def written_cost(self, span: Span) -> float | None:
        cost = self.cost(span)
        return None if cost == Mqm().penalty(span) else float(cost)

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """`{"spans": […]}`. A `cost` stays in the payload if it differs from the weights."""
        marked = self.read_errors(answer, output)
        if marked.score is not None:
            raise ValueError("the score of MQM follows from the errors")
        total = sum(map(self.cost, marked.spans), Fraction(0))
        if total > -self.scale.lowest:
            raise ValueError(f"the errors cost {float(total):,g} points; allowed: at most 1,000")
        steps = (-total - self.scale.lowest) / self.scale.size
        if steps.denominator != 1 and self.scale.decimals < MAX_DECIMALS:
            raise ValueError(
                f"the errors cost {float(total):g} points, and scores of the campaign have "
                f"{self.scale.decimals} decimals"
            )
        spans = [
            span.model_copy(update={"cost": None}) if self.cost(span) == self.penalty(span) else span
            for span in marked.spans
        ]
        return ScoredAnswer(round(steps), marked.model_copy(update={"spans": spans}).payload())

    def scale_data(self) -> None:
        return None


def spans_of(payload: Payload | None) -> Sequence[Span]:
    """Return the errors of a stored answer; empty for an answer without a payload."""
    return [] if payload is None else MarkedErrors.model_validate(payload).spans


# ---------------------------------------------------------------- expected errors


Range = Annotated[list[Position], Field(min_length=2, max_length=2)]  # the lowest and the highest


class ExpectedSpan(Strict):
    """A marked error whose start and end lie in ranges; without ranges, an omission or a special mark."""

    start: Range | None = None  # [characters] from 0: the lowest and the highest place of the first character
    end: Range | None = None  # [characters] the same for the last character
    severity: Severity | None = None  # none: any
    # a first name alone means all its kinds
    category: Annotated[list[str], Field(max_length=2)] = Field(default_factory=list)
    special_mark: str | None = None  # a name in the taxonomy

    def check(self, text: str, taxonomy: Taxonomy) -> None:
        """Raise ValueError if no rater can mark this error in this text with this taxonomy."""
        if (self.start is None) != (self.end is None):
            raise ValueError("an expected error has only one of start and end")
        if self.start is not None and self.end is not None:
            for which, (lowest, highest) in (("start", self.start), ("end", self.end)):
                if not lowest <= highest < len(text):
                    last = f"the text has characters 0 to {len(text) - 1}"
                    raise ValueError(f"{which}: [{lowest}, {highest}]: lowest first, and {last}")
            if self.start[0] > self.end[1]:
                raise ValueError(f"an expected error ends at {self.end[1]}, before it begins")
        if self.special_mark is not None:
            if self.start is not None:
                raise ValueError(
                    f"the special mark {self.special_mark!r} has no place: leave start and end out"
                )
            taxonomy.check_special_mark(self.special_mark)
        if self.severity is not None:
            taxonomy.check_severity(self.severity)
        if self.category and not taxonomy.has(self.category):
            raise ValueError(f"the campaign has no category {'/'.join(self.category)}")

    def fits(self, span: Span) -> bool:
        if (self.start is None) != (span.start is None) or span.in_source:
            return False
        if self.special_mark != span.special_mark:
            return False
        if self.start is not None and self.end is not None and span.start is not None:
            assert span.end is not None  # both or neither
            begins = self.start[0] <= span.start <= self.start[1]
            if not (begins and self.end[0] <= span.end <= self.end[1]):
                return False
        severe = self.severity in (None, span.severity)
        return severe and span.category[: len(self.category)] == self.category


def as_expected(expected: Sequence[StoredSpan], spans: Sequence[Span]) -> bool:
    """Return True if all expected errors are marked or, if none is expected, nothing is marked."""
    wanted = [ExpectedSpan.model_validate(span) for span in expected]
    return all(which_are_marked(wanted, spans)) if wanted else not spans


def which_are_marked(expected: Sequence[ExpectedSpan], spans: Sequence[Span]) -> list[bool]:
    """Return which expected errors are marked, each by its own mark, matching as many as possible."""
    matched: dict[int, int] = {}  # mark → expected error

    def match(error: int, tried: set[int]) -> bool:
        for mark, span in enumerate(spans):
            if mark in tried or not expected[error].fits(span):
                continue
            tried.add(mark)
            if mark not in matched or match(matched[mark], tried):
                matched[mark] = error
                return True
        return False

    for error in range(len(expected)):
        match(error, set())
    return [error in matched.values() for error in range(len(expected))]
