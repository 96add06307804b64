"""Rated campaigns written straight into the tables, for each protocol."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from small_campaigns import make_campaign, new_item

from creamtea.human.protocols import find_protocol
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Rater, Rating

START = datetime(2026, 3, 1, 9, 30, 0, 123456, tzinfo=UTC)
SYSTEMS = ["plain", "beam 4", "=SUM(A1)"]
NAMES = ("Ada Lovelace", "issuer|subject-1")  # who a rater is: never in a file

_numbers = itertools.count(1)


@dataclass
class Rated:
    """A campaign to be filled item by item, answer by answer."""

    database: Database
    protocol: str
    name: str = ""
    systems: Sequence[str] = field(default_factory=lambda: list(SYSTEMS))
    study_id: int | None = None
    test_set: str = "test"
    moment: datetime = START
    settings: dict[str, Any] = field(default_factory=lambda: {"select": "all", "random_share": 0.2})

    def __post_init__(self) -> None:
        self.name = self.name or f"{self.protocol}-{next(_numbers)}"
        self.items: list[int] = []
        self.raters: dict[str, int] = {}
        row = {"study_id": self.study_id, "test_set": self.test_set, "systems": list(self.systems)}
        row |= {"seed": 2**40, "instructions": "# Rate\n*all* of it", "settings": self.settings}
        row |= {"registered": {"digest": "abc", "items": [1, 2]}}
        row |= {"created_at": self.moment, "launched_at": self.moment}
        self.id = make_campaign(self.database, 0, name=self.name, k=2, protocol=self.protocol, row=row)

    def later(self) -> datetime:
        self.moment += timedelta(seconds=7, microseconds=1)
        return self.moment

    def item(self, outputs: dict[int, str], **fields: Any) -> int:
        """The item's position; `outputs` by the position of the system."""
        position = len(self.items)
        if (original := fields.pop("original", None)) is not None:
            fields["original_id"] = self.items[original]
        texts = {"systems": list(outputs), "outputs": list(outputs.values())}
        with self.database.transaction() as session:
            self.items.append(new_item(session, self.id, position, **texts, **fields).id)
        return position

    def rater(self, pseudonym: str, excluded: bool = False) -> str:
        with self.database.transaction() as session:
            rater = Rater(
                campaign_id=self.id,
                pseudonym=pseudonym,
                name=NAMES[0],
                subject=f"{NAMES[1]}/{pseudonym}",
                created_at=self.later(),
                consented_at=self.later(),
                excluded_at=self.later() if excluded else None,
            )
            session.add(rater)
            session.flush()
            self.raters[pseudonym] = rater.id
        return pseudonym

    def answer(
        self,
        position: int,
        rater: str,
        order: list[list[int]],
        *revisions: list[int],
        comment: str = "",
        skipped: str | None = None,
        open_lease: bool = False,
    ) -> None:
        """A step for each place of `order`, in each revision; none for a skipped or an open item."""
        scale = find_protocol(self.protocol).scale
        with self.database.transaction() as session:
            given = self.later()
            assignment = Assignment(
                item_id=self.items[position],
                rater_id=self.raters[rater],
                order=order,
                lease_until=given + timedelta(hours=2),
                created_at=given,
                submitted_at=self.later() if revisions else None,
                skipped_at=None if skipped is None else self.later(),
                skip_reason=skipped or "",
                comment=comment,
                active_ms=4321 if revisions else None,
                draft={"steps": [None]} if open_lease else None,
            )
            session.add(assignment)
            session.flush()
            for revision, steps in enumerate(revisions, start=1):
                at = self.later()
                for group, step in zip(order, steps, strict=True):
                    session.add_all(
                        Rating(
                            assignment_id=assignment.id,
                            system=system,
                            revision=revision,
                            step=scale.check(step),
                            document_step=step if position == 0 else None,
                            created_at=at,
                        )
                        for system in group
                    )


def everything(database: Database, protocol: str, name: str = "") -> Rated:
    """Every kind of item and answer that a campaign of this protocol has."""
    rated = Rated(database, protocol, name)
    for pseudonym, excluded in (("anna", False), ("=1+1", True), ("خالد", False)):
        rated.rater(pseudonym, excluded)
    single = protocol in ("da", "da-sqm")
    texts = {0: "ein Haus"} if single else {0: "ein Haus", 1: "das Haus"}
    order = [[0]] if single else [[1], [0]]
    first, second = ([0], [100]) if single else ([2, 0], [1, 1])
    rated.item(texts, document="a", weight=0.1 + 0.2, drawn=True, page=0, references=["eine Hütte", "=1"])
    rated.item({0: "x", 2: "x"} if single else texts, document="b\tc", kind="random")
    rated.item(texts, kind="repeat", original=0, segment_index=0, document="a")
    spoilt = {0: "ein Hund"} if single else {0: "ein Hund", 1: "das Haus"}
    rated.item(spoilt, kind="bad-reference", original=0, degraded=0, segment_index=0, document="a")
    guidance = {"steps": {"0": [1, 2]}, "explanation": 'Häuser\n"sind" keine Hunde'}
    rated.item(texts, kind="tutorial", segment_index=-1, guidance=guidance, context=["davor", ""])
    rated.answer(0, "anna", order, first, second, comment='two\nlines, "quoted"\r\nand\ttabs')
    rated.answer(0, "=1+1", order, first, comment="-1")
    rated.answer(0, "خالد", order[::-1], second)
    if single:
        rated.answer(1, "anna", [[0, 2]], [7])
    else:
        rated.answer(1, "anna", order, second)
    rated.answer(1, "خالد", order if not single else [[0, 2]], skipped="@no idea")
    rated.answer(2, "anna", order, second)
    rated.answer(3, "anna", order, first)
    rated.answer(4, "anna", order, first)
    rated.answer(2, "خالد", order, open_lease=True)
    return rated
