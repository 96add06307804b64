"""Inviting many raters: links for all of them at once, and one link for all participants that a recruiting
platform sends.

Such a platform adds to the address who comes: Prolific has `PROLIFIC_PID`, `STUDY_ID` and `SESSION_ID`
(docs.prolific.com, "The study object"). Others can use `participant`. Whoever comes for the first time
becomes a rater; whoever comes again goes on.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from creamtea.access import audit, sessions
from creamtea.errors import InputError
from creamtea.human.rating import raters
from creamtea.human.rating.page import is_first_of_page
from creamtea.human.rating.places import THIRD_PLACES, takes_place
from creamtea.printable import text_to_cell
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import SYSTEM_KINDS, AccessToken, Assignment, Campaign, Item, ItemKind, Rater
from creamtea.wording import counted, option
from creamtea.words import normalise

MAX_AT_ONCE = 1000
MAX_PARTICIPANTS = 5000  # of a campaign: whoever has the link can invent some
RECRUITING = timedelta(days=90)
PARTICIPANT = ("PROLIFIC_PID", "participant")  # in an address; the first that is there
SUBMISSION = "SESSION_ID"  # of a participant's visit, by Prolific: what only the two of them know
ARRIVAL = ("STUDY_ID", SUBMISSION)
PLACEHOLDERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
_CODE = re.compile(r"[\w.@:+-]{1,100}", re.ASCII)


@dataclass(frozen=True)
class Invitation:
    rater: str  # the pseudonym
    secret: str  # of a link that works once


def invite(
    database: Database, campaign: str, actor: str, wanted: Sequence[str] | int, *, surplus: bool = False
) -> list[Invitation]:
    """Make a link for each of these raters (new ones are added), or for so many new ones: all or none.

    InputError for an unknown campaign, for pseudonyms that cannot be, come twice or are too many; without
    `surplus` also for more raters than there is something to rate for.
    """
    with database.transaction() as session:
        return add_invitations(session, database, campaign, actor, wanted, surplus=surplus)


def add_invitations(
    session: Session,
    database: Database,
    campaign: str,
    actor: str,
    wanted: Sequence[str] | int,
    *,
    surplus: bool = False,
) -> list[Invitation]:
    """Do what `invite` does, in a transaction that may invite to other campaigns, too."""
    count = wanted if isinstance(wanted, int) else len(wanted)
    if not 1 <= count <= MAX_AT_ONCE:
        raise InputError(f"links for 1 to {MAX_AT_ONCE:,} raters can be made at once, not for {count:,}")
    named: Sequence[str | None] = (
        [None] * wanted if isinstance(wanted, int) else [normalise(pseudonym) for pseudonym in wanted]
    )
    if twice := {pseudonym for pseudonym in named if pseudonym is not None and named.count(pseudonym) > 1}:
        raise InputError(f"a rater is named twice: {min(twice)!r}")
    row, now = raters.lock(session, campaign), database.now(session)
    known = {
        rater.pseudonym: rater.id
        for rater in session.scalars(select(Rater).where(Rater.campaign_id == row.id))
    }
    new = sum(pseudonym not in known for pseudonym in named)
    free = max(0, room(session, row, now))
    if new > free and not surplus and row.state != "closed":
        raise InputError(
            f"campaign {campaign!r} has pages for {counted(free, 'more rater')}: of {new:,} new ones "
            f"{new - free:,} would find nothing to rate. Ask for fewer, or use {option('surplus')}, "
            "since some may not come",
            about="surplus",
        )
    invitations = []
    for pseudonym in named:
        rater_id = known.get(pseudonym or "")
        if rater_id is None:
            rater_id = raters.insert(session, database, row, actor, pseudonym)
        rater = sessions.linkable(session, rater_id)
        secret = sessions.add_link(
            session, "rater", now, sessions.LINK_LIFETIME, rater_id=rater_id, campaign_id=row.id
        )
        invitations.append(Invitation(rater.pseudonym, secret))
    detail = {"role": "rater", "links": len(invitations)}
    audit.record(session, row.id, actor, audit.LINK_CREATED, detail=detail)
    return invitations


def room(session: Session, campaign: Campaign, now: datetime) -> int:
    """Count the additional raters who would each find a page to rate now."""
    has_places = Item.full.is_(False) | (Item.kind == ItemKind.THIRD)
    taken = (
        select(Assignment.item_id, func.count().label("count"))
        .join(Item, Item.id == Assignment.item_id)
        .where(Item.campaign_id == campaign.id, has_places, takes_place())
        .group_by(Assignment.item_id)
        .subquery()
    )
    places_of_item = case((Item.kind == ItemKind.THIRD, THIRD_PLACES), else_=campaign.ratings_per_item)
    left = places_of_item - func.coalesce(taken.c.count, 0)
    places = (
        select(func.sum(left))
        .outerjoin_from(Item, taken, taken.c.item_id == Item.id)
        .where(
            Item.campaign_id == campaign.id,
            Item.kind.in_((*SYSTEM_KINDS, ItemKind.THIRD)),
            Item.drawn.is_not(False),  # passed over
            has_places,
            left > 0,
            is_first_of_page(),
        )
    )
    begun = select(Assignment.rater_id).where(takes_place())
    waiting = select(func.count()).where(
        Rater.campaign_id == campaign.id,
        Rater.excluded_at.is_(None),
        Rater.forgotten_at.is_(None),
        Rater.id.not_in(begun),
    )
    values = {"campaign": campaign.id, "now": now}
    return (session.scalar(places, values) or 0) - (session.scalar(waiting, values) or 0)


def links_csv(invitations: Sequence[Invitation], url: str) -> str:
    """Write a table of the links, with a head."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["rater", "link"])
    for invitation in invitations:
        table.writerow([text_to_cell(invitation.rater), f"{url}/enter#{invitation.secret}"])
    return text.getvalue()


