"""Proposals: errors marked before a rater begins, which the rater keeps, changes, deletes or adds to.

The method is ESA with AI (Zouhar et al. 2024, arXiv 2406.12419). Proposals come from a metric of the study
whose scorer finds errors (docs/scorers.md), or from a file in JSON Lines with one object per output of the
test set:

    {"system": "a", "segment": 1, "spans": [{"start": 3, "end": 6, "severity": "minor"}]}

Segments count from 1, and spans are as in answers (`protocols.spans`). The item stores its proposals, and an
answer stores, with each error that came from a proposal, the proposal's number (`Span.proposed`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.document.document import read_lines
from creamtea.document.values import Strict
from creamtea.error_spans import MAX_SPANS, SPANS_FILE
from creamtea.errors import InputError, wrong
from creamtea.human.making.settings import ProposedBy
from creamtea.human.making.texts import Line, check_names, metric_names, succeeded_node
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import MarksErrors, Span
from creamtea.human.record import ItemContent
from creamtea.store.queries import find_study, study_nodes
from creamtea.store.tables import StepFile, StepRow, StoredSpan, StudyRow
from creamtea.wording import key_name

FIELD = "protocol.proposals_from"
OUTCOMES = ("kept", "changed", "deleted", "added")


@dataclass(frozen=True)
class Proposal:
    """The errors that are proposed for one output."""

    place: str  # for messages: "file.jsonl, line 3", or the metric
    system: str
    segment: int  # of the test set, from 0
    spans: tuple[Span, ...]


# ---------------------------------------------------------------- from a file


class ProposalLine(Strict):
    system: Annotated[str, Field(min_length=1)]
    segment: Annotated[int, Field(ge=1, le=10**9)]  # of the test set, from 1
    spans: Annotated[list[Span], Field(max_length=MAX_SPANS)]


def read_proposals(path: Path) -> list[Proposal]:
    """Read the proposals of a file. InputError with file and line for an invalid one."""
    proposals = []
    for place, line in read_lines(path, ProposalLine, "protocol.proposals"):
        if any(span.proposed is not None or span.in_source for span in line.spans):
            raise InputError(
                f"{place}: a proposed error has neither `proposed` nor `in_source`: leave them out"
            )
        proposals.append(Proposal(place, line.system, line.segment - 1, tuple(line.spans)))
    if not proposals:
        raise InputError(
            f"{path.name}: no proposals in it: leave protocol.proposals out, or give another file"
        )
    return proposals


# ---------------------------------------------------------------- from a metric


def metrics_with_errors(session: Session, study: StudyRow) -> list[str]:
    """Return the metrics whose scorer has found errors in the study's outputs, sorted."""
    nodes = study_nodes(session, study.id, "score")
    of_nodes = StepFile.step_key.in_({node.key for node in nodes})
    has_errors = set(session.scalars(select(StepFile.step_key).where(StepFile.name == SPANS_FILE, of_nodes)))
    return sorted({str(node.labels.get("metric")) for node in nodes if node.key in has_errors})


def proposals_of_metric(
    session: Session,
    read: Callable[[str], bytes],
    study: str | int,
    test_set: str,
    systems: Sequence[str],
    metric: str,
) -> tuple[list[Proposal], ProposedBy]:
    """Read the stored errors of each system's outputs, and the scorer that found them.

    `read` returns the content of an artefact by its digest. InputError for a metric that the study does not
    have, or whose scorer finds no errors.
    """
    asked = f"{key_name(FIELD)}: {metric}"
    row = find_study(session, study)
    check_names(session, row, test_set, systems)
    known = metric_names(session, row)
    if metric not in known:
        has = ", ".join(known) or "none"
        raise InputError(f"{asked}: study {row.name!r} has no such metric; it has {has}", about=FIELD)
    nodes = study_nodes(session, row.id, "score")
    proposals: list[Proposal] = []
    scorers: dict[str, ProposedBy] = {}
    for system in systems:
        what = f"values of {metric!r} on {test_set!r}"
        key = succeeded_node(nodes, row, what, system=system, test_set=test_set, metric=metric).key
        file = session.get(StepFile, (key, SPANS_FILE))
        if file is None:
            raise InputError(
                f"{asked}: its scorer gave no `spans` with the scores of {system}: docs/scorers.md "
                "says how it can; then give it another `version`, and run the study again",
                about=FIELD,
            )
        for line in filter(None, read(file.digest).split(b"\n")):
            found = json.loads(line)
            place = f"{metric} of {system}, segment {found['index'] + 1}"
            spans = tuple(Span.model_validate(span) for span in found["spans"])
            proposals.append(Proposal(place, system, found["index"], spans))
        params = session.get_one(StepRow, key).params
        spec, pins = params["metric"], params.get("scorer") or {}
        scorers[system] = ProposedBy(
            metric=metric,
            scorer=spec.get("scorer", spec["kind"]),
            model=spec.get("model"),
            version=pins.get("version", ""),
            digest=pins.get("digest", ""),
        )
    first, *others = scorers.values()
    if any(other != first for other in others):
        raise InputError(
            f"{asked}: the systems were scored by different versions: run the study again", about=FIELD
        )
    return proposals, first


