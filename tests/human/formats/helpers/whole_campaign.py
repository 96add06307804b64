"""A campaign with each part that the table of losses names."""

import dataclasses
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import media_files as samples

from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.taxonomy import GOOGLE
from creamtea.human.record import AnswerContent, Content, ItemContent, RaterContent, ScoreContent

START = datetime(2026, 3, 1, 9, 30, 0, 123456, tzinfo=UTC)
LINK = ["Design", "Links", "Link/cross-reference"]
SPANS = [
    {"start": 0, "end": 1, "severity": "minor", "category": LINK, "proposed": 0},
    {"start": 0, "end": 0, "in_source": True, "severity": "major"},
    {"severity": "major", "cost": 0.5},
    {"severity": "minor", "special_mark": "instructions fault"},
]


def answer(item: int, rater: str, revisions: int, systems: tuple[str, ...], **fields: Any) -> AnswerContent:
    scored = find_protocol("mqm").read_answer({"spans": SPANS}, "")
    return AnswerContent(
        item=item,
        rater=rater,
        order=(systems,),
        assigned_at=START,
        submitted_at=START + timedelta(seconds=9) if revisions else None,
        scores=tuple(
            ScoreContent(system=system, revision=number, at=START, document_step=4, **vars(scored))
            for number in range(1, revisions + 1)
            for system in systems
        ),
        **fields,
    )


PICTURE = samples.png()
MEDIA = {"digest": hashlib.sha256(PICTURE).hexdigest(), "type": "image/png", "description": "eine Tasse"}
SIZES = {MEDIA["digest"]: 3}


def content(**fields: Any) -> Content:
    """A closed campaign with these fields."""
    usual = {"name": "drawn", "test_set": "test", "source_language": "en", "target_language": "de"}
    moments = dict.fromkeys(("created_at", "launched_at", "closed_at"), START)
    return Content(**{**usual, "ratings_per_item": 1, **moments, **fields})


def everything() -> Content:
    """A campaign with each part that the table names."""

    def item(position: int, kind: str = "rated", **fields: Any) -> ItemContent:
        values = {"segment": 7, "document": "doc 1", "source": "Quelle", "systems": ("A", "B")}
        return ItemContent(position=position, kind=kind, **{**values, "outputs": ("text", "text"), **fields})

    marked = {"A": [{"severity": "minor"}]}
    beside = {"context": ("davor",), "references": ("das da", "dies"), "proposals": marked}
    beside["media"] = (MEDIA, {"system": "A", **MEDIA})
    block = {"systems": ["A", "B"], "chances": [[0.5, 0.2], [0.2, 0.5]]}
    items = (
        item(0, weight=2.5, drawn=True, **beside),
        item(1, kind="random", page=1, outputs=("\n\ntext", "\n\ntext")),
        item(2, kind="repeat", original=0),
        item(3, kind="tutorial"),
        item(4, segment=8, outputs=("", ""), block=block),
        item(5, segment=9),
    )
    both = ("A", "B")
    answers = (
        answer(0, "ann", 2, both, comment="so?", active_ms=5, warned=1),
        answer(1, "ann", 1, both),
        answer(2, "ann", 1, both),
        answer(4, "ann", 1, both),
        answer(0, "out", 1, both),
        dataclasses.replace(answer(5, "ann", 0, both), skipped_at=START, skip_reason="no"),
    )
    answers = (dataclasses.replace(answers[0], order=(("A",), ("B",))), *answers[1:])
    planned = {"wmt": "crowd", "baseline": "B", "taxonomy": GOOGLE.model_dump(mode="json")}
    planned |= {"domains": {"doc 1": "news", "": "chat"}, "first_segment": 0, "references": ["B"]}
    return content(
        name="all",
        protocol="mqm",
        systems=both,
        instructions="# Rate",
        registered={"digest": "abc"},
        settings={**planned, "consent": "yes"},
        raters=(
            RaterContent(pseudonym="ann", created_at=START, consented_at=START),
            RaterContent(pseudonym="new", created_at=START),
            RaterContent(pseudonym="out", created_at=START, excluded_at=START),
        ),
        items=items,
        answers=answers,
    )
