"""Raters: organisers add, invite, exclude, include and forget them; pseudonyms name them.

Excluding a rater sets one moment and adds a line to the log; including clears the moment. No other row
changes, so the results are exactly restored. `rating/places.py` says how exclusion affects places.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import quote

from sqlalchemy import case, func, select, update
from sqlalchemy.orm import Session

from creamtea.access import audit, sessions, sign_in
from creamtea.document.mistakes import one_of
from creamtea.errors import InputError
from creamtea.human.making.campaigns import CampaignSummary, count_pages
from creamtea.human.making.known_answers import Attention, attention_of
from creamtea.human.making.questions import Answers, Question, checked_answers
from creamtea.human.making.settings import settings_of, share_given_out
from creamtea.human.protocols import Protocol
from creamtea.human.rating.page import (
    RatingRefused,
    campaign_of,
    check_takes_part,
    is_first_of_page,
    lock_campaign,
    lock_rater,
    page_of,
    protocol_of,
)
from creamtea.human.rating.places import (
    THIRD_PLACES,
    finished_raters,
    item_kinds,
    items_in_all,
    keeps_place,
    mark_full,
    takes_place,
)
from creamtea.printable import csv_of, text_to_cell
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.rows import from_row
from creamtea.store.tables import (
    SYSTEM_KINDS,
    WRITTEN_KINDS,
    AccessToken,
    Assignment,
    Campaign,
    Item,
    ItemKind,
    Rater,
    WebSession,
)
from creamtea.wording import counted, option
from creamtea.words import look, normalise

MAX_NAME = 200  # characters of a pseudonym or a name


@dataclass(frozen=True)
class Welcome:
    """The introduction that a rater reads before the first item."""

    pseudonym: str
    protocol: Protocol
    instructions: str  # Markdown by the organiser
    consent: str  # the text that the rater is asked to agree to; "" if the organiser wrote none
    languages: tuple[str, str]  # source, target
    questions: tuple[Question, ...]  # about the rater, asked before the first item
    contact: str  # whom to ask; "" if the organiser named nobody
    completion_code: str  # the failing code if this rater failed the attention checks
    completion_url: str  # with the code in it; "" if the address cannot show that the rater failed
    consented: bool
    state: str  # of the campaign: draft, launched, closed
    excluded: bool


@dataclass(frozen=True)
class RaterProgress:
    """A rater as an organiser sees it; counts are of assignments.

    `submitted` leaves out practice items and attention checks; `skipped` includes attention checks.
    """

    id: int
    pseudonym: str
    name: str | None
    participant: str | None  # on a recruiting platform
    answers: Answers | None  # to the campaign's questions
    created_at: datetime
    consented_at: datetime | None
    excluded_at: datetime | None
    forgotten_at: datetime | None
    submitted: int
    skipped: int
    tutorial: int  # practice items submitted
    attention: Attention  # checks answered and passed
    last_submit: datetime | None
    finished: bool  # has rated, and nothing is left to rate
    closed: bool  # whether the campaign is closed

    @property
    def has_begun(self) -> bool:
        """Whether the rater has agreed to take part or has ratings (imported raters have not agreed)."""
        return self.consented_at is not None or self.submitted + self.skipped + self.tutorial > 0

    @property
    def standing(self) -> str:
        """The rater's state, in a word."""
        if self.forgotten_at is not None:
            return "identity deleted" + (", excluded" if self.excluded_at else "")
        if self.excluded_at is not None:
            return "excluded"
        if self.closed:
            return "took part" if self.has_begun else "never started"
        return "finished" if self.finished else "taking part" if self.has_begun else "not started"


def welcome(database: Database, rater_id: int) -> Welcome:
    """Return the introduction for a rater.

    RatingRefused for a rater who no longer exists, or a protocol that is not installed.
    """
    with database.session() as session:
        return welcome_of(session, campaign_of(session, rater_id), session.get_one(Rater, rater_id))


