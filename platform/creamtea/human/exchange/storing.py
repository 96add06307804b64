"""`Content` into the database: one transaction, all of it or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from sqlalchemy import insert, null, select
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.human import audit
from creamtea.human.exchange.content import Content
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating

BATCH = 2000  # rows per INSERT


@dataclass(frozen=True)
class Imported:
    """How much was stored; `left_out` says in words what was not, and why."""

    campaign: str
    systems: int
    items: int
    raters: int
    ratings: int  # scores in every revision
    left_out: tuple[str, ...] = ()


def store(
    database: Database, content: Content, actor: str, origin: str, left_out: tuple[str, ...] = ()
) -> Imported:
    """Write a campaign that belongs to no study and is closed: it can be analysed, not rated.

    `actor` and `origin` (a file's name) go into the audit log. Raises InputError where a campaign of this
    name exists.
    """
    with database.transaction() as session:
        if session.scalar(select(Campaign.id).where(Campaign.name == content.name)) is not None:
            raise InputError(f"campaign {content.name!r} exists already: import under another name")
        now = database.now(session)
        campaign = Campaign(
            name=content.name,
            study_id=None,
            test_set=content.test_set,
            protocol=content.protocol,
            systems=list(content.systems),
            source_language=content.source_language,
            target_language=content.target_language,
            ratings_per_item=content.ratings_per_item,
            seed=content.seed,
            instructions=content.instructions,
            settings=content.settings,
            state="closed",
            registered=null() if content.registered is None else content.registered,
            created_at=content.created_at,
            launched_at=content.launched_at,
            closed_at=content.closed_at or now,
        )
        session.add(campaign)
        session.flush()
        ratings = _answers(
            session, content, _raters(session, content, campaign), _items(session, content, campaign)
        )
        imported = Imported(
            campaign=content.name,
            systems=len(content.systems),
            items=len(content.items),
            raters=len(content.raters),
            ratings=ratings,
            left_out=left_out,
        )
        detail = {"file": origin, "items": imported.items, "ratings": ratings, "left_out": list(left_out)}
        audit.record(session, campaign.id, actor, audit.IMPORTED, detail=detail)
    return imported


def _raters(session: Session, content: Content, campaign: Campaign) -> dict[str, int]:
    raters = [
        Rater(
            campaign_id=campaign.id,
            pseudonym=person.pseudonym,
            created_at=person.created_at,
            consented_at=person.consented_at,
            excluded_at=person.excluded_at,
            forgotten_at=person.forgotten_at,
        )
        for person in content.raters
    ]
    session.add_all(raters)
    session.flush()
    return {rater.pseudonym: rater.id for rater in raters}


def _items(session: Session, content: Content, campaign: Campaign) -> dict[int, int]:
    """Items first, then what controls were made from: an original may follow its control."""
    numbers = {system: number for number, system in enumerate(content.systems)}
    items = {
        shown.position: Item(
            campaign_id=campaign.id,
            position=shown.position,
            kind=shown.kind,
            segment_index=shown.segment,
            document=shown.document,
            source=shown.source,
            context=list(shown.context),
            systems=[numbers[system] for system in shown.systems],
            outputs=list(shown.outputs),
            weight=shown.weight,
            degraded=None if shown.degraded is None else numbers[shown.degraded],
            guidance=null() if shown.guidance is None else shown.guidance,
        )
        for shown in content.items
    }
    session.add_all(items.values())
    session.flush()
    for shown in content.items:
        if shown.original is not None:
            items[shown.position].original_id = items[shown.original].id
    session.flush()
    return {position: item.id for position, item in items.items()}


def _answers(session: Session, content: Content, raters: dict[str, int], items: dict[int, int]) -> int:
    """How many scores were stored."""
    numbers = {system: number for number, system in enumerate(content.systems)}
    assignments = [
        Assignment(
            item_id=items[answer.item],
            rater_id=raters[answer.rater],
            order=[[numbers[system] for system in group] for group in answer.order],
            lease_until=answer.submitted_at or answer.skipped_at or answer.assigned_at,
            created_at=answer.assigned_at,
            submitted_at=answer.submitted_at,
            skipped_at=answer.skipped_at,
            skip_reason=answer.skip_reason,
            comment=answer.comment,
            active_ms=answer.active_ms,
        )
        for answer in content.answers
    ]
    session.add_all(assignments)
    session.flush()
    scores = (
        {
            "assignment_id": assignment.id,
            "system": numbers[score.system],
            "revision": score.revision,
            "step": score.step,
            "payload": score.payload,
            "created_at": score.at,
        }
        for assignment, answer in zip(assignments, content.answers, strict=True)
        for score in answer.scores
    )
    stored = 0
    while batch := list(islice(scores, BATCH)):
        session.execute(insert(Rating), batch)
        stored += len(batch)
    return stored
