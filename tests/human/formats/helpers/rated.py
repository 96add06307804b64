"""A campaign in the database with every kind of item and answer that campaigns of a protocol have."""

import itertools
from datetime import timedelta
from typing import Any

from sqlalchemy import update
from table_rows import assignment_row
from whole_campaign import START, content

from creamtea.human.formats.storing import store_import
from creamtea.human.record import AnswerContent, ItemContent, RaterContent, ScoreContent
from creamtea.store.database import Database
from creamtea.store.tables import Item, Rater

SYSTEMS = ("plain", "beam 4", "=SUM(A1)")
NAMES = ("Ada Lovelace", "issuer|subject-1")  # who a rater is: never in a file
NAME = "bad"


def everything(database: Database, protocol: str) -> str:
    """Store the campaign, and return its name."""
    moments = (START + number * timedelta(seconds=7, microseconds=1) for number in itertools.count(1))
    single = protocol in ("da", "da-sqm")
    both = {SYSTEMS[0]: "ein Haus"} if single else {SYSTEMS[0]: "ein Haus", SYSTEMS[1]: "das Haus"}
    same = {SYSTEMS[0]: "x", SYSTEMS[2]: "x"} if single else both
    order = tuple((system,) for system in reversed(both))
    joint = (tuple(same),) if single else order
    first, second = ([0], [100]) if single else ([2, 0], [1, 1])

    def item(position: int, texts: dict[str, str] = both, **fields: Any) -> ItemContent:
        usual = {"segment": position, "source": f"source {position}"}
        shown = {"systems": tuple(texts), "outputs": tuple(texts.values())}
        return ItemContent(position=position, **{**usual, **shown, **fields})

    def answer(
        position: int, rater: str, order: Any, *revisions: list[int], skipped: str = "", comment: str = ""
    ) -> AnswerContent:
        """A step for each place of `order`, in each revision; none for a skipped item."""
        return AnswerContent(
            item=position,
            rater=rater,
            order=order,
            assigned_at=next(moments),
            submitted_at=next(moments) if revisions else None,
            skipped_at=next(moments) if skipped else None,
            skip_reason=skipped,
            comment=comment,
            active_ms=4321 if revisions else None,
            scores=tuple(
                ScoreContent(
                    system=system,
                    revision=number,
                    step=step,
                    at=at,
                    payload=None,
                    document_step=step if position == 0 else None,
                )
                for number, steps in enumerate(revisions, start=1)
                for at in [next(moments)]
                for group, step in zip(order, steps, strict=True)
                for system in group
            ),
        )

    guidance = {"steps": {"0": [1, 2]}, "explanation": 'Häuser\n"sind" keine Hunde'}
    of_first = {"original": 0, "segment": 0, "document": "a"}
    spoilt = {**both, SYSTEMS[0]: "ein Hund"}
    whole = content(
        name=NAME,
        protocol=protocol,
        systems=SYSTEMS,
        ratings_per_item=2,
        seed=2**40,
        instructions="# Rate\n*all* of it",
        settings={"select": "all", "random_share": 0.2},
        registered={"digest": "abc", "items": [1, 2]},
        raters=tuple(
            RaterContent(
                pseudonym=name,
                created_at=next(moments),
                consented_at=next(moments),
                excluded_at=next(moments) if name == "=1+1" else None,
            )
            for name in ("anna", "=1+1", "خالد")
        ),
        items=(
            item(0, document="a", weight=0.1 + 0.2, drawn=True, page=0, references=("eine Hütte", "=1")),
            item(1, same, document="b\tc", kind="random"),
            item(2, kind="repeat", **of_first),
            item(3, spoilt, kind="bad-reference", degraded=SYSTEMS[0], **of_first),
            item(4, kind="tutorial", segment=-1, guidance=guidance, context=("davor", "")),
        ),
        answers=(
            answer(0, "anna", order, first, second, comment='two\nlines, "quoted"\r\nand\ttabs'),
            answer(0, "=1+1", order, first, comment="-1"),
            answer(0, "خالد", order[::-1], second),
            answer(1, "anna", joint, [7] if single else second),
            answer(1, "خالد", joint, skipped="@no idea"),
            answer(2, "anna", order, second),
            answer(3, "anna", order, first),
            answer(4, "anna", order, first),
        ),
    )
    store_import(database, whole, "test", "here")
    with database.transaction() as session:
        session.execute(update(Rater).values(name=NAMES[0], subject=NAMES[1] + Rater.pseudonym))
        repeat = session.query(Item).filter(Item.kind == "repeat").one()
        khalid = session.query(Rater).filter(Rater.pseudonym == "خالد").one()
        draft = {"submitted_at": None, "draft": {"steps": [None]}}
        session.add(assignment_row(repeat.id, khalid.id, [[0]], **draft))  # open: not exported
    return NAME
