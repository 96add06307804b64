"""A campaign for Pearmut: its items to be rated there, and its ratings as Pearmut's answers (`layout`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.files import write_texts
from creamtea.human.formats.losses import written_category
from creamtea.human.formats.pearmut.layout import (
    ANSWERS,
    CAMPAIGN,
    OWN,
    PROTOCOLS,
    Units,
    choices,
)
from creamtea.human.formats.pearmut.media import TAGS, assets, own_media, shown_source
from creamtea.human.formats.record import WITH_CONTROLS, AnswerContent, Content, ItemContent
from creamtea.human.making.settings import settings_of
from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.direct_assessment import DaSqm
from creamtea.human.protocols.spans import ExpectedSpan, MarksErrors, Mqm, Span, spans_of
from creamtea.store.tables import ItemKind, shown_of
from creamtea.wording import option

NAMES = {**{ours: theirs for theirs, ours in PROTOCOLS.items()}, DaSqm.name: "DA"}
HTML = '" < and &'
NOBODY = "open"  # the user for documents that nobody rated
Document = tuple[ItemContent, ...]


def write_campaign(content: Content, path: Path) -> list[Path]:
    """Write campaign.json, for `pearmut add`, and annotations.jsonl into the folder.

    InputError for a protocol that Pearmut does not have, for names of systems that its page takes for numbers
    or HTML, and for texts that it would run as HTML.
    """
    _check(content)
    items, answers = tuple(map(_as_shown, content.items)), tuple(_with_costs(content))
    content = replace(content, items=items, answers=answers)
    files = assets(content)
    answered = _answered(content)
    documents = _documents(content)
    tasks = _tasks(content, documents, answered)
    if not tasks:
        raise InputError(f"campaign {content.name!r} has no items that tell of systems: nothing to export")
    practice: list[Document] = [(item,) for item in _of_kind(content, ItemKind.TUTORIAL)]
    campaign: dict[str, Any] = {
        "info": {"assignment": "task-based", "users": list(tasks), **_protocol_info(content), **files},
        "campaign_id": content.name.replace("/", "_"),  # the name of its files there
        "data": [[[_item(item, files) for item in document] for document in task] for task in tasks.values()],
        **(
            {"data_welcome": [[_item(item, files) for item in document] for document in practice]}
            if practice
            else {}
        ),
    }
    lines: list[dict[str, Any]] = []
    for user, task in tasks.items():
        for number, document in enumerate(practice):
            lines += _lines(user, f"welcome_{number}", document, answered, files)
        for number, document in enumerate(task):
            lines += _lines(user, number, document, answered, files)
    texts = {
        CAMPAIGN: json.dumps(campaign, ensure_ascii=False, indent=1) + "\n",
        ANSWERS: "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines),
    }
    return write_texts(path, texts)


def _check(content: Content) -> None:
    """InputError for what Pearmut would refuse, or show as something else."""
    if content.protocol not in NAMES:
        raise InputError(
            f"{option('format')} pearmut: Pearmut has no {content.protocol}, only {', '.join(NAMES)}; export "
            "as csv or jsonl",
            about="format",
        )
    for system in content.systems:
        if system.isdigit():
            raise InputError(
                f"system {system!r}: Pearmut refuses names of digits alone; export as csv or jsonl"
            )
        if set(system) & set('"<&'):
            raise InputError(
                f"system {system!r}: Pearmut's page reads {HTML} as HTML; export as csv or jsonl"
            )
    for item in content.items:
        for text in (item.source, *item.outputs, *item.references):
            if text.startswith(TAGS):
                raise InputError(
                    f"item {item.position + 1}: Pearmut's page would run {text[:30]!r} as HTML; export as "
                    "csv or jsonl"
                )


def _as_shown(item: ItemContent) -> ItemContent:
    """Without the outputs that a campaign that aims has passed over, where raters saw others."""
    shown = item.shown
    if shown in ([], list(item.systems)):
        return item
    proposals = item.proposals and {name: found for name, found in item.proposals.items() if name in shown}
    outputs = tuple(shown_of(item.outputs, item.output_drawn))
    return replace(item, systems=tuple(shown), outputs=outputs, output_drawn=None, proposals=proposals)


def _with_costs(content: Content) -> Iterator[AnswerContent]:
    """The answers, with the cost of each error where an import could not know it."""
    protocol = find_protocol(content.protocol, content.settings)
    for answer in content.answers:
        if not isinstance(protocol, MarksErrors):
            yield answer
            continue
        scores = []
        for score in answer.scores:
            spans = spans_of(score.payload)
            costs = [span.model_copy(update={"cost": protocol.written_cost(span)}) for span in spans]
            written = [span.model_dump(mode="json", exclude_defaults=True) for span in costs]
            scores.append(replace(score, payload={**(score.payload or {}), "spans": written}))
        yield replace(answer, scores=tuple(scores))


def _protocol_info(content: Content) -> dict[str, Any]:
    """The protocol, and of a campaign with marked errors what raters choose from."""
    info: dict[str, Any] = {"protocol": NAMES[content.protocol]}
    protocol = find_protocol(content.protocol, content.settings)
    if not isinstance(protocol, MarksErrors):
        return {**info, "special_tokens": []}
    info |= {"special_tokens": ["[missing]"], **choices(protocol)}
    if isinstance(protocol, Mqm):
        info["sliders"] = []  # the errors are the rating
    return info


def _answered(content: Content) -> dict[tuple[str, int], AnswerContent]:
    """Answers with scores by raters who are not excluded, by rater and item."""
    excluded = content.excluded
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


def _of_kind(content: Content, kind: ItemKind) -> list[ItemContent]:
    return sorted((item for item in content.items if item.kind == kind), key=lambda item: item.position)


def _tasks(
    content: Content, documents: Sequence[Document], answered: dict[tuple[str, int], AnswerContent]
) -> dict[str, list[Document]]:
    """User → documents: what each rated, and one more user for the rest. Without a rating, as many users as
    raters were asked for, each with all, and attention checks among them."""
    raters = dict.fromkeys(rater for rater, _ in answered)
    checks: list[Document] = [(item,) for item in _of_kind(content, ItemKind.ATTENTION)]
    if not raters and documents:
        every = settings_of(content.settings).attention_every
        mixed = _with_checks(documents, checks, every)
        return {f"rater-{number + 1}": mixed for number in range(content.ratings_per_item)}
    tasks = {
        rater: [
            document
            for document in (*documents, *checks)
            if any((rater, item.position) in answered for item in document)
        ]
        for rater in raters
    }
    rated = {position for _, position in answered}
    rest = [
        document for document in (*documents, *checks) if not any(item.position in rated for item in document)
    ]
    nobody = NOBODY
    while nobody in tasks:
        nobody += "-"
    return {**tasks, **({nobody: rest} if rest else {})}


def _with_checks(documents: Sequence[Document], checks: Sequence[Document], every: int) -> list[Document]:
    """One after every so many items, at the end of a document."""
    mixed: list[Document] = []
    waiting, rated = list(checks), 0
    for document in documents:
        mixed.append(document)
        rated += len(document)
        if waiting and rated >= every:
            mixed.append(waiting.pop(0))
            rated = 0
    return mixed


def _item(item: ItemContent, files: dict[str, Any], order: Sequence[str] | None = None) -> dict[str, Any]:
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    kind = ItemKind(item.kind)
    own = ("position", "segment", "document", "kind", "weight", "original", "degraded", "page", "guidance")
    lists = ("context", "references", "systems")
    return {
        "item_id": f"{item.document} {item.segment}" if not kind.is_written else f"{kind} {item.position}",
        "src": shown_source(item, files),
        **({"ref": item.references[0]} if item.references else {}),
        "tgt": {system: outputs[system] for system in order or item.systems},
        **({"validation": validation_of(item)} if kind.is_written else {}),
        **({"skippable": True} if kind is ItemKind.TUTORIAL else {}),
        **({"error_spans": _prefilled(item, outputs)} if item.proposals else {}),
        OWN: {name: getattr(item, name) for name in own}
        | {name: list(getattr(item, name)) for name in lists}
        | own_media(item),
    }


def _prefilled(item: ItemContent, outputs: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    return {
        system: [
            {**_error_span(Span.model_validate(span), Units(outputs[system])), OWN: {"proposed": number}}
            for number, span in enumerate(spans)
        ]
        for system, spans in (item.proposals or {}).items()
    }


def _lines(
    user: str,
    number: int | str,
    document: Document,
    answered: dict[tuple[str, int], AnswerContent],
    files: dict[str, Any],
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
                _item(item, files, [system for group in answer.order for system in group] if answer else None)
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
    return [
        _error_span(span, units) | ({} if span.proposed is None else {OWN: {"proposed": span.proposed}})
        for span in spans_of(payload)
    ]


def _error_span(span: Span, units: Units) -> dict[str, Any]:
    start, end = units.of_span(span)
    return {
        "start_i": start,
        "end_i": end,
        "category": written_category(span.category),
        "severity": span.severity,
        **({} if span.cost is None else {"score": span.cost}),
    }


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


def validation_of(item: ItemContent) -> dict[str, Any]:
    """By system, as Pearmut checks it. One comparison of an output at most, and no category of an error."""
    guidance = item.guidance or {}
    said = guidance.get("explanation") or guidance.get("warning")
    above = {better: item.systems[worse] for better, worse in reversed(guidance.get("above", []))}
    found: dict[str, dict[str, Any]] = {}
    for at, (system, output) in enumerate(zip(item.systems, item.outputs, strict=True)):
        steps, spans = guidance.get("steps", {}).get(str(at)), guidance.get("spans", {}).get(str(at))
        found[system] = {
            **({"warning": said} if said else {}),
            **({"score": steps} if steps else {}),
            **({"error_spans": [_written(span, Units(output)) for span in spans]} if spans else {}),
            **({"score_greaterthan": above[at]} if at in above else {}),
        }
    return found


def _written(stored: Mapping[str, Any], units: Units) -> dict[str, Any]:
    expected = ExpectedSpan.model_validate(stored)
    severity = {"severity": expected.severity} if expected.severity else {}
    if expected.start is None or expected.end is None:
        return {"start_i": len(units), "end_i": len(units), **severity}
    places = {"start_i": expected.start, "end_i": expected.end}
    return {
        name: [
            units.of_span(Span(start=low, end=low, severity="minor"))[0],
            units.of_span(Span(start=high, end=high, severity="minor"))[1],
        ]
        for name, (low, high) in places.items()
    } | severity
