"""What a rater has submitted, to be looked at and changed while the campaign runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from sqlalchemy import func, select

from creamtea.human.protocols import ScoredAnswer
from creamtea.human.rating.drawing import as_work
from creamtea.human.rating.locking import active_rater, campaign_of, lock_campaign, protocol_of
from creamtea.human.rating.model import Earlier, RatingRefused, Work
from creamtea.human.rating.page import own
from creamtea.human.rating.places import load_outlook
from creamtea.human.rating.saving import newest_revision, stored_answers
from creamtea.human.rating.whole import whole_of
from creamtea.store.database import Database
from creamtea.store.item_kinds import ItemKind
from creamtea.store.tables import Assignment, Item, Rating


def earlier(database: Database, rater_id: int) -> list[Earlier]:
    """The rater's submitted pages, newest last; the tutorial's are not among them."""
    newest = (
        select(Rating.assignment_id, func.max(Rating.revision).label("revision"))
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .where(Assignment.rater_id == rater_id)
        .group_by(Rating.assignment_id)
        .subquery()
    )
    with database.session() as session:
        protocol = protocol_of(campaign_of(session, rater_id))
        answers: dict[int, dict[int, ScoredAnswer]] = defaultdict(dict)  # by assignment and system
        for assignment_id, system, step, payload in session.execute(
            select(Rating.assignment_id, Rating.system, Rating.step, Rating.payload).join(
                newest,
                (newest.c.assignment_id == Rating.assignment_id) & (newest.c.revision == Rating.revision),
            )
        ):
            answers[assignment_id][system] = ScoredAnswer(step, payload)
        rows = session.execute(
            select(
                *(Assignment.id, Assignment.order, Item.source),
                *(newest.c.revision, Item.page, Item.position),
            )
            .join(Item, Item.id == Assignment.item_id)
            .join(newest, newest.c.assignment_id == Assignment.id)
            .where(
                Assignment.rater_id == rater_id,
                Assignment.submitted_at.is_not(None),
                Item.kind != ItemKind.TUTORIAL,
            )
            .order_by(Assignment.submitted_at, Item.position)
        ).all()
    pages: dict[int, Earlier] = {}  # by the position of their first item
    for number, (assignment_id, order, source, revision, page, position) in enumerate(rows, start=1):
        first = position if page is None else page
        given = protocol.in_words([answers[assignment_id][group[0]] for group in order])
        if (so_far := pages.get(first)) is not None:
            pages[first] = replace(so_far, items=so_far.items + 1, given=f"{so_far.given} | {given}")
        else:
            pages[first] = Earlier(assignment_id, number, source, revision, given)
    return list(pages.values())


def discard_draft(database: Database, rater_id: int, assignment_id: int) -> None:
    """Forget what was drafted since a page was submitted: the rater leaves it as it was.

    A page that is not submitted keeps its draft. RatingRefused for one that is not this rater's.
    """
    with database.transaction() as session:
        lock_campaign(session, rater_id)
        page = own(session, rater_id, assignment_id)
        newest = newest_revision(stored_answers(session, page))
        if newest == 0:
            return
        for assignment in page.assignments:
            if assignment.draft is not None and assignment.draft.get("revision", 0) > newest:
                assignment.draft = None


def reopen(database: Database, rater_id: int, assignment_id: int) -> Work:
    """A submitted page again, to revise it: `draft` has the stored answers, or what was drafted since.

    RatingRefused for a page that is not submitted or not this rater's, and where campaign or rater take
    no part any more.
    """
    with database.session() as session:
        campaign = campaign_of(session, rater_id)
        active_rater(session, campaign, rater_id)
        page = own(session, rater_id, assignment_id)
        stored = stored_answers(session, page)
        if page.first.submitted_at is None or not stored[0]:
            raise RatingRefused("this item is not saved yet")
        revision = newest_revision(stored)
        whole = whole_of(session, campaign, page)
        answers, document, comment = None, None, None
        if page.first.draft is None or page.first.draft.get("revision") != revision + 1:
            answers = [
                of_item[revision][group[0]].answer
                for assignment, of_item in zip(page.assignments, stored, strict=True)
                for group in assignment.order
            ]
            document = None if whole is None else whole.stored(session, page, revision)
            comment = page.first.comment
        now = database.now(session)
        outlook = load_outlook(session, campaign, rater_id, now)
    return as_work(
        campaign,
        page,
        outlook,
        whole,
        draft=answers,
        document=document,
        comment=comment,
        revision=revision + 1,
        in_work=outlook.in_work(now),
    )
