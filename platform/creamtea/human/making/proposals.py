"""Errors that are marked before a rater begins, by a metric say: ESA with AI (Zouhar et al. 2024, arXiv
2406.12419). The rater keeps, changes or deletes them and adds others.

A file in JSON Lines has one object for an output of the test set:

    {"system": "a", "segment": 1, "spans": [{"start": 3, "end": 6, "severity": "minor"}]}

Segments count from 1 and spans are as in answers (`protocols.spans`). What was proposed is kept with the
item, and in an answer the number of the proposal with each error that came from one (`Span.proposed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from creamtea.document.checked import read_lines
from creamtea.document.values import Strict
from creamtea.error_spans import MAX_SPANS
from creamtea.errors import InputError, wrong
from creamtea.human.making.new_items import NewItem
from creamtea.human.making.outputs import Line
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import MarksErrors, Span

OUTCOMES = ("kept", "changed", "deleted", "added")


class ProposalLine(Strict):
    system: Annotated[str, Field(min_length=1)]
    segment: Annotated[int, Field(ge=1, le=10**9)]  # of the test set, from 1
    spans: Annotated[list[Span], Field(max_length=MAX_SPANS)]


@dataclass(frozen=True)
class Proposal:
    """What a line of a file proposes for one output."""

    place: str  # "file.jsonl, line 3"
    system: str
    segment: int  # of the test set, from 0
    spans: tuple[Span, ...]


def read_proposals(path: Path) -> list[Proposal]:
    """The lines of a file. InputError with file and line for what they must not be."""
    return [_proposal(place, line) for place, line in read_lines(path, ProposalLine, "protocol.proposals")]


def _proposal(place: str, line: ProposalLine) -> Proposal:
    if any(span.proposed is not None or span.in_source for span in line.spans):
        raise InputError(f"{place}: a proposed error has neither `proposed` nor `in_source`: leave them out")
    return Proposal(place, line.system, line.segment - 1, tuple(line.spans))


def add_proposals(
    items: Iterable[NewItem],
    proposals: Sequence[Proposal],
    protocol: Protocol,
    systems: Sequence[str],
    lines: Sequence[Line],
) -> None:
    """Give the items their `proposals`: by a system's position (as text, for JSON) a list of spans.

    Equal outputs of a segment have those of the first system with some; a spoilt output has none, since
    nobody has looked at it. InputError with file and line for a system, a segment, a place or a category
    that is not there.
    """
    if not isinstance(protocol, MarksErrors):
        raise wrong("protocol.proposals", f"is for marked errors, and {protocol.name} has none: leave it out")
    known: dict[tuple[int, str], list[dict[str, Any]]] = {}  # segment, text → spans
    outputs = {line.index: line.outputs for line in lines}
    seen: dict[tuple[int, str], Proposal] = {}
    for proposal in sorted(proposals, key=lambda proposal: _position(proposal, systems)):
        text = _checked(proposal, protocol, systems, outputs)
        first = seen.setdefault((proposal.segment, proposal.system), proposal)
        if first is not proposal:
            raise InputError(f"{proposal.place}: this output has proposals already ({first.place})")
        spans = [span.model_dump(mode="json", exclude_defaults=True) for span in proposal.spans]
        known.setdefault((proposal.segment, text), spans)
    for item in items:
        found = {
            str(system): known[item.segment_index, text]
            for system, text in zip(item.systems, item.outputs, strict=True)
            if (item.segment_index, text) in known
        }
        if found:
            item.proposals = found


def _position(proposal: Proposal, systems: Sequence[str]) -> int:
    if proposal.system not in systems:
        raise InputError(
            f"{proposal.place}: the campaign has no system {proposal.system!r}, only "
            f"{', '.join(systems)}: leave the line out"
        )
    return systems.index(proposal.system)


def _checked(
    proposal: Proposal, protocol: MarksErrors, systems: Sequence[str], outputs: dict[int, tuple[str, ...]]
) -> str:
    """The output that the proposal is about."""
    if proposal.segment not in outputs:
        raise InputError(
            f"{proposal.place}: there is no segment {proposal.segment + 1}: the test set has {len(outputs)}"
        )
    text = outputs[proposal.segment][systems.index(proposal.system)]
    payload = {"spans": [span.model_dump(mode="json", exclude_defaults=True) for span in proposal.spans]}
    try:
        protocol.read_errors(payload, text)
        if text == "" and any(span.start is not None for span in proposal.spans):
            raise ValueError("the output is empty")
    except ValueError as error:
        raise InputError(f"{proposal.place}: {error}") from None
    return text


def outcomes(proposed: Sequence[dict[str, Any]], spans: Sequence[Span]) -> Counter[str]:
    """What became of the proposals of an output in a rater's answer, by OUTCOMES. A changed one has another
    severity or category; one at another place is a deleted and an added one."""
    came_from = {span.proposed: span for span in spans if span.proposed is not None}
    found: Counter[str] = Counter(added=sum(span.proposed is None for span in spans))
    for number, proposal in enumerate(proposed):
        span = came_from.get(number)
        if span is None:
            found["deleted"] += 1
        else:
            found["kept" if span == Span.model_validate({**proposal, "proposed": number}) else "changed"] += 1
    return found


def check_proposed(answer: Any, proposed: Sequence[Any]) -> None:
    """ValueError for an answer (which its protocol has checked) with an error from a proposal that its
    output does not have, or with a cost, which no rater sets."""
    spans = answer.get("spans") if isinstance(answer, dict) else None
    for span in spans if isinstance(spans, list) else ():
        number = span.get("proposed") if isinstance(span, dict) else None
        if isinstance(number, int) and number >= len(proposed):
            raise ValueError(f"the output has no proposal {number}")
        if isinstance(span, dict) and span.get("cost") is not None:
            raise ValueError("what an error costs follows from the weights of the campaign")
