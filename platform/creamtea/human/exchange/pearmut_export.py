"""A campaign for Pearmut: its items to be rated there, and its ratings as Pearmut's answers (`pearmut`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.exchange.content import AnswerContent, Content, ItemContent
from creamtea.human.exchange.counted import WITH_CONTROLS
from creamtea.human.exchange.folder import make_empty_folder
from creamtea.human.exchange.pearmut import ANSWERS, CAMPAIGN, OWN, PROTOCOLS, Units
from creamtea.human.protocols.da_sqm import DaSqm
from creamtea.human.protocols.spans import Mqm, spans_of

NAMES = {**{ours: theirs for theirs, ours in PROTOCOLS.items()}, DaSqm.name: "DA"}
NOBODY = "open"  # the user for documents that nobody rated
Document = tuple[ItemContent, ...]


def write_pearmut(content: Content, path: Path) -> list[Path]:
    """Write campaign.json, for `pearmut add`, and annotations.jsonl into the folder, new or empty.

    InputError for a protocol that Pearmut does not have, and for systems called by digits alone.
    """
    if content.protocol not in NAMES:
        raise InputError(
            f"--format pearmut: Pearmut has no {content.protocol}, only {', '.join(NAMES)}; export as csv or "
            "jsonl"
        )
    for system in content.systems:
        if system.isdigit():
            raise InputError(
                f"system {system!r}: Pearmut refuses names of digits alone; export as csv or jsonl"
            )
    answered = _answered(content)
    tasks = _tasks(content, _documents(content), answered)
    if not tasks:
        raise InputError(f"campaign {content.name!r} has no items that tell of systems: nothing to export")
    campaign = {
        "info": {
            "assignment": "task-based",
            "protocol": NAMES[content.protocol],
            "users": list(tasks),
            **({"sliders": []} if content.protocol == Mqm.name else {}),  # the errors are the rating
        },
        "campaign_id": content.name,
        "data": [[[_item(item) for item in document] for document in task] for task in tasks.values()],
    }
    lines = [
        line
        for user, task in tasks.items()
        for number, document in enumerate(task)
        for line in _lines(user, number, document, answered)
    ]
    make_empty_folder(path)
    files = {
        CAMPAIGN: json.dumps(campaign, ensure_ascii=False, indent=1) + "\n",
        ANSWERS: "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines),
    }
    for name, text in files.items():
        (path / name).write_bytes(text.encode())
    return [path / name for name in files]


def _answered(content: Content) -> dict[tuple[str, int], AnswerContent]:
    """Answers with scores by raters who are not excluded, by rater and item."""
    excluded = {person.pseudonym for person in content.raters if person.excluded_at is not None}
    return {
        (answer.rater, answer.item): answer
        for answer in content.answers
        if answer.scores and answer.rater not in excluded
    }


def _documents(content: Content) -> list[Document]:
    """Segments of a document with the same systems go together, as on a page of Pearmut; controls and second
    items of a segment, and segments without a document, are documents of their own."""
    found: dict[tuple[Any, ...], list[ItemContent]] = defaultdict(list)
    for item in sorted(content.items, key=lambda item: (item.segment, item.position)):
        if item.kind not in WITH_CONTROLS:
            continue
        key: tuple[Any, ...] = (item.document, item.systems)
        taken = {other.segment for other in found.get(key, [])}
        if not item.document or item.segment in taken or item.kind != "rated":
            key = (item.position,)
        found[key].append(item)
    return [tuple(items) for items in found.values()]


def _tasks(
    content: Content, documents: Sequence[Document], answered: dict[tuple[str, int], AnswerContent]
) -> dict[str, list[Document]]:
    """User → documents: what each rated, and one more user for the rest. Without a rating, as many users as
    raters were asked for, each with all."""
    raters = dict.fromkeys(rater for rater, _ in answered)
    if not raters and documents:
        return {f"rater-{number + 1}": list(documents) for number in range(content.ratings_per_item)}
    tasks = {
        rater: [
            document for document in documents if any((rater, item.position) in answered for item in document)
        ]
        for rater in raters
    }
    rated = {position for _, position in answered}
    rest = [document for document in documents if not any(item.position in rated for item in document)]
    nobody = NOBODY
    while nobody in tasks:
        nobody += "-"
    return {**tasks, **({nobody: rest} if rest else {})}


def _item(item: ItemContent, order: Sequence[str] | None = None) -> dict[str, Any]:
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    own = ("position", "segment", "document", "kind", "weight", "original", "degraded", "page")
    return {
        "item_id": f"{item.document} {item.segment}",
        "src": item.source,
        "tgt": {system: outputs[system] for system in order or item.systems},
        OWN: {**{name: getattr(item, name) for name in own}, "context": list(item.context)},
    }


def _lines(
    user: str, number: int, document: Document, answered: dict[tuple[str, int], AnswerContent]
) -> list[dict[str, Any]]:
    """One line for each revision; a segment without one of that number has null there."""
    answers = [answered.get((user, item.position)) for item in document]
    revisions = {score.revision for answer in answers if answer for score in answer.scores}
    return [
        {
            "annotation": [
                _annotation(item, answer, revision) for item, answer in zip(document, answers, strict=True)
            ],
            "actions": _actions(answers, revision),
            "item": [
                _item(item, [system for group in answer.order for system in group] if answer else None)
                for item, answer in zip(document, answers, strict=True)
            ],
            "user_id": user,
            "item_i": number,
        }
        for revision in sorted(revisions)
    ]


def _annotation(item: ItemContent, answer: AnswerContent | None, revision: int) -> dict[str, Any] | None:
    scores = [] if answer is None else [score for score in answer.scores if score.revision == revision]
    if answer is None or not scores:
        return None
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    return {
        score.system: {
            "score": None if score.payload and "score" not in score.payload else score.step,
            "error_spans": _error_spans(score.payload, outputs[score.system]),
            "textfield": answer.comment if score is scores[0] and answer.comment else None,
        }
        for score in scores
    }


def _error_spans(payload: dict[str, Any] | None, output: str) -> list[dict[str, Any]]:
    units = Units(output)
    spans = []
    for span in spans_of(payload):
        start, end = units.units(*(None, None) if span.in_source else (span.start, span.end))
        category = "/".join(span.category) or None
        spans.append({"start_i": start, "end_i": end, "category": category, "severity": span.severity})
    return spans


def _actions(answers: Sequence[AnswerContent | None], revision: int) -> list[dict[str, Any]]:
    """The moment of each score, with what is known of the time before it."""
    scored = [
        (score.at.timestamp(), index, score, answer)
        for index, answer in enumerate(answers)
        for score in (answer.scores if answer else ())
        if score.revision == revision
    ]
    scored.sort(key=lambda one: one[:2])
    given = min(answer.assigned_at for answer in answers if answer and answer.scores)
    actions = [
        {
            "time": time,
            "action": "score",
            "index": index,
            "model": score.system,
            "value": score.step,
            OWN: {"assigned_at": answer.assigned_at.timestamp(), "active_ms": answer.active_ms},
        }
        for time, index, score, answer in scored
        if answer
    ]
    first, last = min(given.timestamp(), scored[0][0]), scored[-1][0]
    return [{"time": first, "action": "load"}, *actions, {"time": last, "action": "submit"}]
