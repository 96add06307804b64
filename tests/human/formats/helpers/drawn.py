"""Campaigns with unusual texts and every part that a campaign has, for property tests."""

import dataclasses
import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import cache
from typing import Any

from hypothesis import strategies as st
from whole_campaign import MEDIA, START, content

from creamtea.human.protocols import find_protocol
from creamtea.human.record import (
    AnswerContent,
    Content,
    CountedScore,
    ItemContent,
    RaterContent,
    ScoreContent,
    counted_scores,
)
from creamtea.store.tables import ItemKind

HOSTILE = (
    "",
    "=x",
    "'=x",
    "مرحبا",
    "你好，世界",
    "\U0001f469\u200d\U0001f467 ok",
    '"quoted", and; so',
    '"in ""CSV"" quotes"',
    "<b>&amp;</b>",
    " blank ",
    "\ufeff",
)
LINES = ("two\nlines", "a\r\nb\rc", "\ttab\t", "<v>", "a</v>b", "\u2028")
DAY_MS = 24 * 3600 * 1000
PLACES = st.sampled_from(["output", "source", "nowhere", "special"])
SPECIAL_MARKS = st.sampled_from(["instructions fault", "verstümmelt 🦊"])
CATEGORIES = st.lists(st.sampled_from(["Accuracy", "Omission", "Link/cross-reference"]), max_size=2)
SEVERITIES = st.sampled_from(["neutral", "minor", "major", "critical"])
NUMBERS = st.sets(st.integers(0, 2**31 - 2), min_size=1, max_size=4)
KINDS = st.sampled_from(["rated", "rated", "random"])
WEIGHTS = st.sampled_from([1.0, 2.5])
CONTEXTS = st.sampled_from([(), ("before",)])
CONTROLS = st.sampled_from([None] * 3 + ["rated", "repeat", "bad-reference", "tutorial", "attention-check"])
REVISIONS = st.sampled_from([1, 1, 2])
COMMENTS = st.sampled_from(["", "why\nnot"])
ONE_OF_FOUR = st.sampled_from([True, False, False, False])
TIMES = st.none() | st.integers(1, DAY_MS)


# Strategies are made once: Hypothesis takes longer to make and check one than to draw from it.
@cache
def texts(more: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    plain = st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])
    return st.sampled_from((*HOSTILE, *more)) | st.text(plain, max_size=12)


@cache
def names(more: tuple[str, ...], allowed: Callable[[str], bool]) -> st.SearchStrategy[str]:
    return texts(more).filter(lambda name: bool(name.strip()) and allowed(name))


@cache
def some_names(
    more: tuple[str, ...], allowed: Callable[[str], bool], most: int
) -> st.SearchStrategy[list[str]]:
    return st.lists(names(more, allowed), min_size=1, max_size=most, unique=True)


@st.composite
def spans(draw: st.DrawFn, source: str, output: str) -> dict[str, Any]:
    """Somewhere in the output, in the source, or nowhere."""
    where, category = draw(PLACES), draw(CATEGORIES)
    span: dict[str, Any] = {"severity": draw(SEVERITIES)}
    if category:
        span["category"] = category
    text = source if where == "source" else output
    if where in ("output", "source") and text:
        start = draw(st.integers(0, len(text) - 1))
        span |= {"start": start, "end": draw(st.integers(start, len(text) - 1))}
        span |= {"in_source": True} if where == "source" else {}
    elif where == "special":
        span["special_mark"] = draw(SPECIAL_MARKS)
    return span


def any_name(name: str) -> bool:
    return True