def welcome_of(session: Session, campaign: Campaign, rater: Rater) -> Welcome:
    """Return the introduction for a rater; a preview passes one who is not stored (id None)."""
    settings, checks = settings_of(campaign.settings), Attention()
    if rater.id is not None:
        checks = attention_of(session, campaign.id, rater.id).get(rater.id, checks)
    failed = settings.failing_code != "" and not checks.suffices(settings.attention_share)
    code = settings.failing_code if failed else settings.completion_code
    address = settings.completion_url.replace("{code}", quote(code, safe=""))
    return from_row(
        Welcome,
        settings,
        pseudonym=rater.pseudonym,
        protocol=protocol_of(campaign),
        instructions=campaign.instructions,
        questions=tuple(settings.questions),
        completion_code=code,
        completion_url="" if failed and address == settings.completion_url else address,
        languages=(campaign.source_language, campaign.target_language),
        consented=rater.consented_at is not None,
        state=campaign.state,
        excluded=rater.excluded_at is not None,
    )


@dataclass(frozen=True)
class Workload:
    """A rater's work in a campaign, as announced at the start."""

    items: int  # at most: others may rate some of them first
    pages: int  # pages of these items
    practice: int  # practice items, shown first
    minutes: float  # for all items, by the campaign's minutes per item


def workload(database: Database, rater_id: int) -> Workload:
    """Return a rater's work in the campaign; RatingRefused for a rater who no longer exists."""
    with database.session() as session:
        return workload_of(session, campaign_of(session, rater_id))


def workload_of(session: Session, campaign: Campaign) -> Workload:
    kinds = item_kinds(session, campaign.id)
    practice = kinds.get(ItemKind.TUTORIAL, 0)
    items = items_in_all(session, campaign)
    checks = items - sum(count for kind, count in kinds.items() if ItemKind(kind).is_planned)
    per_item = settings_of(campaign.settings).minutes_per_item or 1.0
    pages = (
        round(count_pages(session, [campaign.id]).get(campaign.id, 0) * share_given_out(campaign)) + checks
    )
    return Workload(items, pages, practice, (items + practice) * per_item)


def consent(database: Database, rater_id: int, given: Sequence[str] = ()) -> None:
    """Store that the rater agrees to take part, with answers to the campaign's questions in their order.

    Agreeing again changes nothing. RatingRefused if the campaign is not launched, and for excluded and
    forgotten raters; WrongAnswers if answers are missing or invalid.
    """
    with database.transaction() as session:
        campaign = lock_rater(session, rater_id)
        rater = session.get_one(Rater, rater_id)
        if rater.consented_at is not None:
            return
        check_takes_part(campaign, rater)
        if questions := settings_of(campaign.settings).questions:
            rater.answers = checked_answers(questions, given)
        rater.consented_at = database.now(session)
        audit.record(session, campaign.id, rater.pseudonym, audit.RATER_CONSENTED, rater.id)


def add(
    database: Database,
    campaign: str,
    actor: str,
    *,
    pseudonym: str | None = None,
    name: str | None = None,
    subject: str | None = None,
) -> int:
    """Add a rater to the campaign with this name; return the rater's id.

    The default pseudonyms are "rater-01" and so on, by the number of raters. `name` and `subject` (for
    signing in by OpenID Connect, access/sign_in.py) identify the person and can be deleted (`forget`).
    InputError for an unknown campaign and for a pseudonym or a subject that is taken.
    """
    with database.transaction() as session:
        row = lock(session, campaign)
        return insert(session, row, actor, pseudonym, name, subject).id


def find_or_add(database: Database, campaign: str, actor: str, pseudonym: str) -> int:
    """Return the id of the campaign's rater with this pseudonym, added if new. InputError as in `add`."""
    with database.transaction() as session:
        row = lock(session, campaign)
        named = Rater.pseudonym.in_({pseudonym.strip(), normalise(pseudonym)})
        known = session.scalar(select(Rater.id).where(Rater.campaign_id == row.id, named))
        return known if known is not None else insert(session, row, actor, pseudonym).id


