"""One-time links, the browser sessions that they open, and the list of all links.

A link carries a random 32-byte secret; the database keeps only its SHA-256. The secret is exchanged once, in
one transaction and by the database's clock, for a browser session with another random secret as its cookie.
Secrets are found by the index on their digest, so no comparison reveals how much of a guess was right.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Row, func, or_, select, update
from sqlalchemy.orm import Session

from creamtea.access import audit
from creamtea.errors import CreamteaError, InputError
from creamtea.store.database import Database
from creamtea.store.rows import from_row
from creamtea.store.tables import AccessToken, Campaign, Rater, StudyRow, WebSession
from creamtea.wording import option

LINK_LIFETIME = timedelta(days=14)
SESSION_LIFETIME = timedelta(days=30)


class AccessRefused(CreamteaError):
    """A link or session is unknown, used, expired or revoked.

    The message is the same for all of them, so that a guessed secret reveals nothing.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(
            message
            or "This link is no longer valid: it was used before, has expired or was revoked. "
            "Ask the organiser for a new one."
        )


@dataclass(frozen=True)
class Identity:
    """The person behind a browser session.

    A rater belongs to one campaign and may only rate in it. An organiser's link may be restricted to one
    campaign, a reader's to one study's report or one campaign. access/rights.py says what each may do.
    """

    session_id: int
    role: str  # one of tables.ROLES
    rater_id: int | None = None
    campaign_id: int | None = None
    study_id: int | None = None


@dataclass(frozen=True)
class OpenedSession:
    secret: str  # for the cookie; stored nowhere
    lifetime: timedelta
    role: str


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create_link(
    database: Database,
    role: str,
    *,
    rater_id: int | None = None,
    campaign_id: int | None = None,
    study_id: int | None = None,
    lifetime: timedelta = LINK_LIFETIME,
    actor: str = audit.COMMAND_LINE,
) -> str:
    """Store a one-time token for a role and return its secret, which is shown once and kept nowhere.

    `rater_id`: required for a rater, and only for a rater. `campaign_id`: restricts an organiser or a reader
    to this campaign. `study_id`: restricts a reader to this study's report. A restricted reader's session
    ends when the link expires. The campaign's log records the link.

    ValueError for another combination. InputError for an unknown rater, campaign or study, and for a rater
    whose identity was deleted.
    """
    if (role == "rater") != (rater_id is not None):
        raise ValueError("a rater's link needs a rater, and no other link has one")
    if campaign_id is not None and role not in ("organiser", "reader"):
        raise ValueError("only an organiser's or a reader's link is made for one campaign")
    if study_id is not None and (role != "reader" or campaign_id is not None):
        raise ValueError("only a reader's link is made for one study")
    with database.transaction() as session:
        now = database.now(session)
        if rater_id is not None:
            campaign_id = rater_with_identity(session, rater_id).campaign_id
        elif campaign_id is not None and session.get(Campaign, campaign_id) is None:
            raise InputError(f"there is no campaign with id {campaign_id}")
        if study_id is not None and session.get(StudyRow, study_id) is None:
            raise InputError(f"there is no study with number {study_id}")
        secret = add_link(
            session, role, now, lifetime, rater_id=rater_id, campaign_id=campaign_id, study_id=study_id
        )
        if campaign_id is not None:
            audit.record(session, campaign_id, actor, audit.LINK_CREATED, rater_id, detail={"role": role})
    return secret


def add_link(
    session: Session,
    role: str,
    now: datetime,
    lifetime: timedelta = LINK_LIFETIME,
    *,
    rater_id: int | None = None,
    campaign_id: int | None = None,
    study_id: int | None = None,
    at_start: bool = False,
) -> str:
    """Add a token in the caller's transaction; return its secret."""
    secret = secrets.token_urlsafe(32)
    session.add(
        AccessToken(
            digest=digest(secret),
            role=role,
            campaign_id=campaign_id,
            rater_id=rater_id,
            study_id=study_id,
            created_at=now,
            expires_at=now + lifetime,
            at_start=at_start,
        )
    )
    return secret


def rater_with_identity(session: Session, rater_id: int) -> Rater:
    """Return the rater; InputError if there is none, or if the identity was deleted."""
    rater = session.get(Rater, rater_id)
    if rater is None:
        raise InputError(f"there is no rater with id {rater_id}")
    if rater.forgotten_at is not None:
        raise InputError(
            f"the identity of rater {rater.pseudonym!r} was deleted: add the person as a new rater"
        )
    return rater


