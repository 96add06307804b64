"""People who sign in by OpenID Connect instead of by a link: who may, and the session that it opens.

Somebody writes down who a rater is at the provider, `Rater.subject`, or who organises a campaign
(`add_organiser`): a verified e-mail address, or "ISSUER|SUBJECT" where a provider vouches for no address. An
organiser's is a token that no secret opens, `AccessToken.subject`, so it is listed and withdrawn like a link.
The protocol itself is the web app's (creamtea_webapp/gate/); here a verified person becomes a session like
one that a link opens.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

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
    """Nobody wrote this person down as a rater or an organiser (of the campaign asked for)."""

    def __init__(self) -> None:
        super().__init__("no campaign here knows this person as a rater or an organiser")


@dataclass(frozen=True)
class Person:
    """Who signed in, as the provider's verified ID token says."""

    issuer: str
    subject: str
    email: str | None = None  # only if the provider has verified it

    @property
    def identifier(self) -> str:
        return f"{self.issuer}|{self.subject}"

    @property
    def subjects(self) -> list[str]:
        """What may be written down for this person."""
        if self.email is None or not _is_address(self.email):
            return [self.identifier]
        return [self.identifier, _plain(self.email)]


def checked_subject(subject: str) -> str:
    """A sign-in as the database keeps it: an address in lower case, or ISSUER|SUBJECT as it is.

    InputError for anything else.
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
    """Write down who a rater is at the provider, instead of what was there.

    InputError for a subject that is none or another rater's of the campaign, for a rater that is not there
    and for one whose identity was deleted.
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
    """InputError where a rater or an organiser of the campaign has this subject: nobody is both."""
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
    """Whether a token is the right of one of these to sign in, and not withdrawn."""
    return AccessToken.subject.in_(subjects) & AccessToken.revoked_at.is_(None)


def add_organiser(
    database: Database, campaign: str, actor: str, subject: str, lifetime: timedelta = ORGANISES
) -> None:
    """Let somebody organise this campaign, and no other, by signing in. Withdrawing it (access/links.py) ends
    the sessions, and so does the end of `lifetime`; a right that is over is withdrawn for the new one.

    InputError for an unknown campaign, for a subject that is none, and for one of a rater or an organiser of
    the campaign.
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


def _organisers(
    session: Session, person: Person, campaign_id: int | None, now: datetime
) -> list[tuple[AccessToken, Campaign]]:
    """The person's tokens that open something now."""
    asked = (
        select(AccessToken, Campaign)
        .join(Campaign, Campaign.id == AccessToken.campaign_id)
        .where(_held_by(*person.subjects), AccessToken.expires_at > now)
    )
    if campaign_id is not None:
        asked = asked.where(Campaign.id == campaign_id)
    return [(token, campaign) for token, campaign in session.execute(asked)]


# ---------------------------------------------------------------- sessions


def open_session(
    database: Database,
    person: Person,
    campaign_id: int | None = None,
    lifetime: timedelta = sessions.SESSION_LIFETIME,
) -> sessions.OpenedSession:
    """A browser session for a rater or an organiser with this sign-in: of the campaign asked for; without one
    of the campaign that was launched last, or if none is launched, of the last.

    A rater's token is used from the start, so it is no link, and what ends a rater's links ends the session
    too; so does withdrawing an organiser's. NotRegistered where nobody is this person.
    """
    with database.transaction() as session:
        asked = select(Rater, Campaign).join(Campaign).where(Rater.subject.in_(person.subjects))
        if campaign_id is not None:
            asked = asked.where(Campaign.id == campaign_id)
        now = database.now(session)
        candidates: list[tuple[Rater | AccessToken, Campaign]] = [
            (rater, of) for rater, of in session.execute(asked)
        ]
        # after the raters: of one campaign the lesser right is the first
        candidates += _organisers(session, person, campaign_id, now)
        if not candidates:
            raise NotRegistered
        who, campaign = max(candidates, key=lambda candidate: _recent(candidate[1]))
        if isinstance(who, AccessToken):
            audit.record(session, campaign.id, "organiser", audit.ORGANISER_SIGNED_IN)
            left = min(lifetime, who.expires_at - now)
            return sessions.open_session(session, who.id, who.role, None, now, left)
        rater = who
        audit.record(session, campaign.id, rater.pseudonym, audit.SIGNED_IN, rater.id)
        return sessions.open_for_rater(session, rater, now, lifetime)


def _recent(campaign: Campaign) -> tuple[bool, float, int]:
    launched = campaign.launched_at.timestamp() if campaign.launched_at else 0.0
    return campaign.state == "launched", launched, campaign.id