def insert(
    session: Session,
    campaign: Campaign,
    actor: str,
    pseudonym: str | None,
    name: str | None = None,
    subject: str | None = None,
) -> Rater:
    """Do what `add` does in the caller's transaction, which holds the campaign's lock."""
    taken = set(session.scalars(select(Rater.pseudonym).where(Rater.campaign_id == campaign.id)))
    if pseudonym is None:
        numbers = itertools.count(len(taken) + 1)
        pseudonym = next(free for number in numbers if (free := f"rater-{number:02}") not in taken)
    pseudonym = _checked(pseudonym, "pseudonym", f"{option('rater')} NAME")
    own = look(pseudonym).casefold()
    if alike := next((known for known in sorted(taken) if look(known).casefold() == own), None):
        looks = "" if alike == pseudonym else f", which looks like {pseudonym!r} or differs in case"
        raise InputError(
            f"campaign {campaign.name!r} has a rater {alike!r} already{looks}: choose another pseudonym"
        )
    if subject is not None:
        subject = sign_in.checked_subject(subject)
        sign_in.check_free(session, campaign, subject)
    rater = Rater(
        campaign_id=campaign.id,
        pseudonym=pseudonym,
        name=None if name is None else _checked(name, "name", "leave it out, or write one"),
        subject=subject,
        created_at=Database.now(session),
    )
    session.add(rater)
    session.flush()
    audit.record(session, campaign.id, actor, audit.RATER_ADDED, rater.id)
    return rater


def find(database: Database, campaign: str, pseudonym: str) -> int:
    """Return the id of a campaign's rater; InputError if either is unknown."""
    with database.session() as session:
        row = find_campaign(session, campaign)
        raters = session.scalars(select(Rater).where(Rater.campaign_id == row.id))
        ids = {rater.pseudonym: rater.id for rater in raters}
    rater_id = ids.get(pseudonym, ids.get(normalise(pseudonym)))
    if rater_id is None:
        choices = one_of(sorted(ids), pseudonym, "there are")
        raise InputError(f"campaign {campaign!r} has no rater {pseudonym!r}; {choices}")
    return rater_id


def _decide(database: Database, rater_id: int, actor: str, reason: str, *, excluded: bool) -> None:
    """Exclude a rater, or undo it. InputError without a reason, and if nothing would change.

    An excluded rater gets no more pages: ratings do not count, and places are free for others.
    """
    verb = "exclude" if excluded else "include"
    if not reason.strip():
        raise InputError(f"give a reason to {verb} this rater: the log keeps it")
    with database.transaction() as session:
        campaign, rater = _rater_under_lock(session, rater_id)
        if (rater.excluded_at is not None) == excluded:
            state = "excluded already" if excluded else "not excluded"
            raise InputError(f"rater {rater.pseudonym!r} is {state}")
        rater.excluded_at = database.now(session) if excluded else None
        mark_full(session, campaign, select(Assignment.item_id).where(Assignment.rater_id == rater_id))
        action = audit.RATER_EXCLUDED if excluded else audit.RATER_INCLUDED
        audit.record(session, campaign.id, actor, action, rater_id, reason.strip())


exclude, include = partial(_decide, excluded=True), partial(_decide, excluded=False)