def exchange(database: Database, secret: str, lifetime: timedelta = SESSION_LIFETIME) -> OpenedSession:
    """Open a browser session for a link's secret, once; AccessRefused for any other secret.

    The conditional update is the gate: of two exchanges at the same moment one finds the row unused.
    """
    with database.session() as session:  # a wrong guess neither takes the write lock nor waits for it
        if session.scalar(select(AccessToken.id).where(AccessToken.digest == digest(secret))) is None:
            raise AccessRefused
    with database.transaction() as session:
        now = database.now(session)
        token: AccessToken | None = session.scalar(
            update(AccessToken)
            .where(
                AccessToken.digest == digest(secret),
                # a link for participants stays unused: human/rating/raters.py opens their sessions
                or_(AccessToken.role != "rater", AccessToken.rater_id.is_not(None)),
                AccessToken.used_at.is_(None),
                AccessToken.revoked_at.is_(None),
                AccessToken.expires_at > now,
            )
            .values(used_at=now)
            .returning(AccessToken)
        )
        if token is None:
            raise AccessRefused
        # a reader of one report or campaign keeps access until the link expires
        if token.role == "reader" and (token.study_id, token.campaign_id) != (None, None):
            lifetime = min(lifetime, token.expires_at - now)
        return open_session(session, token.id, token.role, token.rater_id, now, lifetime)


def open_session(
    session: Session, token_id: int, role: str, rater_id: int | None, now: datetime, lifetime: timedelta
) -> OpenedSession:
    """Open a browser session for a used token, in the caller's transaction."""
    secret = secrets.token_urlsafe(32)
    session.add(
        WebSession(
            digest=digest(secret),
            token_id=token_id,
            role=role,
            rater_id=rater_id,
            created_at=now,
            expires_at=now + lifetime,
        )
    )
    return OpenedSession(secret, lifetime, role)


def open_for_rater(
    session: Session, rater: Rater, now: datetime, lifetime: timedelta = SESSION_LIFETIME
) -> OpenedSession:
    """Open a browser session for a rater who has signed in, in the caller's transaction.

    Its token counts as used from the start, so it is not a link. Revoking the rater's links ends the
    session too.
    """
    token = AccessToken(
        role="rater",
        campaign_id=rater.campaign_id,
        rater_id=rater.id,
        created_at=now,
        expires_at=now + lifetime,
        used_at=now,
    )
    session.add(token)
    session.flush()
    return open_session(session, token.id, "rater", rater.id, now, lifetime)


def identify(database: Database, session_secret: str | None) -> Identity | None:
    """Return the holder of this session secret; None if it is unknown, expired or revoked."""
    if not session_secret:
        return None
    with database.session() as session:
        row = _find_session(session, session_secret)
    return None if row is None else Identity(row.id, row.role, row.rater_id, row.campaign_id, row.study_id)


def opened_by(database: Database, session_secret: str, link_secret: str) -> bool:
    """Return True if this link has opened this session, which still lasts."""
    with database.session() as session:
        row = _find_session(session, session_secret)
        return row is not None and row.link_digest == digest(link_secret)


def sign_out(database: Database, session_secret: str) -> None:
    """End this session. Its link stays used; other browsers of the same person stay signed in."""
    with database.transaction() as session:
        is_open = WebSession.digest == digest(session_secret), WebSession.revoked_at.is_(None)
        session.execute(update(WebSession).where(*is_open).values(revoked_at=database.now(session)))


def _find_session(
    session: Session, session_secret: str
) -> Row[int, str, int | None, int | None, int | None, str | None] | None:
    return session.execute(
        select(
            WebSession.id,
            WebSession.role,
            WebSession.rater_id,
            AccessToken.campaign_id,
            AccessToken.study_id,
            AccessToken.digest.label("link_digest"),
        )
        .join(AccessToken, AccessToken.id == WebSession.token_id)
        .where(
            WebSession.digest == digest(session_secret),
            WebSession.revoked_at.is_(None),
            WebSession.expires_at > Database.now(session),
            AccessToken.revoked_at.is_(None),
        )
    ).one_or_none()


def revoke_links(session: Session, rater_id: int, now: datetime) -> list[int | None]:
    """Revoke a rater's links that are not revoked yet; return the campaign of each."""
    not_revoked = AccessToken.rater_id == rater_id, AccessToken.revoked_at.is_(None)
    revoked = update(AccessToken).where(*not_revoked).values(revoked_at=now)
    return list(session.scalars(revoked.returning(AccessToken.campaign_id)))


def is_revoked(session: Session, rater_id: int) -> bool:
    """Return True if the rater came by links, and all of them are revoked."""
    revoked = session.scalars(select(AccessToken.revoked_at).where(AccessToken.rater_id == rater_id)).all()
    return bool(revoked) and None not in revoked


