"""Ratings as a CSV of Appraise, 12 fields without a header (`appraise` has the layout).

A line a rating: TGT of systems, BAD of bad references, CHK of repeats. Documents go by their own names and
segments by their numbers of the test set, not DOCUMENT#SYSTEM with a rater's numbers: so they come back.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.formats.appraise import HEADERS, MISSING, MTURK_HEADER, PART, PRACTICE, milliseconds
from creamtea.human.formats.code_units import CodeUnits
from creamtea.human.formats.content import AnswerContent, Content
from creamtea.human.formats.counted import WITH_CONTROLS, CountedScore, counted_scores
from creamtea.human.formats.elsewhere import FIRST_SEGMENT
from creamtea.human.formats.losses import APPRAISE
from creamtea.human.protocols import Protocol, find_protocol, usable_protocols
from creamtea.human.protocols.da import Da
from creamtea.human.protocols.spans import MarksErrors, Span, spans_of
from creamtea.new_folder import write_texts
from creamtea.store.item_kinds import ItemKind
from creamtea.wording import option

FILE = "scores.csv"
TYPES = {ItemKind.BAD_REFERENCE: "BAD", ItemKind.REPEAT: "CHK"}


def write_appraise(content: Content, path: Path) -> list[Path]:
    """Write the file into the folder. InputError for a protocol or a document that the format
    does not have."""
    if not find_protocol(content.protocol).reads_appraise:
        known = ", ".join(kind.name for kind in usable_protocols() if kind.reads_appraise)
        raise InputError(
            f"{option('format')} appraise: Appraise has no scores of {content.protocol}, only of {known}; "
            "export as csv or jsonl",
            about="format",
        )
    for document in sorted({item.document for item in content.items}):
        if PART in document or PRACTICE in document:
            raise InputError(
                f"document {document!r}: in Appraise {PART!r} ends the name of a document and {PRACTICE!r} "
                "marks practice; export as csv or jsonl"
            )
    rows = [_row(content, counted) for counted in counted_scores(content, WITH_CONTROLS)]
    if not rows:
        raise InputError(f"campaign {content.name!r} has no ratings that count: nothing to export")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    first = str(rows[0][0])
    if first in HEADERS or first.split()[0] == MTURK_HEADER or first.startswith("\ufeff"):
        writer.writerow([HEADERS[0], *[""] * (len(rows[0]) - 1)])  # else this rater is taken for a header
    writer.writerows(rows)
    return write_texts(path, {FILE: out.getvalue()})


def _row(content: Content, counted: CountedScore) -> list[Any]:
    item, score = counted.item, counted.score
    protocol = find_protocol(content.protocol, content.settings)
    errors = [_error(span, counted.output, protocol) for span in spans_of(score.payload)]
    return [
        counted.answer.rater,
        score.system,
        item.segment + FIRST_SEGMENT[APPRAISE],
        TYPES.get(ItemKind(item.kind), "TGT"),
        content.source_language,
        content.target_language,
        score.step if isinstance(protocol, Da) else 0,  # of MQM, the errors are the rating
        item.document,
        False,
        json.dumps(errors, ensure_ascii=False),
        *_times(counted.answer),
    ]


def _error(span: Span, output: str, protocol: Protocol) -> dict[str, Any]:
    """Places count as Appraise's page does; those of a text that nobody has are such already. `score`, which
    Appraise does not have, is what an error costs, where that is not usual."""
    places: tuple[int | str, int | str] = MISSING, MISSING
    if span.start is not None and span.end is not None and not span.in_source:
        counted = (
            CodeUnits(output, trimmed=True).units(span.start, span.end) if output else (span.start, span.end)
        )
        places = counted or places
    cost = protocol.written_cost(span) if isinstance(protocol, MarksErrors) else None
    return {
        "start_i": places[0],
        "end_i": places[1],
        "severity": span.severity,
        "error_type": span.category or None,
        **({} if cost is None else {"score": cost}),
    }


def _times(answer: AnswerContent) -> tuple[str, str]:
    """Start and end; the start is when the item was given if that tells how long the rater was on it, else so
    long before the end."""
    start, end = answer.assigned_at, answer.submitted_at or answer.assigned_at
    if milliseconds(start, end) != answer.active_ms:
        start = end - timedelta(milliseconds=answer.active_ms or 0)
    return f"{start.timestamp():.6f}", f"{end.timestamp():.6f}"