def reopen(database: Database, rater_id: int, actor: str, reason: str) -> int:
    """Reopen the pages that a rater skipped and that still have a place; return their number.

    InputError without a reason or such pages, and if the campaign or the rater is not active.
    """
    if not reason.strip():
        raise InputError("give a reason: the log keeps it")
    with database.transaction() as session:
        campaign, rater = _rater_under_lock(session, rater_id)
        try:
            check_takes_part(campaign, rater)
        except RatingRefused as refused:
            raise InputError(f"rater {rater.pseudonym!r} cannot rate: {refused}") from None
        now = database.now(session)
        given = select(Assignment, Item).join(Item, Item.id == Assignment.item_id)
        skips = Assignment.rater_id == rater_id, Assignment.skipped_at.is_not(None), is_first_of_page()
        skipped = session.execute(given.where(*skips)).all()
        pages = [
            page_of(session, assignment, item)
            for assignment, item in skipped
            if keeps_place(session, campaign, item, rater_id, now)
        ]
        if not pages:
            raise InputError(
                f"rater {rater.pseudonym!r} has skipped nothing that still has a place; while the campaign "
                "runs, raters can change what they have saved"
            )
        for assignment in (assignment for page in pages for assignment in page.assignments):
            assignment.skipped_at, assignment.skip_reason, assignment.lease_until = None, "", now
        detail = {"pages": len(pages)}
        audit.record(session, campaign.id, actor, audit.RATER_REOPENED, rater_id, reason.strip(), detail)
        return len(pages)


def forget(database: Database, rater_id: int, actor: str, reason: str = "") -> None:
    """Delete a rater's identity: name, sign-in, links, sessions, and answers in their own words.

    The rater gets no more items. Ratings stay and count under the pseudonym, which therefore should not be a
    person's name; chosen answers and numbers stay, too. This cannot be undone. InputError for a rater who is
    forgotten already.
    """
    with database.transaction() as session:
        campaign, rater = _rater_under_lock(session, rater_id)
        if rater.forgotten_at is not None:
            raise InputError(f"the identity of rater {rater.pseudonym!r} is already deleted")
        now = database.now(session)
        rater.name = rater.subject = rater.participant = rater.arrival = None
        if rater.answers:  # free text may reveal the identity
            questions = settings_of(campaign.settings).questions
            closed = {question.ask for question in questions if question.options or question.number}
            rater.answers = {ask: answer for ask, answer in rater.answers.items() if ask in closed}
        rater.forgotten_at = now
        sessions.revoke_links(session, rater_id, now)
        own = update(WebSession).where(WebSession.rater_id == rater_id, WebSession.revoked_at.is_(None))
        session.execute(own.values(revoked_at=now))
        audit.record(session, campaign.id, actor, audit.RATER_FORGOTTEN, rater_id, reason.strip())


def overview(database: Database, campaign_id: int) -> list[RaterProgress]:
    """List the raters of a campaign with their progress, in the order in which they were added."""
    done = Assignment.submitted_at.is_not(None)
    tutorial, written = Item.kind == ItemKind.TUTORIAL, Item.kind.in_(WRITTEN_KINDS)
    counts = (
        func.count().filter(done, ~written),
        func.count().filter(Assignment.skipped_at.is_not(None)),
        func.count().filter(done, tutorial),
        func.max(Assignment.submitted_at),
    )
    with database.session() as session:
        attention = attention_of(session, campaign_id)
        campaign, now = session.get_one(Campaign, campaign_id), database.now(session)
        finished = finished_raters(session, campaign, now) if campaign.state == "launched" else set()
        rows = session.execute(
            select(Rater, *counts)
            .outerjoin(Assignment, Assignment.rater_id == Rater.id)
            .outerjoin(Item, Item.id == Assignment.item_id)
            .where(Rater.campaign_id == campaign_id)
            .group_by(Rater.id)
            .order_by(Rater.id)
        )
        return [
            from_row(
                RaterProgress,
                rater,
                submitted=submitted,
                skipped=skipped,
                tutorial=examples,
                attention=attention.get(rater.id, Attention()),
                last_submit=last,
                finished=rater.id in finished and rater.excluded_at is None,
                closed=campaign.state == "closed",
            )
            for rater, submitted, skipped, examples, last in rows
        ]


def _rater_under_lock(session: Session, rater_id: int) -> tuple[Campaign, Rater]:
    try:
        campaign = lock_campaign(session, rater_id)
    except RatingRefused:
        raise InputError(f"there is no rater with id {rater_id}") from None
    return campaign, session.get_one(Rater, rater_id)


def lock(session: Session, campaign: str) -> Campaign:
    """Lock the campaign of this name and return it."""
    row = find_campaign(session, campaign)
    session.refresh(row, with_for_update={"key_share": True})
    return row