def revoke_rater(database: Database, rater_id: int, actor: str = audit.COMMAND_LINE, reason: str = "") -> int:
    """Revoke every link of a rater and the sessions that they opened; return the number of links.

    A registered sign-in (access/sign_in.py) is removed too: it would let the rater in again at once.
    """
    with database.transaction() as session:
        removed = update(Rater).where(Rater.id == rater_id, Rater.subject.is_not(None)).values(subject=None)
        sign_ins = session.scalars(removed.returning(Rater.campaign_id)).all()
        revoked = revoke_links(session, rater_id, database.now(session))
        campaigns = [campaign_id for campaign_id in (*revoked, *sign_ins) if campaign_id is not None]
        if campaigns:
            detail = {"links": len(revoked)} | ({"sign-in": True} if sign_ins else {})
            audit.record(session, campaigns[0], actor, audit.LINKS_REVOKED, rater_id, reason, detail)
        return len(revoked)


# ---------------------------------------------------------------- the list of links
#
# Secrets are not stored, so a link is identified by its number.


@dataclass(frozen=True)
class Link:
    """A link without its secret, or an organiser's right to sign in.

    `rater` is a pseudonym. `sessions` counts the browsers that it has signed in.
    """

    id: int
    role: str  # one of tables.ROLES
    campaign: str | None
    study: str | None  # the only study whose report it opens
    study_id: int | None
    rater: str | None
    created_at: datetime
    expires_at: datetime  # an unused link stops working then; sessions have their own end
    used_at: datetime | None
    revoked_at: datetime | None
    sessions: int
    sign_in: str | None  # who may sign in with it by OpenID Connect; it has no secret then
    opens: bool  # whether the link or one of its sessions still lets somebody in


def list_links(database: Database, *, opening: bool = False) -> list[Link]:
    """Return every link, oldest first; with `opening` only links that still let somebody in."""
    with database.session() as session:
        return [link for link in _links(session) if link.opens or not opening]


def _links(session: Session) -> Iterator[Link]:
    now = Database.now(session)
    signed_in = (
        select(WebSession.token_id, func.count().label("sessions"))
        .where(WebSession.revoked_at.is_(None), WebSession.expires_at > now)
        .group_by(WebSession.token_id)
        .subquery()
    )
    names = Campaign.name, StudyRow.name, Rater.pseudonym
    rows = session.execute(
        select(AccessToken, *names, func.coalesce(signed_in.c.sessions, 0))
        .outerjoin(Rater, Rater.id == AccessToken.rater_id)
        .outerjoin(Campaign, Campaign.id == AccessToken.campaign_id)
        .outerjoin(StudyRow, StudyRow.id == AccessToken.study_id)
        .outerjoin(signed_in, signed_in.c.token_id == AccessToken.id)
        .order_by(AccessToken.id)
    )
    for token, campaign, study, rater, count in rows:
        sessions = 0 if token.revoked_at is not None else count
        unused = token.used_at is None and token.revoked_at is None and token.expires_at > now
        opens = unused or sessions > 0
        fields = {"campaign": campaign, "study": study, "rater": rater, "sign_in": token.subject}
        yield from_row(Link, token, sessions=sessions, opens=opens, **fields)


def link_at_start(database: Database, *, for_person: bool) -> str | None:
    """Make an organiser's link for `creamtea serve` to print when it starts; return its secret.

    The link replaces unused links of earlier starts. If no person reads the output (`for_person` is False)
    and an organiser already has a link or a session, return None: logs would collect links that nobody needs.
    """
    with database.transaction() as session:
        now = database.now(session)
        unused = (AccessToken.used_at.is_(None), AccessToken.revoked_at.is_(None))
        session.execute(update(AccessToken).where(AccessToken.at_start, *unused).values(revoked_at=now))
        organises = (
            link.role == "organiser" and link.campaign is None for link in _links(session) if link.opens
        )
        if not for_person and any(organises):
            return None
        return add_link(session, "organiser", now, at_start=True)


def revoke(database: Database, link_id: int, actor: str, reason: str = "") -> None:
    """Revoke a link and the sessions that it opened, and record that in the campaign's log.

    InputError for an unknown link, a link revoked before, and a reason if the link has no campaign.
    """
    with database.transaction() as session:
        not_revoked = AccessToken.id == link_id, AccessToken.revoked_at.is_(None)
        revoked = update(AccessToken).where(*not_revoked).values(revoked_at=database.now(session))
        token: AccessToken | None = session.scalar(revoked.returning(AccessToken))
        if token is None:
            if session.get(AccessToken, link_id) is not None:
                raise InputError(f"link {link_id} is already revoked")
            raise InputError(f"there is no link {link_id}: `creamtea links list --all` shows all links")
        if token.campaign_id is None and reason:
            raise InputError(
                f"link {link_id} belongs to no campaign, so no log would keep the reason: leave "
                f"{option('reason')} out",
                about="reason",
            )
        if token.campaign_id is not None:
            detail = {"links": 1, "role": token.role}
            audit.record(
                session, token.campaign_id, actor, audit.LINKS_REVOKED, token.rater_id, reason, detail
            )
