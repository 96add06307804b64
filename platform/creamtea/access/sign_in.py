"""People who sign in by OpenID Connect instead of by a link: who may sign in, and their sessions.

An organiser registers the subject under which a rater (`Rater.subject`) or another organiser
(`add_organiser`) signs in: a verified e-mail address, or "ISSUER|SUBJECT" if the provider verifies no
address. An organiser's registration is a token without a secret (`AccessToken.subject`), so it is listed and
revoked like a link. The web app speaks the protocol (creamtea_webapp/gate/); this module opens a session
for a verified person.
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
ORGANISER_LIFETIME = timedelta(days=365)  # then the organiser has to be registered again


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
        return [self.identifier, _lower_case(self.email)]


def checked_subject(subject: str) -> str:
    """Return a subject in the form that the database keeps; InputError if it is invalid.

    An address becomes lower case; ISSUER|SUBJECT stays as it is.
    """
    subject = subject.strip()
    if subject.isprintable() and len(subject) <= MAX_SUBJECT:
        if _is_address(subject):
            return _lower_case(subject)
        issuer, bar, name = subject.partition("|")
        if bar and name and issuer.startswith(("https://", "http://")):
            return subject
    raise InputError(
        "people sign in by an e-mail address that the provider has verified, anna@example.org, or by "
        "issuer and subject, 'https://id.example.org|1234' (the page shows both when it turns somebody away)"
    )


def _is_address(text: str) -> bool:
    name, at, host = text.rpartition("@")
    return bool(name and at and host) and not any(
        c == "|" or c.isspace() or not c.isprintable() for c in text
    )


def _lower_case(address: str) -> str:
    # other alphabets have letters whose lower case is another's: the Kelvin sign becomes k
    return address.lower() if address.isascii() else address


def set_subject(database: Database, rater_id: int, actor: str, subject: str) -> None:
    """Register the subject under which a rater signs in, replacing an earlier one.

    InputError for an invalid subject, a subject that the campaign already has, an unknown rater, and a rater
    whose identity was deleted.
    """
    subject = checked_subject(subject)
    with database.transaction() as session:
        rater = sessions.rater_with_identity(session, rater_id)
        if rater.subject == subject:
            return
        campaign = session.get_one(Campaign, rater.campaign_id, with_for_update={"key_share": True})
        check_free(session, campaign, subject)
        rater.subject = subject
        audit.record(session, rater.campaign_id, actor, audit.SIGN_IN_SET, rater_id)


def check_free(session: Session, campaign: Campaign, subject: str) -> None:
    """Raise InputError if a rater or an organiser of the campaign already has this subject."""
    if session.scalar(select(Rater.id).where(Rater.campaign_id == campaign.id, Rater.subject == subject)):
        raise InputError(f"campaign {campaign.name!r} has a rater with this sign-in already")
    of_campaign = AccessToken.campaign_id == campaign.id
    number = session.scalar(select(AccessToken.id).where(of_campaign, _held_by(subject)))
    if number is not None:
        raise InputError(
            f"campaign {campaign.name!r} has an organiser with this sign-in, who does not rate: "
            f"`creamtea links revoke {number}` ends that"
        )


def _held_by(*subjects: str) -> ColumnElement[bool]:
    """Match tokens that let one of these subjects sign in and are not revoked."""
    return AccessToken.subject.in_(subjects) & AccessToken.revoked_at.is_(None)


# ---------------------------------------------------------------- organisers


def add_organiser(
    database: Database, campaign: str, actor: str, subject: str, lifetime: timedelta = ORGANISER_LIFETIME
) -> None:
    """Let somebody organise this campaign, and no other, by signing in.

    Revoking the token (`sessions.revoke`) ends the sessions, and so does the end of `lifetime`. An expired
    token of the same person is revoked first. InputError for an unknown campaign, an invalid subject, and a
    subject that a rater or an organiser of the campaign already has.
    """
    subject = checked_subject(subject)
    with database.transaction() as session:
        row = find_campaign(session, campaign)
        session.refresh(row, with_for_update={"key_share": True})
        now = database.now(session)
        expired = _held_by(subject) & (AccessToken.expires_at <= now)
        session.execute(
            update(AccessToken).where(AccessToken.campaign_id == row.id, expired).values(revoked_at=now)
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

    Without `campaign_id`, choose the person's campaign that was launched last, running ones first.
    Revoking the rater's links or the organiser's token ends the session. NotRegistered if nobody has this
    sign-in.
    """
    with database.transaction() as session:
        wanted = [] if campaign_id is None else [Campaign.id == campaign_id]
        raters = select(Rater, Campaign).join(Campaign).where(Rater.subject.in_(person.subjects), *wanted)
        now = database.now(session)
        candidates: list[tuple[Rater | AccessToken, Campaign]] = []
        candidates += [(rater, campaign) for rater, campaign in session.execute(raters)]
        # organisers after raters: who is both in one campaign signs in with the lesser right
        organisers = (
            select(AccessToken, Campaign)
            .join(Campaign, Campaign.id == AccessToken.campaign_id)
            .where(_held_by(*person.subjects), AccessToken.expires_at > now, *wanted)
        )
        candidates += [(token, campaign) for token, campaign in session.execute(organisers)]
        if not candidates:
            raise NotRegistered

        def recency(candidate: tuple[object, Campaign]) -> tuple[bool, float, int]:
            campaign = candidate[1]
            launched = campaign.launched_at.timestamp() if campaign.launched_at else 0.0
            return campaign.state == "launched", launched, campaign.id

        token_or_rater, campaign = max(candidates, key=recency)
        if isinstance(token_or_rater, AccessToken):
            audit.record(session, campaign.id, "organiser", audit.ORGANISER_SIGNED_IN)
            rest = min(lifetime, token_or_rater.expires_at - now)
            return sessions.open_session(session, token_or_rater.id, token_or_rater.role, None, now, rest)
        rater = token_or_rater
        audit.record(session, campaign.id, rater.pseudonym, audit.SIGNED_IN, rater.id)
        return sessions.open_for_rater(session, rater, now, lifetime)
