"""What a rater has submitted, to be looked at and changed while the campaign runs."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from creamtea.human.assignment.locking import active_rater, campaign_of, own, protocol_of
from creamtea.human.assignment.model import Earlier, RatingRefused, Work, as_work
from creamtea.human.assignment.places import load_outlook
from creamtea.human.assignment.saving import newest_revision, stored_answers
from creamtea.store.database import Database
from creamtea.store.item_kinds import ItemKind
from creamtea.store.tables import Assignment, Item, Rating


def earlier(database: Database, rater_id: int) -> list[Earlier]:
    """The rater's submitted items, newest last; the tutorial's are not among them."""
    newest = (
        select(Rating.assignment_id, func.max(Rating.revision).label("revision"))
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .where(Assignment.rater_id == rater_id)
        .group_by(Rating.assignment_id)
        .subquery()
    )
    with database.session() as session:
        rows = session.execute(
            select(Assignment.id, Item.source, newest.c.revision)
            .join(Item, Item.id == Assignment.item_id)
            .join(newest, newest.c.assignment_id == Assignment.id)
            .where(
                Assignment.rater_id == rater_id,
                Assignment.submitted_at.is_not(None),
                Item.kind != ItemKind.TUTORIAL,
            )
            .order_by(Assignment.submitted_at, Assignment.id)
        )
        return [
            Earlier(assignment_id, number, source, revision)
            for number, (assignment_id, source, revision) in enumerate(rows, start=1)
        ]


def reopen(database: Database, rater_id: int, assignment_id: int) -> Work:
    """A submitted item again, to revise it: `draft` has the stored answers, or what was drafted since.

    RatingRefused for an item that is not submitted or not this rater's, and where campaign or rater take
    no part any more.
    """
    with database.session() as session:
        campaign = campaign_of(session, rater_id)
        active_rater(session, campaign, rater_id)
        assignment, item = own(session, rater_id, assignment_id)
        stored = stored_answers(session, assignment)
        if assignment.submitted_at is None or not stored:
            raise RatingRefused("this item is not saved yet")
        revision = newest_revision(stored)
        draft: dict[str, Any] = {
            "answers": [stored[revision][group[0]].answer for group in assignment.order],
            "comment": assignment.comment,
        }
        if assignment.draft is not None and assignment.draft.get("revision") == revision + 1:
            draft = assignment.draft
        outlook = load_outlook(session, campaign, rater_id, database.now(session))
    tutorial = item.kind == ItemKind.TUTORIAL
    done = outlook.done(tutorial=tutorial)
    left = len(outlook.tutorial) if tutorial else outlook.at_most
    return as_work(
        campaign,
        item,
        assignment.order,
        assignment_id=assignment.id,
        protocol=protocol_of(campaign),
        draft=draft,
        revision=revision + 1,
        done=done,
        total=done + left,
        seconds_left=None if tutorial else outlook.seconds_left(left),
    )
