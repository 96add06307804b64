"""Drafts, scores and skips of one item: each is stored once, whatever is sent twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from creamtea.human.assignment.locking import active_rater, lock_campaign, own, protocol_of
from creamtea.human.assignment.model import (
    LEASE,
    Guidance,
    RatingRefused,
    Submitted,
    TryAgain,
    shown_outputs,
)
from creamtea.human.assignment.places import keeps_place
from creamtea.human.attention import MAX_WARNINGS, is_right
from creamtea.human.protocols import Protocol, ScoredAnswer
from creamtea.human.storable import check_size, check_text
from creamtea.store.database import Database
from creamtea.store.item_kinds import ItemKind
from creamtea.store.tables import Assignment, Item, Rating

MAX_TEXT = 2000  # characters of a comment or of a reason
_MAX_MS = 2**31 - 1  # what the column holds, 24 days


def save_draft(
    database: Database,
    rater_id: int,
    assignment_id: int,
    answers: Sequence[Any],
    comment: str = "",
    revision: int = 1,
) -> None:
    """Keep the answers that the rater has begun (None: not yet) and renew the lease.

    `revision` is the one being prepared: a draft that arrives after its revision was submitted is refused,
    as is one for an item that is skipped or not this rater's.
    """
    with database.transaction() as session:
        campaign = lock_campaign(session, rater_id)
        assignment, item = own(session, rater_id, assignment_id)
        active_rater(session, campaign, rater_id)
        _check_not_skipped(assignment)
        if revision != newest_revision(stored_answers(session, assignment)) + 1:
            raise RatingRefused("this item is saved already")
        check_draft(protocol_of(campaign), answers, shown_outputs(item, assignment.order))
        _check_text(comment, "comment")
        assignment.draft = {"answers": list(answers), "comment": comment, "revision": revision}
        now = database.now(session)
        if assignment.submitted_at is None and keeps_place(
            session, campaign, item.kind, item.id, rater_id, now
        ):
            assignment.lease_until = now + LEASE


def submit(
    database: Database,
    rater_id: int,
    assignment_id: int,
    answers: Sequence[Any],
    revision: int = 1,
    comment: str = "",
    active_ms: int | None = None,
) -> Submitted:
    """Store one answer for each system, once: `answers` has one for each shown output.

    Submitting a stored revision again stores nothing and returns what is stored, whatever the new answers
    are, so a double click or a repeated request does no harm. The next revision adds rows and keeps the
    old ones; the comment is the newest revision's. `active_ms`, the milliseconds that the rater was on the
    item, is stored with the first revision, at most the time since the item was given out. Raises
    RatingRefused for an item that is skipped or not this rater's, for missing or impossible answers, where
    the lease ran out and the item's places went to others, and where campaign or rater take no part;
    TryAgain for a wrong answer to a loud attention check.
    """
    stored = _store(database, rater_id, assignment_id, answers, revision, comment, active_ms)
    if isinstance(stored, TryAgain):  # after the transaction, which counts the wrong answer
        raise stored
    return stored


def _store(
    database: Database,
    rater_id: int,
    assignment_id: int,
    answers: Sequence[Any],
    revision: int,
    comment: str,
    active_ms: int | None,
) -> Submitted | TryAgain:
    with database.transaction() as session:
        campaign = lock_campaign(session, rater_id)
        assignment, item = own(session, rater_id, assignment_id)
        stored = stored_answers(session, assignment)
        if revision in stored:
            return _submitted(assignment, item, revision, stored[revision])
        active_rater(session, campaign, rater_id)
        _check_not_skipped(assignment)
        if revision != newest_revision(stored) + 1:
            raise RatingRefused(f"revision {revision} does not follow {newest_revision(stored)}")
        scored = read_answers(protocol_of(campaign), answers, shown_outputs(item, assignment.order))
        _check_text(comment, "comment")
        now = database.now(session)
        if assignment.submitted_at is None:
            if not keeps_place(session, campaign, item.kind, item.id, rater_id, now):
                raise RatingRefused("this item was given to somebody else while the page lay open")
            if (warning := _warning(assignment, item, scored)) is not None:
                assignment.warned += 1
                return TryAgain(warning)
            assignment.submitted_at = now
            assignment.active_ms = _bounded(active_ms, now - assignment.created_at)
        assignment.comment = comment
        _insert_ratings(session, assignment, scored, revision, now)
        session.flush()
        return _submitted(assignment, item, revision, stored_answers(session, assignment)[revision])


def skip(database: Database, rater_id: int, assignment_id: int, reason: str) -> None:
    """Give the item's place back, with a reason for the organiser; it never returns to this rater.

    Skipping again changes nothing. Raises RatingRefused without a reason, for a tutorial item, and for an
    item that is submitted or not this rater's.
    """
    with database.transaction() as session:
        campaign = lock_campaign(session, rater_id)
        assignment, item = own(session, rater_id, assignment_id)
        active_rater(session, campaign, rater_id)
        if assignment.skipped_at is not None:
            return
        if assignment.submitted_at is not None:
            raise RatingRefused("this item is saved already; change its scores instead")
        if item.kind == ItemKind.TUTORIAL:
            raise RatingRefused("an example cannot be skipped: give any answer to go on")
        if not reason.strip():
            raise RatingRefused("say why you skip this item")
        _check_text(reason, "reason")
        assignment.skipped_at = database.now(session)
        assignment.skip_reason = reason.strip()


def stored_answers(session: Session, assignment: Assignment) -> dict[int, dict[int, ScoredAnswer]]:
    """Stored answers: revision → system's position → answer."""
    revisions: dict[int, dict[int, ScoredAnswer]] = {}
    rows = session.execute(
        select(Rating.revision, Rating.system, Rating.step, Rating.payload).where(
            Rating.assignment_id == assignment.id
        )
    )
    for revision, system, step, payload in rows:
        revisions.setdefault(revision, {})[system] = ScoredAnswer(step, payload)
    return revisions