@st.composite
def contents(
    draw: st.DrawFn, protocol: str, more: tuple[str, ...] = (), allowed: Callable[[str], bool] = any_name
) -> Content:
    """A campaign of one to three systems and raters; `more`: texts, `allowed`: names that a format holds."""

    def maybe(value: Any, usual: Any) -> Any:
        return value if draw(ONE_OF_FOUR) else usual

    systems, people, documents = (draw(some_names(more, allowed, most)) for most in (3, 3, 2))
    numbers = sorted(draw(NUMBERS))
    excluded = draw(st.sampled_from([None, *people[1:]]))
    raters = tuple(
        RaterContent(
            pseudonym=name,
            created_at=START,
            excluded_at=START if name == excluded else None,
            consented_at=maybe(START, None),
            forgotten_at=maybe(START, None),
        )
        for name in people
    )
    items: list[ItemContent] = []

    def add(**fields: Any) -> None:
        position = len(items)
        of_output = {"system": fields["systems"][-1], **MEDIA}
        beside = {
            "references": maybe(("das da",), ()),
            "media": maybe((MEDIA,), ()) + maybe((of_output,), ()),
        }
        beside |= {"page": maybe(position, None)}
        items.append(ItemContent(position=position, **beside, **fields))

    for at, segment in enumerate(numbers):
        source = draw(texts(more))
        document = documents[at * len(documents) // len(numbers)]
        together = find_protocol(protocol).max_outputs > 1
        for shown in [tuple(systems)] if together else [(system,) for system in systems]:
            rated: dict[str, Any] = {
                "segment": segment,
                "document": document,
                "source": source,
                "systems": shown,
                "outputs": tuple(draw(texts(more)) for _ in shown),
            }
            add(kind=draw(KINDS), weight=draw(WEIGHTS), context=draw(CONTEXTS), **rated)
            if find_protocol(protocol).marks_errors:
                items[-1] = dataclasses.replace(items[-1], proposals=draw(_proposed(items[-1])))
            again = draw(CONTROLS)
            if again is None:
                continue
            rated["original"] = len(items) - 1 if ItemKind(again).is_control else None
            rated["degraded"] = shown[0] if again == "bad-reference" else None
            if ItemKind(again).is_written:  # its outputs are of no system: the first ones stand in
                said: dict[str, Any] = {"steps": {}, "spans": {}, "above": [], "warning": "read"}
                if protocol == "mqm":  # whose scores follow from the errors
                    said["spans"] = {"0": [{"severity": "minor"}]}
                else:
                    said["steps"] = {"0": [1, 20]}
                own = {"systems": tuple(systems[: len(shown)]), "segment": -1, "document": ""}
                rated |= {**own, "guidance": said, "weight": 0.0}
            add(kind=again, **rated)
    answers = [
        draw(_answers(protocol, item, name))
        for item in items
        for name in people
        if draw(st.integers(0, 3)) > 0
    ]
    planned = {
        "wmt": draw(st.sampled_from([None, "usual", "crowd", "da-sqm", "esa"])),
        "baseline": maybe(systems[-1], None),
        "delta": maybe(3.0, None),
        "first_segment": maybe(0, None),
        "references": maybe([systems[0]], None),
        "domains": maybe({item.document: "news" for item in items if item.segment >= 0}, None),
        "consent": maybe("yes", None),
    }
    return content(
        protocol=protocol,
        systems=tuple(systems),
        ratings_per_item=maybe(2, 1),
        seed=maybe(7, 0),
        instructions=maybe("# Rate", ""),
        settings={name: value for name, value in planned.items() if value is not None},
        registered=maybe({"digest": "x"}, None),
        launched_at=maybe(START + timedelta(days=1), START),
        raters=raters,
        items=tuple(items),
        answers=tuple(answers),
    )


@st.composite
def _proposed(draw: st.DrawFn, item: ItemContent) -> dict[str, Any] | None:
    """One error of the first output."""
    span = draw(spans("", item.outputs[0]))
    return draw(st.sampled_from([None, {item.systems[0]: [{**span, "category": ["Accuracy", "Omission"]}]}]))


@st.composite
def _answers(draw: st.DrawFn, protocol: str, item: ItemContent, rater: str) -> AnswerContent:
    end = START + timedelta(microseconds=draw(st.integers(0, 10**12)))
    skipped = draw(st.integers(0, 9)) == 0
    revisions = 0 if skipped else draw(REVISIONS)
    return AnswerContent(
        item=item.position,
        rater=rater,
        order=tuple((system,) for system in draw(st.permutations(item.systems))),
        assigned_at=end - timedelta(microseconds=draw(st.integers(0, 10**9))),
        submitted_at=None if skipped else end,
        skipped_at=end if skipped else None,
        skip_reason=draw(st.sampled_from(["", "no idea"])) if skipped else "",
        comment=draw(COMMENTS),
        warned=2 if draw(ONE_OF_FOUR) else 0,
        active_ms=None if skipped else draw(TIMES),
        scores=tuple(
            ScoreContent(
                system=system,
                revision=number,
                at=end,
                document_step=4 if draw(ONE_OF_FOUR) else None,
                **draw(_scored(protocol, item, system)),
            )
            for number in range(1, revisions + 1)
            for system in item.systems
        ),
    )


@st.composite
def _scored(draw: st.DrawFn, protocol: str, item: ItemContent, system: str) -> dict[str, Any]:
    found, output = find_protocol(protocol), item.outputs[item.systems.index(system)]
    answer: Any = draw(st.integers(0, 100))
    if found.marks_errors:
        marked = draw(st.lists(spans(item.source, output), max_size=3))
        if marked and system in (item.proposals or {}):
            marked[0]["proposed"] = 0
        answer = {"spans": marked} if protocol == "mqm" else {"score": answer, "spans": marked}
    scored = found.read_answer(answer, output)
    return {"step": scored.step, "payload": scored.payload}


def facts_of(counted: CountedScore) -> dict[str, Any]:
    """All that a row of any format can hold of a rating."""
    item, answer, score = counted.item, counted.answer, counted.score
    return {
        "rater": answer.rater,
        "system": score.system,
        "segment": item.segment,
        "document": item.document,
        "kind": "rated" if ItemKind(item.kind).rates_systems else str(item.kind),
        "source": item.source,
        "output": counted.output,
        "step": score.step,
        "payload": score.payload,
        "active_ms": answer.active_ms,
        "submitted_at": answer.submitted_at,
        "assigned_at": answer.assigned_at,
        "comment": answer.comment,
        "order": answer.order,
        "revisions": [(each.revision, each.step, each.at) for each in answer.scores],
    }


def rows(content: Content, columns: tuple[str, ...], **counting: Any) -> list[dict[str, Any]]:
    """These facts of each rating that counts, sorted."""
    found = [facts_of(counted) for counted in counted_scores(content, **counting)]
    return sorted_rows({column: row[column] for column in columns} for row in found)


def sorted_rows(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """An order that neither positions nor the order of a payload's keys decide."""
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True, default=repr))


def with_payloads(content: Content, change: Any) -> Content:
    """Every marked error replaced by `change(span, item, output)`."""
    items = {item.position: item for item in content.items}

    def of(answer: AnswerContent, score: ScoreContent) -> ScoreContent:
        item = items[answer.item]
        output = item.outputs[item.systems.index(score.system)]
        marked = [change(dict(span), item, output) for span in (score.payload or {})["spans"]]
        return dataclasses.replace(score, payload={**(score.payload or {}), "spans": marked})

    answers = (
        dataclasses.replace(answer, scores=tuple(of(answer, score) for score in answer.scores))
        for answer in content.answers
    )
    return dataclasses.replace(content, answers=tuple(answers))