def _checked(text: str, what: str, remedy: str) -> str:
    one_line = not set("\n\r") & set(text.strip())
    text = normalise(text)
    if not text:
        raise InputError(f"a rater needs a {what}: {remedy}")
    if not one_line or len(text) > MAX_NAME or not text.isprintable():
        raise InputError(f"a rater's {what} is one line of at most {MAX_NAME} printable characters: {remedy}")
    return text


# ---------------------------------------------------------------- invitations
#
# Links for many raters at once, and one link for all participants that a recruiting platform sends. Such a
# platform adds the participant to the address: Prolific adds `PROLIFIC_PID`, `STUDY_ID` and `SESSION_ID`
# (docs.prolific.com, "The study object"). Others can use `participant`. A new participant becomes a rater; a
# known participant continues.

MAX_AT_ONCE = 1000
MAX_PARTICIPANTS = 5000  # per campaign: anybody with the link can invent participants
RECRUITING = timedelta(days=90)
PARTICIPANT = ("PROLIFIC_PID", "participant")  # parameters of an address; the first one present counts
SUBMISSION = "SESSION_ID"  # a participant's visit: a secret between the participant and Prolific
ARRIVAL = ("STUDY_ID", SUBMISSION)
PLACEHOLDERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
_CODE = re.compile(r"[\w.@:+-]{1,100}", re.ASCII)


@dataclass(frozen=True)
class Invitation:
    rater: str  # the pseudonym
    secret: str  # for a link that works once


def check_invites(campaign: Campaign | CampaignSummary) -> None:
    """Raise InputError if the campaign is closed: a link for a rater would open nothing to rate."""
    if campaign.state == "closed":
        raise InputError(f"campaign {campaign.name!r} is closed, and nobody can rate in it: no link was made")


def invite(
    session: Session, campaign: str, actor: str, wanted: Sequence[str] | int, *, surplus: bool = False
) -> list[Invitation]:
    """Make a link for each of the named raters, adding unknown ones, or for a number of new raters.

    InputError, without making any link, for an unknown or closed campaign and for pseudonyms that are
    invalid, named twice or too many; without `surplus` also if some raters would find nothing to rate.
    """
    count = wanted if isinstance(wanted, int) else len(wanted)
    if not 1 <= count <= MAX_AT_ONCE:
        raise InputError(f"links for 1 to {MAX_AT_ONCE:,} raters can be made at once, not for {count:,}")
    named: Sequence[str | None] = (
        [None] * wanted if isinstance(wanted, int) else [normalise(pseudonym) for pseudonym in wanted]
    )
    if twice := {pseudonym for pseudonym in named if pseudonym is not None and named.count(pseudonym) > 1}:
        raise InputError(f"a rater is named twice: {min(twice)!r}")
    row, now = lock(session, campaign), Database.now(session)
    check_invites(row)
    raters = session.scalars(select(Rater).where(Rater.campaign_id == row.id))
    known = {rater.pseudonym: rater for rater in raters}
    new = sum(pseudonym not in known for pseudonym in named)
    free = max(0, additional_raters(session, row, now))
    if new > free and not surplus:
        fewer = f"Ask for {free:,}, or use" if free else "Use"
        raise InputError(
            f"campaign {campaign!r} has pages for {counted(free, 'more rater')}, so {new - free:,} of "
            f"{counted(new, 'new rater')} would find nothing to rate. {fewer} {option('surplus')}, since "
            "some may not come",
            about="surplus",
        )
    invitations = []
    for pseudonym in named:
        rater = known.get(pseudonym or "") or insert(session, row, actor, pseudonym)
        sessions.rater_with_identity(session, rater.id)
        secret = sessions.add_link(session, "rater", now, rater_id=rater.id, campaign_id=row.id)
        invitations.append(Invitation(rater.pseudonym, secret))
    detail = {"role": "rater", "links": len(invitations)}
    audit.record(session, row.id, actor, audit.LINK_CREATED, detail=detail)
    return invitations