# ---------------------------------------------------------------- into items


def check_systems(proposals: Sequence[Proposal], systems: Sequence[str]) -> None:
    """Raise InputError with file and line for a system that the campaign does not have."""
    for proposal in proposals:
        if proposal.system not in systems:
            only = f"the campaign has no system {proposal.system!r}, only {', '.join(systems)}"
            raise InputError(f"{proposal.place}: {only}: leave the line out")


def add_proposals(
    pages: Iterable[Iterable[ItemContent]],
    proposals: Sequence[Proposal],
    protocol: Protocol,
    systems: Sequence[str],
    lines: Sequence[Line],
) -> list[list[ItemContent]]:
    """Return the pages with each item's proposals: by system, a list of spans.

    Equal outputs of a segment get the proposals of the first system that has some. A spoilt output gets none,
    because its errors are unknown. InputError with file and line for an unknown system or segment and an
    invalid error.
    """
    if not isinstance(protocol, MarksErrors):
        raise wrong("protocol.proposals", f"is for marked errors, and {protocol.name} has none: leave it out")
    known: dict[tuple[int, str], list[StoredSpan]] = {}  # segment, text → spans
    outputs = {line.index: line.outputs for line in lines}
    seen: dict[tuple[int, str], Proposal] = {}
    check_systems(proposals, systems)
    for proposal in sorted(proposals, key=lambda proposal: systems.index(proposal.system)):
        if proposal.segment not in outputs:
            missing = f"there is no segment {proposal.segment + 1}: the test set has {len(outputs)}"
            raise InputError(f"{proposal.place}: {missing}")
        text = outputs[proposal.segment][systems.index(proposal.system)]
        spans = [span.model_dump(mode="json", exclude_defaults=True) for span in proposal.spans]
        try:
            protocol.read_errors({"spans": spans}, text)
            if text == "" and any(span.start is not None for span in proposal.spans):
                raise ValueError("the output is empty")
        except ValueError as error:
            raise InputError(f"{proposal.place}: {error}") from None
        first = seen.setdefault((proposal.segment, proposal.system), proposal)
        if first is not proposal:
            raise InputError(f"{proposal.place}: this output has proposals already ({first.place})")
        known[proposal.segment, text] = known.get((proposal.segment, text)) or spans

    def spans_by_system(item: ItemContent) -> dict[str, list[StoredSpan]]:
        texts = zip(item.systems, item.outputs, strict=True)
        keys = ((system, (item.segment, text)) for system, text in texts)
        return {system: known[key] for system, key in keys if key in known}

    return [[replace(item, proposals=spans_by_system(item) or None) for item in page] for page in pages]


# ---------------------------------------------------------------- in answers


def outcomes(proposed: Sequence[StoredSpan], spans: Sequence[Span]) -> Counter[str]:
    """Count the OUTCOMES of an output's proposals in a rater's answer.

    A changed proposal has another severity or category; a moved proposal counts as deleted and added.
    """
    by_proposal = {span.proposed: span for span in spans if span.proposed is not None}
    counts: Counter[str] = Counter(added=sum(span.proposed is None for span in spans))
    for number, proposal in enumerate(proposed):
        span = by_proposal.get(number)
        if span is None:
            counts["deleted"] += 1
        else:
            same = span == Span.model_validate({**proposal, "proposed": number})
            counts["kept" if same else "changed"] += 1
    return counts


def check_proposed(answer: Any, proposed: Sequence[StoredSpan]) -> None:
    """Raise ValueError for an error that names an unknown proposal or has a cost, which no rater sets.

    The protocol has checked everything else in the answer.
    """
    spans = answer.get("spans") if isinstance(answer, dict) else None
    for span in spans if isinstance(spans, list) else ():
        number = span.get("proposed") if isinstance(span, dict) else None
        if isinstance(number, int) and number >= len(proposed):
            raise ValueError(f"the output has no proposal {number}")
        if isinstance(span, dict) and span.get("cost") is not None:
            raise ValueError("what an error costs follows from the weights of the campaign")
