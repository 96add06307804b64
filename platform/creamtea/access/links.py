"""Links that were made: what each opens, whether it still does, and withdrawing one.

Secrets are not stored (access/sessions.py), so a link is known by its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, exists, func, or_, select, update

from creamtea.access import audit
from creamtea.access.sessions import LINK_LIFETIME, add_link
from creamtea.errors import InputError
from creamtea.store.database import Database
from creamtea.store.rows import from_row
from creamtea.store.tables import AccessToken, Campaign, Rater, StudyRow, WebSession
from creamtea.wording import option


@dataclass(frozen=True)
class Link:
    """A link without its secret, or an organiser's right to sign in.

    `rater` is a pseudonym. `sessions` counts the browsers that are signed in by it.
    """

    id: int
    role: str  # one of tables.ROLES
    campaign: str | None
    study: str | None  # the study whose report alone it opens
    study_id: int | None
    rater: str | None
    created_at: datetime
    expires_at: datetime  # unused links open nothing after it; sessions have their own end
    used_at: datetime | None
    revoked_at: datetime | None
    sessions: int
    sign_in: str | None  # whom it lets in by OpenID Connect; no secret opens it
    opens: bool  # whether it, or a session that it opened, lets anyone in


def listed(database: Database, *, opening: bool = False) -> list[Link]:
    """Return every link, oldest first; with `opening` only links that still let somebody in."""
    with database.session() as session:
        now = database.now(session)
        signed_in = (
            select(WebSession.token_id, func.count().label("sessions"))
            .where(WebSession.revoked_at.is_(None), WebSession.expires_at > now)
            .group_by(WebSession.token_id)
            .subquery()
        )
        rows = session.execute(
            select(
                AccessToken,
                Campaign.name,
                StudyRow.name,
                Rater.pseudonym,
                func.coalesce(signed_in.c.sessions, 0),
            )
            .outerjoin(Rater, Rater.id == AccessToken.rater_id)
            .outerjoin(Campaign, Campaign.id == AccessToken.campaign_id)
            .outerjoin(StudyRow, StudyRow.id == AccessToken.study_id)
            .outerjoin(signed_in, signed_in.c.token_id == AccessToken.id)
            .order_by(AccessToken.id)
        ).all()
        links = []
        for token, campaign, study, rater, count in rows:
            sessions = 0 if token.revoked_at is not None else count
            unused = token.used_at is None and token.revoked_at is None and token.expires_at > now
            links.append(
                from_row(
                    Link,
                    token,
                    campaign=campaign,
                    study=study,
                    rater=rater,
                    sessions=sessions,
                    sign_in=token.subject,
                    opens=unused or sessions > 0,
                )
            )
    return [link for link in links if link.opens or not opening]


def link_at_start(database: Database, *, for_person: bool) -> str | None:
    """Return the secret of a new organiser's link for a start of `creamtea serve` to print.

    It replaces unused links of earlier starts. Unless a person reads it (`for_person`), no link is made if an
    organiser has a link or a session already: logs would collect links that nobody needs.
    """
    with database.transaction() as session:
        now = database.now(session)
        unused = (AccessToken.used_at.is_(None), AccessToken.revoked_at.is_(None))
        session.execute(update(AccessToken).where(AccessToken.at_start, *unused).values(revoked_at=now))
        signed_in = exists().where(
            WebSession.token_id == AccessToken.id,
            WebSession.revoked_at.is_(None),
            WebSession.expires_at > now,
        )
        opens = or_(and_(AccessToken.used_at.is_(None), AccessToken.expires_at > now), signed_in)
        of_organisers = select(AccessToken.id).where(
            AccessToken.role == "organiser",
            AccessToken.campaign_id.is_(None),
            AccessToken.revoked_at.is_(None),
            opens,
        )
        if not for_person and session.scalar(of_organisers.limit(1)) is not None:
            return None
        return add_link(
            session, "organiser", now, LINK_LIFETIME, rater_id=None, campaign_id=None, at_start=True
        )


def revoke(database: Database, link_id: int, actor: str, reason: str = "") -> None:
    """Withdraw a link and the sessions that it opened; a campaign's log gets a line.

    InputError for an unknown link, one that was withdrawn before, and a reason that no log would keep.
    """
    with database.transaction() as session:
        taken: AccessToken | None = session.scalar(
            update(AccessToken)
            .where(AccessToken.id == link_id, AccessToken.revoked_at.is_(None))
            .values(revoked_at=database.now(session))
            .returning(AccessToken)
        )
        if taken is None:
            known = session.get(AccessToken, link_id) is not None
            unknown = "is not there: `creamtea links list --all` has them all"
            raise InputError(f"link {link_id} {'was withdrawn before' if known else unknown}")
        if taken.campaign_id is None and reason:
            raise InputError(
                f"link {link_id} belongs to no campaign, and so no log would keep the reason: leave "
                f"{option('reason')} out",
                about="reason",
            )
        if taken.campaign_id is not None:
            detail = {"links": 1, "role": taken.role}
            audit.record(
                session, taken.campaign_id, actor, audit.LINKS_WITHDRAWN, taken.rater_id, reason, detail
            )