def additional_raters(session: Session, campaign: Campaign, now: datetime) -> int:
    """Return how many more raters would each find a page to rate now."""
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
    undrawn = Item.drawn.is_(None) & (Item.kind != ItemKind.THIRD)
    places = (
        select(func.sum(left).filter(~undrawn), func.sum(left).filter(undrawn))
        .outerjoin_from(Item, taken, taken.c.item_id == Item.id)
        .where(
            Item.campaign_id == campaign.id,
            Item.kind.in_((*SYSTEM_KINDS, ItemKind.THIRD)),
            Item.drawn.is_not(False),  # False: passed over
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
    known, expected = (number or 0 for number in session.execute(places, values).one())
    all_places = known + round(expected * share_given_out(campaign))
    return all_places - (session.scalar(waiting, values) or 0)


def links_csv(invitations: Sequence[Invitation], url: str) -> str:
    """Return a CSV table of the links, with a header."""
    links = [[text_to_cell(each.rater), f"{url}/enter#{each.secret}"] for each in invitations]
    return csv_of([["rater", "link"], *links], "\n")


def recruit(database: Database, campaign: str, actor: str) -> str:
    """Make one link for all participants of a campaign, valid for 90 days; return its secret.

    InputError for an unknown or closed campaign.
    """
    with database.transaction() as session:
        row = find_campaign(session, campaign)
        check_invites(row)
        secret = sessions.add_link(session, "rater", database.now(session), RECRUITING, campaign_id=row.id)
        detail = {"role": "participants"}
        audit.record(session, row.id, actor, audit.LINK_CREATED, detail=detail)
    return secret


def recruiting_address(url: str, secret: str) -> str:
    """Return the study's address for Prolific, which replaces the parts in braces."""
    return f"{url}/enter?{PLACEHOLDERS}#{secret}"


def join(database: Database, secret: str, query: Mapping[str, str]) -> sessions.OpenedSession | None:
    """Open a session for the participant in this query, by a link for participants.

    Return None for any other secret. AccessRefused if the query names no participant, a participant whose
    links were revoked or whose first visit had another `SUBMISSION`, or if the campaign is full.
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
    participant = next((query[name] for name in PARTICIPANT if name in query), "")
    if not _CODE.fullmatch(participant):
        raise sessions.AccessRefused("Open this link from the page on which you found the study.")
    with database.transaction() as session:
        now = database.now(session)
        campaign = session.get_one(Campaign, campaign_id, with_for_update={"key_share": True})
        rater = _rater_of(session, campaign, participant)
        if sessions.is_revoked(session, rater.id):
            raise sessions.AccessRefused(
                "Your link to this evaluation was revoked. Ask whoever organises it for a new one."
            )
        first_visit = (rater.arrival or {}).get(SUBMISSION)
        if first_visit is not None and first_visit != query.get(SUBMISSION):
            raise sessions.AccessRefused(
                "Someone has begun with this participant number. If it is yours, open the link on the page "
                "where you found the study, or ask for a link of your own."
            )
        rater.arrival = {
            name: query[name] for name in ARRIVAL if _CODE.fullmatch(query.get(name, ""))
        } or None
        audit.record(session, campaign.id, rater.pseudonym, audit.SIGNED_IN, rater.id)
        return sessions.open_for_rater(session, rater, now)


def _rater_of(session: Session, campaign: Campaign, participant: str) -> Rater:
    of_campaign = Rater.campaign_id == campaign.id
    rater = session.scalar(select(Rater).where(of_campaign, Rater.participant == participant))
    if rater is None:
        taken = session.scalar(select(func.count(Rater.participant)).where(of_campaign))
        if (taken or 0) >= MAX_PARTICIPANTS:
            raise sessions.AccessRefused("This evaluation is full; nobody else can join it.")
        rater = insert(session, campaign, "participants' link", None)
        rater.participant = participant
    return rater