def recruit(database: Database, campaign: str, actor: str) -> str:
    """Make a link for all participants of a campaign, which works for 90 days; return its secret.

    InputError for an unknown campaign.
    """
    with database.transaction() as session:
        row = find_campaign(session, campaign)
        secret = sessions.add_link(
            session, "rater", database.now(session), RECRUITING, rater_id=None, campaign_id=row.id
        )
        detail = {"role": "participants"}
        audit.record(session, row.id, actor, audit.LINK_CREATED, detail=detail)
    return secret


def recruiting_address(url: str, secret: str) -> str:
    """Return the address to give Prolific for the study; it replaces the parts in braces."""
    return f"{url}/enter?{PLACEHOLDERS}#{secret}"


def participant_in(query: Mapping[str, str]) -> str | None:
    """Read from the query of an address who comes; None where it names nobody, or no possible participant."""
    found = next((query[name] for name in PARTICIPANT if name in query), "")
    return found if _CODE.fullmatch(found) else None


def join(database: Database, secret: str, query: Mapping[str, str]) -> sessions.OpenedSession | None:
    """Open a session for the participant of this query, by a link for participants; None for other secrets.

    AccessRefused where the query names nobody, somebody whose links were withdrawn, or somebody whose visit,
    as the platform numbers it, is another one, and where the campaign has too many participants.
    """
    with database.session() as session:
        campaign_id = session.scalar(
            select(AccessToken.campaign_id).where(
                AccessToken.digest == sessions.digest(secret),
                AccessToken.role == "rater",
                AccessToken.rater_id.is_(None),
                AccessToken.revoked_at.is_(None),
                AccessToken.expires_at > database.now(session),
            )
        )
    if campaign_id is None:
        return None
    participant = participant_in(query)
    if participant is None:
        raise sessions.AccessRefused("Open this link from the page on which you found the study.")
    with database.transaction() as session:
        now = database.now(session)
        campaign = session.get_one(Campaign, campaign_id, with_for_update={"key_share": True})
        rater = _rater_of(session, database, campaign, participant)
        if sessions.is_withdrawn(session, rater.id):
            raise sessions.AccessRefused(
                "Your link to this evaluation was withdrawn. Ask whoever organises it for a new one."
            )
        began = (rater.arrival or {}).get(SUBMISSION)
        if began is not None and began != query.get(SUBMISSION):
            raise sessions.AccessRefused(
                "Someone has begun with this participant number. If it is yours, open the link on the page "
                "where you found the study, or ask for a link of your own."
            )
        rater.arrival = {
            name: query[name] for name in ARRIVAL if _CODE.fullmatch(query.get(name, ""))
        } or None
        audit.record(session, campaign.id, rater.pseudonym, audit.SIGNED_IN, rater.id)
        return sessions.open_for_rater(session, rater, now)


def _rater_of(session: Session, database: Database, campaign: Campaign, participant: str) -> Rater:
    of_campaign = Rater.campaign_id == campaign.id
    rater = session.scalar(select(Rater).where(of_campaign, Rater.participant == participant))
    if rater is None:
        taken = session.scalar(select(func.count(Rater.participant)).where(of_campaign))
        if (taken or 0) >= MAX_PARTICIPANTS:
            raise sessions.AccessRefused("This evaluation is full; nobody else can join it.")
        rater_id = raters.insert(session, database, campaign, "participants' link", None)
        rater = session.get_one(Rater, rater_id)
        rater.participant = participant
    return rater
