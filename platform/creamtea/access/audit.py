"""The log of a campaign: who decided what, when and why. Rows are added, never changed.

A detail never holds a rater's real name or sign-in, because deleting an identity does not change the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NewType

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.store.database import Database
from creamtea.store.tables import AuditEvent, Rater

Action = NewType("Action", str)

CREATED = Action("campaign created")
LAUNCHED = Action("campaign launched")
CLOSED = Action("campaign closed")
REOPENED = Action("campaign opened again")
THIRD_ASKED = Action("third ratings asked for")
IMPORTED = Action("ratings imported")
EXPORTED = Action("ratings exported")
RATER_ADDED = Action("rater added")
RATER_CONSENTED = Action("rater consented")
RATER_EXCLUDED = Action("rater excluded")
RATER_INCLUDED = Action("rater included again")
RATER_REOPENED = Action("rater given skipped items again")
RATER_FORGOTTEN = Action("rater's identity deleted")
LINK_CREATED = Action("link created")
LINKS_REVOKED = Action("links revoked")
SIGN_IN_SET = Action("rater's sign-in set")
SIGNED_IN = Action("rater signed in")
ORGANISER_SIGNED_IN = Action("organiser signed in")

COMMAND_LINE = "command line"  # the actor when `creamtea campaign` makes the change


@dataclass(frozen=True)
class Entry:
    """One line of the log. `rater` is a pseudonym."""

    at: datetime
    actor: str
    action: str
    rater: str | None
    reason: str
    detail: dict[str, Any]


def record(
    session: Session,
    campaign_id: int,
    actor: str,
    action: Action,
    rater_id: int | None = None,
    reason: str = "",
    detail: dict[str, Any] | None = None,
) -> None:
    """Add a line to a campaign's log, in the transaction that makes the decision.

    `actor`: COMMAND_LINE, an organiser's session, or a rater's pseudonym. ValueError if it is empty.
    """
    if not actor.strip():
        raise ValueError("a line of the log needs an actor")
    session.add(
        AuditEvent(
            campaign_id=campaign_id,
            at=Database.now(session),
            actor=actor,
            action=action,
            rater_id=rater_id,
            reason=reason,
            detail=detail or {},
        )
    )


def read(database: Database, campaign_id: int) -> list[Entry]:
    """Return the log of a campaign, oldest first."""
    with database.session() as session:
        events = select(AuditEvent, Rater.pseudonym).outerjoin(Rater, Rater.id == AuditEvent.rater_id)
        rows = session.execute(events.where(AuditEvent.campaign_id == campaign_id).order_by(AuditEvent.id))
        return [
            Entry(event.at, event.actor, event.action, pseudonym, event.reason, event.detail)
            for event, pseudonym in rows
        ]
