"""What a practice item teaches: which answers were expected, and which of the rater's are right."""

from __future__ import annotations

from collections.abc import Mapping

from creamtea.human.protocols import ScoredAnswer
from creamtea.human.protocols.expected import ExpectedSpan, as_expected, found
from creamtea.human.protocols.spans import spans_of
from creamtea.human.rating.model import Guidance
from creamtea.human.rating.page import OwnPage
from creamtea.store.item_kinds import ItemKind


def guidance_of(page: OwnPage, answers: Mapping[int, ScoredAnswer]) -> Guidance | None:
    """Of a tutorial item, which is on a page of its own; None of others. `answers` by system."""
    guidance = page.lead.guidance
    if guidance is None or page.lead.kind != ItemKind.TUTORIAL:
        return None
    told = Guidance([], [], guidance["explanation"], [], [], [])
    for group in page.first.order:
        system, answer = str(group[0]), answers[group[0]]
        steps, expected = guidance["steps"].get(system), guidance.get("spans", {}).get(system)
        told.accepted.append(None if steps is None else (steps[0], steps[1]))
        told.right.append(steps is None or steps[0] <= answer.step <= steps[1])
        spans = [] if expected is None else spans_of(answer.payload)
        hits = found([ExpectedSpan.model_validate(span) for span in expected or ()], spans)
        told.spans.append(expected)
        told.found.append(hits)
        told.marked.append(expected is None or as_expected(expected, spans))
    return told
