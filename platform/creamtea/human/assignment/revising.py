"""What a rater has submitted, to be looked at and changed while the campaign runs."""

from __future__ import annotations

from sqlalchemy import func, select

from creamtea.human.assignment.drawing import as_work
from creamtea.human.assignment.locking import active_rater, campaign_of, own
from creamtea.human.assignment.model import Earlier, RatingRefused, Work
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
        draft = assignment.draft
        if draft is None or draft.get("revision") != revision + 1:
            answers = [stored[revision][group[0]].answer for group in assignment.order]
            draft = {"answers": answers, "comment": assignment.comment}
        outlook = load_outlook(session, campaign, rater_id, database.now(session))
    return as_work(campaign, assignment, item, outlook, draft=draft, revision=revision + 1)
