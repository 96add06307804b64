"""People who sign in by OpenID Connect instead of by a link: who may, and the session that it opens.

Somebody registers who a rater is at the provider (`Rater.subject`) or who organises a campaign
(`add_organiser`): a verified e-mail address, or "ISSUER|SUBJECT" if the provider verifies no address. An
organiser's registration is a token without a secret (`AccessToken.subject`), so it is listed and withdrawn
like a link. The protocol itself is in the web app (creamtea_webapp/gate/); this module turns a verified
person into a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from creamtea.access import audit, sessions
from creamtea.errors import CreamteaError, InputError
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import AccessToken, Campaign, Rater

MAX_SUBJECT = 500  # characters
ORGANISES = timedelta(days=365)  # then somebody has to say so again


class NotRegistered(CreamteaError):
    """Nobody registered this person as a rater or an organiser (of the campaign asked for)."""

    def __init__(self) -> None:
        super().__init__("no campaign here knows this person as a rater or an organiser")


@dataclass(frozen=True)
class Person:
    """Who signed in, according to the provider's verified ID token."""

    issuer: str
    subject: str
    email: str | None = None  # only if the provider has verified it

    @property
    def identifier(self) -> str:
        return f"{self.issuer}|{self.subject}"

    @property
    def subjects(self) -> list[str]:
        """The subjects under which this person may be registered."""
        if self.email is None or not _is_address(self.email):
            return [self.identifier]
        return [self.identifier, _plain(self.email)]


def checked_subject(subject: str) -> str:
    """Return a sign-in as the database keeps it; InputError if it is not one.

    An address becomes lower case; ISSUER|SUBJECT stays as it is.
    """
    subject = subject.strip()
    if subject.isprintable() and len(subject) <= MAX_SUBJECT:
        if _is_address(subject):
            return _plain(subject)
        issuer, bar, name = subject.partition("|")
        if bar and name and issuer.startswith(("https://", "http://")):
            return subject
    raise InputError(
        "people sign in by an e-mail address that the provider has verified, anna@example.org, or by "
        "issuer and subject, 'https://id.example.org|1234' (what the page says when it turns somebody away)"
    )


def _is_address(text: str) -> bool:
    name, at, host = text.rpartition("@")
    return bool(name and at and host) and not any(
        c == "|" or c.isspace() or not c.isprintable() for c in text
    )


def _plain(address: str) -> str:
    # other alphabets have letters whose lower case is another's: the Kelvin sign becomes k
    return address.lower() if address.isascii() else address


def set_subject(database: Database, rater_id: int, actor: str, subject: str) -> None:
    """Register who a rater is at the provider, replacing an earlier registration.

    InputError for an invalid subject, for one of another rater of the campaign, for an unknown rater, and for
    one whose identity was deleted.
    """
    subject = checked_subject(subject)
    with database.transaction() as session:
        rater = sessions.linkable(session, rater_id)
        if rater.subject == subject:
            return
        campaign = session.get_one(Campaign, rater.campaign_id, with_for_update={"key_share": True})
        check_free(session, campaign, subject)
        rater.subject = subject
        audit.record(session, rater.campaign_id, actor, audit.SIGN_IN_SET, rater_id)


def check_free(session: Session, campaign: Campaign, subject: str) -> None:
    """Raise InputError if a rater or an organiser of the campaign has this subject: nobody is both."""
    if session.scalar(select(Rater.id).where(Rater.campaign_id == campaign.id, Rater.subject == subject)):
        raise InputError(f"campaign {campaign.name!r} has a rater with this sign-in already")
    here = AccessToken.campaign_id == campaign.id
    number = session.scalar(select(AccessToken.id).where(here, _held_by(subject)))
    if number is not None:
        raise InputError(
            f"campaign {campaign.name!r} has an organiser with this sign-in, who does not rate: "
            f"`creamtea links revoke {number}` ends that"
        )


# ---------------------------------------------------------------- organisers


def _held_by(*subjects: str) -> ColumnElement[bool]:
    """Match tokens that let one of these subjects sign in and are not withdrawn."""
    return AccessToken.subject.in_(subjects) & AccessToken.revoked_at.is_(None)


def add_organiser(
    database: Database, campaign: str, actor: str, subject: str, lifetime: timedelta = ORGANISES
) -> None:
    """Let somebody organise this campaign, and no other, by signing in.

    Withdrawing the token (`sessions.revoke`) ends the sessions, and so does the end of `lifetime`. An expired
    token is withdrawn to make place for the new one. InputError for an unknown campaign, an invalid subject,
    and a subject of a rater or an organiser of the campaign.
    """
    subject = checked_subject(subject)
    with database.transaction() as session:
        row = find_campaign(session, campaign)
        session.refresh(row, with_for_update={"key_share": True})
        now = database.now(session)
        over = _held_by(subject) & (AccessToken.expires_at <= now)
        session.execute(
            update(AccessToken).where(AccessToken.campaign_id == row.id, over).values(revoked_at=now)
        )
        check_free(session, row, subject)
        session.add(
            AccessToken(
                role="organiser",
                campaign_id=row.id,
                subject=subject,
                created_at=now,
                expires_at=now + lifetime,
            )
        )
        detail = {"role": "organiser", "sign-in": True}
        audit.record(session, row.id, actor, audit.LINK_CREATED, detail=detail)


# ---------------------------------------------------------------- sessions


def open_session(
    database: Database,
    person: Person,
    campaign_id: int | None = None,
    lifetime: timedelta = sessions.SESSION_LIFETIME,
) -> sessions.OpenedSession:
    """Open a browser session for a rater or an organiser with this sign-in.

    Without a campaign it is for the campaign launched last, or if none is launched, the last one. A rater's
    token is used from the start, so it is no link; withdrawing the rater's links, or the organiser's token,
    ends the session. NotRegistered if nobody has this sign-in.
    """
    with database.transaction() as session:
        wanted = [] if campaign_id is None else [Campaign.id == campaign_id]
        asked = select(Rater, Campaign).join(Campaign).where(Rater.subject.in_(person.subjects), *wanted)
        now = database.now(session)
        candidates: list[tuple[Rater | AccessToken, Campaign]] = []
        candidates += [(rater, campaign) for rater, campaign in session.execute(asked)]
        # after the raters: in one campaign a rater's right, the lesser one, comes first
        rights = (
            select(AccessToken, Campaign)
            .join(Campaign, Campaign.id == AccessToken.campaign_id)
            .where(_held_by(*person.subjects), AccessToken.expires_at > now, *wanted)
        )
        candidates += [(token, campaign) for token, campaign in session.execute(rights)]
        if not candidates:
            raise NotRegistered

        def recency(candidate: tuple[object, Campaign]) -> tuple[bool, float, int]:
            campaign = candidate[1]
            launched = campaign.launched_at.timestamp() if campaign.launched_at else 0.0
            return campaign.state == "launched", launched, campaign.id

        token_or_rater, campaign = max(candidates, key=recency)
        if isinstance(token_or_rater, AccessToken):
            audit.record(session, campaign.id, "organiser", audit.ORGANISER_SIGNED_IN)
            left = min(lifetime, token_or_rater.expires_at - now)
            return sessions.open_session(session, token_or_rater.id, token_or_rater.role, None, now, left)
        rater = token_or_rater
        audit.record(session, campaign.id, rater.pseudonym, audit.SIGNED_IN, rater.id)
        return sessions.open_for_rater(session, rater, now, lifetime)