def newest_revision(stored: dict[int, dict[int, ScoredAnswer]]) -> int:
    return max(stored, default=0)


def read_answers(protocol: Protocol, answers: Sequence[Any], outputs: Sequence[str]) -> list[ScoredAnswer]:
    """The answers as they are stored; RatingRefused for missing ones and for those that cannot be."""
    if len(answers) != len(outputs):
        raise RatingRefused(f"{len(answers)} scores for {len(outputs)} outputs")
    if any(answer is None for answer in answers):
        raise RatingRefused("an output has no score yet")
    try:
        check_size(list(answers))
        return protocol.read(answers, outputs)
    except ValueError as error:
        raise RatingRefused(str(error)) from None


def check_draft(protocol: Protocol, answers: Sequence[Any], outputs: Sequence[str]) -> None:
    """RatingRefused for answers that no rater can have begun; None stands for one that is missing."""
    if len(answers) != len(outputs):
        raise RatingRefused(f"{len(answers)} scores for {len(outputs)} outputs")
    try:
        check_size(list(answers))
        for answer, output in zip(answers, outputs, strict=True):
            if answer is not None:
                protocol.check_draft(answer, output)
    except ValueError as error:
        raise RatingRefused(str(error)) from None


def _check_not_skipped(assignment: Assignment) -> None:
    if assignment.skipped_at is not None:
        raise RatingRefused("you have skipped this item")


def _check_text(text: str, what: str) -> None:
    if not isinstance(text, str):
        raise RatingRefused(f"the {what} is not text")
    if len(text) > MAX_TEXT:
        raise RatingRefused(f"the {what} has {len(text)} characters; at most {MAX_TEXT} are allowed")
    try:
        check_text(text)
    except ValueError:
        raise RatingRefused(f"the {what} holds a character that cannot be stored") from None


def _bounded(active_ms: int | None, elapsed: timedelta) -> int | None:
    """Milliseconds as the browser counted them, at most what the server's clock allows."""
    if active_ms is None:
        return None
    if type(active_ms) is not int or active_ms < 0:
        raise RatingRefused(f"a time is a whole number of milliseconds, not {active_ms!r}")
    return min(active_ms, max(elapsed // timedelta(milliseconds=1), 0), _MAX_MS)


def _warning(assignment: Assignment, item: Item, scored: Sequence[ScoredAnswer]) -> str | None:
    """What a loud attention check says to this first answer; None where it is stored."""
    if item.kind != ItemKind.ATTENTION or item.guidance is None or assignment.warned >= MAX_WARNINGS:
        return None
    steps = {group[0]: answer.step for group, answer in zip(assignment.order, scored, strict=True)}
    warning: str | None = item.guidance["warning"]
    return None if is_right(item.guidance, steps) else warning


def _insert_ratings(
    session: Session, assignment: Assignment, scored: Sequence[ScoredAnswer], revision: int, now: datetime
) -> None:
    """The unique key (assignment, system, revision) decides; a row that is there stays as it is."""
    rows = [
        {
            "assignment_id": assignment.id,
            "system": system,
            "revision": revision,
            "step": answer.step,
            "payload": answer.payload,
            "created_at": now,
        }
        for group, answer in zip(assignment.order, scored, strict=True)
        for system in group
    ]
    dialect = session.get_bind().dialect.name
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    session.execute(insert(Rating).values(rows).on_conflict_do_nothing())


def _submitted(
    assignment: Assignment, item: Item, revision: int, stored: dict[int, ScoredAnswer]
) -> Submitted:
    steps = {system: answer.step for system, answer in stored.items()}
    return Submitted(assignment.id, revision, steps, _guidance(assignment, item, steps))


def _guidance(assignment: Assignment, item: Item, steps: dict[int, int]) -> Guidance | None:
    if item.guidance is None or item.kind != ItemKind.TUTORIAL:
        return None
    accepted: list[tuple[int, int] | None] = []
    right = []
    for group in assignment.order:
        lowest_highest = item.guidance["steps"].get(str(group[0]))
        accepted.append(None if lowest_highest is None else (lowest_highest[0], lowest_highest[1]))
        right.append(lowest_highest is None or lowest_highest[0] <= steps[group[0]] <= lowest_highest[1])
    return Guidance(accepted, right, item.guidance["explanation"])
