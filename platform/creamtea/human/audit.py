"""The log of a campaign: who decided what, when and why. Rows are only added.

A detail never holds a rater's real name or sign-in, because deleting an identity leaves the log as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.store.database import Database, clock
from creamtea.store.tables import AuditEvent, Rater

CREATED = "campaign created"
LAUNCHED = "campaign launched"
CLOSED = "campaign closed"
IMPORTED = "ratings imported"
EXPORTED = "ratings exported"
RATER_ADDED = "rater added"
RATER_CONSENTED = "rater consented"
RATER_EXCLUDED = "rater excluded"
RATER_INCLUDED = "rater included again"
RATER_FORGOTTEN = "rater's identity deleted"
LINK_CREATED = "link created"
LINKS_WITHDRAWN = "links withdrawn"
SIGN_IN_SET = "rater's sign-in set"
SIGNED_IN = "rater signed in"
ORGANISER_SIGNED_IN = "organiser signed in"

ACTIONS = (
    CREATED,
    LAUNCHED,
    CLOSED,
    IMPORTED,
    EXPORTED,
    RATER_ADDED,
    RATER_CONSENTED,
    RATER_EXCLUDED,
    RATER_INCLUDED,
    RATER_FORGOTTEN,
    LINK_CREATED,
    LINKS_WITHDRAWN,
    SIGN_IN_SET,
    SIGNED_IN,
    ORGANISER_SIGNED_IN,
)

COMMAND_LINE = "command line"  # the actor of what `creamtea campaign` does


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
    action: str,
    rater_id: int | None = None,
    reason: str = "",
    detail: dict[str, Any] | None = None,
) -> None:
    """Add a line to a campaign's log, in the transaction of what it tells of.

    `action` is one of ACTIONS; `actor` says who it was: COMMAND_LINE, an organiser's session, or a rater's
    pseudonym. Raises ValueError for another action or an empty actor.
    """
    if action not in ACTIONS:
        raise ValueError(f"{action!r} is no action of the log")
    if not actor.strip():
        raise ValueError("a line of the log needs an actor")
    session.add(
        AuditEvent(
            campaign_id=campaign_id,
            at=clock(session),
            actor=actor,
            action=action,
            rater_id=rater_id,
            reason=reason,
            detail=detail or {},
        )
    )


def read(database: Database, campaign_id: int) -> list[Entry]:
    """The log of a campaign, oldest first."""
    with database.session() as session:
        rows = session.execute(
            select(AuditEvent, Rater.pseudonym)
            .outerjoin(Rater, Rater.id == AuditEvent.rater_id)
            .where(AuditEvent.campaign_id == campaign_id)
            .order_by(AuditEvent.id)
        )
        return [
            Entry(event.at, event.actor, event.action, pseudonym, event.reason, event.detail)
            for event, pseudonym in rows
        ]
