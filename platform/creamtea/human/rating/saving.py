"""Store a page's drafts, answers and skips once, all or nothing; reopen submitted pages to revise them.

`assignment_id` may belong to any item of the page. A page's answers are one list, item by item. Its comment
is stored with the first item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

from sqlalchemy import Insert, and_, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from creamtea.human.making.known_answers import MAX_WARNINGS, is_right
from creamtea.human.making.proposals import check_proposed
from creamtea.human.protocols import Protocol, ScoredAnswer
from creamtea.human.protocols.spans import ExpectedSpan, as_expected, spans_of, which_are_marked
from creamtea.human.rating.drawing import as_work
from creamtea.human.rating.page import (
    LEASE,
    DocumentScore,
    Earlier,
    Guidance,
    RaterPage,
    RatingRefused,
    Submitted,
    TryAgain,
    Work,
    active_rater,
    campaign_of,
    document_score_of,
    load_page,
    lock_page,
    protocol_of,
    shown_outputs,
    shown_proposals,
)
from creamtea.human.rating.places import keeps_place, load_outlook, mark_full
from creamtea.store.database import Database
from creamtea.store.rows import check_size, check_text
from creamtea.store.tables import SYSTEM_KINDS, Assignment, Item, ItemKind, Rating
from creamtea.wording import counted

GIVEN_AWAY = "this item was given to someone else while the page was open; go on with the next one"
MAX_TEXT = 2000  # characters of a comment or of a reason
Stored = dict[int, dict[int, ScoredAnswer]]  # revision → system's position → answer
_MAX_MS = 2**31 - 1  # the column's maximum, 24 days


def save_draft(
    database: Database,
    rater_id: int,
    assignment_id: int,
    answers: Sequence[Any],
    comment: str = "",
    revision: int = 1,
    document: Sequence[Any] = (),
) -> None:
    """Store the rater's draft (None: an output without an answer) and renew the lease.

    Raise RatingRefused if `revision`, which the draft prepares, is already submitted, or if the page is
    skipped or not this rater's. If the page's place went to somebody else meanwhile, the draft is kept and
    RatingRefused tells the rater why another page follows.
    """
    lost = False
    with database.transaction() as session:
        campaign, page = lock_page(session, rater_id, assignment_id)
        active_rater(session, campaign, rater_id)
        _check_not_skipped(page)
        if revision != newest_revision(stored_answers(session, page)) + 1:
            raise RatingRefused("this item is already saved")
        protocol = protocol_of(campaign)
        _check_text(comment, "comment")
        for assignment, item, drafted in page.with_answers(answers):
            check_draft(protocol, drafted, shown_outputs(item, assignment.order))
            _check_proposed(drafted, item, assignment)
            own_comment = comment if assignment is page.first_assignment else ""
            assignment.draft = {"answers": drafted, "comment": own_comment, "revision": revision}
        _check_document(protocol, document, document_score_of(session, campaign, page), drafted=True)
        if document:
            page.first_assignment.draft = {**(page.first_assignment.draft or {}), "document": list(document)}
        now = database.now(session)
        if page.first_assignment.submitted_at is None:
            lost = not keeps_place(session, campaign, page.first_item, rater_id, now)
            for assignment in page.assignments if not lost else ():
                assignment.lease_until = now + LEASE
    if lost:
        raise RatingRefused(GIVEN_AWAY)


def submit(
    database: Database,
    rater_id: int,
    assignment_id: int,
    answers: Sequence[Any],
    revision: int = 1,
    comment: str = "",
    active_ms: int | None = None,
    document: Sequence[Any] = (),
) -> Submitted:
    """Store the answers to a page once: one per shown output.

    `document`: scores of whole documents, one per distinct text, if the campaign asks for them. `active_ms`:
    milliseconds on the page, stored with the first revision and split over the items.

    If the revision is already stored, return the stored answers and ignore the new ones: a double click does
    no harm. The next revision adds rows and keeps the old ones; only the newest comment is kept.

    Raise RatingRefused if the page is skipped or not this rater's, if answers are missing or impossible, if
    the lease ran out and the page's places went to others, or if the campaign or the rater is not active.
    Raise TryAgain for a wrong answer to a loud attention check.
    """
    with database.transaction() as session:
        campaign, page = lock_page(session, rater_id, assignment_id)
        stored = stored_answers(session, page)
        if revision in stored[0]:
            document_score = document_score_of(session, campaign, page)
            # equal answers are a double click; different ones come from a second tab, which tells the rater
            differs = _answers_differ(page, protocol_of(campaign), stored, revision, answers)
            if revision == newest_revision(stored):  # older revisions have no comment
                differs |= comment != (page.first_assignment.comment or "")
            differs |= list(document) != document_score.stored(session, page, revision)
            submitted = _submitted(session, page, revision, stored, document_score)
            return replace(submitted, differs=bool(answers) and differs)
        active_rater(session, campaign, rater_id)
        _check_not_skipped(page)
        if revision != newest_revision(stored) + 1:
            raise RatingRefused(f"revision {revision} does not follow {newest_revision(stored)}")
        protocol = protocol_of(campaign)
        scored = []
        for assignment, item, given in page.with_answers(answers):
            scored.append(read_answers(protocol, given, shown_outputs(item, assignment.order)))
            _check_proposed(given, item, assignment)
        document_score = document_score_of(session, campaign, page)
        _check_document(protocol, document, document_score, drafted=False)
        _check_text(comment, "comment")
        now = database.now(session)
        if page.first_assignment.submitted_at is None:
            if not keeps_place(session, campaign, page.first_item, rater_id, now):
                raise RatingRefused(GIVEN_AWAY)
            if (warning := _warning(page, scored[0])) is not None:
                page.first_assignment.warned += 1
                session.commit()  # the wrong answer is counted, though nothing else is stored
                raise TryAgain(warning)
            spent = _split_time(page, active_ms, now - page.first_assignment.created_at)
            for assignment, item_ms in zip(page.assignments, spent, strict=True):
                assignment.submitted_at = now
                assignment.active_ms = item_ms
            if page.first_item.kind in SYSTEM_KINDS:
                mark_full(session, campaign, [item.id for item in page.items])
        page.first_assignment.comment = comment
        for assignment, of_item, answered in zip(page.assignments, stored, scored, strict=True):
            each = zip(assignment.order, answered, strict=True)
            of_item[revision] = {system: answer for group, answer in each for system in group}
        # `_check_document` has compared the lengths
        of_texts = zip(document_score.groups, document, strict=True)
        document_steps = {system: step for group, step in of_texts for system in group}
        _insert_ratings(session, page, stored, revision, document_steps, now)
        return _submitted(session, page, revision, stored, document_score)


def _answers_differ(
    page: RaterPage, protocol: Protocol, stored: list[Stored], revision: int, answers: Sequence[Any]
) -> bool:
    """Return True if these answers differ from the answers stored as this revision."""
    try:
        return any(
            read_answers(protocol, given, shown_outputs(item, assignment.order))
            != [of_item[revision][group[0]] for group in assignment.order]
            for (assignment, item, given), of_item in zip(page.with_answers(answers), stored, strict=True)
        )
    except RatingRefused:
        return True


def skip(database: Database, rater_id: int, assignment_id: int, reason: str) -> None:
    """Give the page's place back, with a reason for the organiser.

    The page returns only if an organiser reopens it (`raters.reopen`). Skipping again changes nothing. Raise
    RatingRefused without a reason, for a tutorial item, and for a page that is submitted or not this rater's.
    """
    with database.transaction() as session:
        campaign, page = lock_page(session, rater_id, assignment_id)
        active_rater(session, campaign, rater_id)
        if page.first_assignment.skipped_at is not None:
            return
        if page.first_assignment.submitted_at is not None:
            raise RatingRefused("this item is already saved; change its scores instead")
        if page.first_item.kind == ItemKind.TUTORIAL:
            raise RatingRefused("practice items cannot be skipped: answer to continue")
        if not reason.strip():
            raise RatingRefused("say why you skip this item")
        _check_text(reason, "reason")
        now = database.now(session)
        for assignment in page.assignments:
            assignment.skipped_at = now
            assignment.skip_reason = reason.strip()


def stored_answers(session: Session, page: RaterPage) -> list[Stored]:
    """Return the stored answers to each item of the page."""
    of_assignment: dict[int, Stored] = {assignment.id: {} for assignment in page.assignments}
    rows = session.execute(_RATINGS_OF, {"assignments": list(of_assignment)})
    for assignment_id, revision, system, step, payload in rows:
        of_assignment[assignment_id].setdefault(revision, {})[system] = ScoredAnswer(step, payload)
    return list(of_assignment.values())


_RATINGS_OF = select(Rating.assignment_id, Rating.revision, Rating.system, Rating.step, Rating.payload).where(
    Rating.assignment_id.in_(bindparam("assignments", expanding=True))
)


def newest_revision(stored: list[Stored]) -> int:
    """Return the newest revision of the page and so of each item; 0 before the first."""
    return max(stored[0], default=0)


def read_answers(protocol: Protocol, answers: Sequence[Any], outputs: Sequence[str]) -> list[ScoredAnswer]:
    """Convert answers to their stored form. Raise RatingRefused if one is missing or impossible."""
    if any(answer is None for answer in answers):
        raise RatingRefused("an output has no score yet")
    try:
        check_size(list(answers))
        return protocol.read(answers, outputs)
    except ValueError as error:
        raise RatingRefused(str(error)) from None


def check_draft(protocol: Protocol, answers: Sequence[Any], outputs: Sequence[str]) -> None:
    """Raise RatingRefused if no rater can have drafted these answers. None: not yet answered."""
    try:
        check_size(list(answers))
        for answer, output in zip(answers, outputs, strict=True):
            if answer is not None:
                protocol.check_draft(answer, output)
    except ValueError as error:
        raise RatingRefused(str(error)) from None


def _check_proposed(answers: Sequence[Any], item: Item, assignment: Assignment) -> None:
    try:
        for answer, proposed in zip(answers, shown_proposals(item, assignment.order), strict=True):
            check_proposed(answer, proposed)
    except ValueError as error:
        raise RatingRefused(str(error)) from None


def _check_document(
    protocol: Protocol, given: Sequence[Any], document_score: DocumentScore, *, drafted: bool
) -> None:
    """Raise RatingRefused if document scores are too many, too few, or not on the scale."""
    texts = len(document_score.groups)
    if len(given) != texts and not (drafted and not given):
        raise RatingRefused(f"{counted(len(given), 'score')} of the whole document instead of {texts}")
    try:
        for step in given:
            if step is not None or not drafted:
                protocol.scale.check(step)
    except ValueError as error:
        raise RatingRefused(f"the score of the whole document: {error}") from None


def _check_not_skipped(page: RaterPage) -> None:
    if page.first_assignment.skipped_at is not None:
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


def _warning(page: RaterPage, scored: Sequence[ScoredAnswer]) -> str | None:
    """Return the warning of a loud attention check if the answer is wrong; None to store the answer.

    An attention check is alone on its page.
    """
    guidance = page.first_item.guidance
    if (
        page.first_item.kind != ItemKind.ATTENTION
        or guidance is None
        or page.first_assignment.warned >= MAX_WARNINGS
    ):
        return None
    answers = {group[0]: answer for group, answer in zip(page.first_assignment.order, scored, strict=True)}
    return None if is_right(guidance, answers) else guidance["warning"]


def _split_time(page: RaterPage, active_ms: int | None, elapsed: timedelta) -> list[int | None]:
    """Split the time on the page [ms] over its items, by the characters to read.

    The browser's time is cut to the time that elapsed at the server. The true time of each item is unknown:
    some raters read the whole page before they score.
    """
    if active_ms is None:
        return [None] * len(page.items)
    if type(active_ms) is not int or active_ms < 0:
        raise RatingRefused(f"a time is a whole number of milliseconds, not {active_ms!r}")
    active_ms = min(active_ms, max(elapsed // timedelta(milliseconds=1), 0), _MAX_MS)
    lengths = [
        len(item.source) + sum(map(len, shown_outputs(item, assignment.order))) + 1
        for item, assignment in zip(page.items, page.assignments, strict=True)
    ]
    ends = [active_ms * end // sum(lengths) for end in accumulate(lengths, initial=0)]
    return [end - start for start, end in pairwise(ends)]


def _insert_ratings(
    session: Session,
    page: RaterPage,
    stored: Sequence[Stored],
    revision: int,
    document: Mapping[int, int],
    now: datetime,
) -> None:
    """Store a revision. A row with the same unique key (assignment, system, revision) stays as it is."""
    rows = [
        {
            "assignment_id": assignment.id,
            "system": system,
            "revision": revision,
            "step": answer.step,
            "payload": answer.payload,
            "document_step": document.get(system) if assignment is page.first_assignment else None,
            "created_at": now,
        }
        for assignment, of_item in zip(page.assignments, stored, strict=True)
        for system, answer in of_item[revision].items()
    ]
    # through the connection: the session need not hold the rows, and the driver inserts them together
    session.connection().execute(_insert(session.get_bind().dialect.name), rows)


@cache
def _insert(dialect: str) -> Insert:
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert(Rating).on_conflict_do_nothing()


def _submitted(
    session: Session, page: RaterPage, revision: int, stored: list[Stored], document_score: DocumentScore
) -> Submitted:
    of_texts = zip(document_score.groups, document_score.stored(session, page, revision), strict=True)
    document = {system: step for group, step in of_texts if step is not None for system in group}
    steps = [{system: answer.step for system, answer in of_item[revision].items()} for of_item in stored]
    return Submitted(
        page.first_assignment.id, revision, steps, guidance_of(page, stored[0][revision]), document
    )


def earlier(database: Database, rater_id: int) -> list[Earlier]:
    """List the rater's submitted pages without practice, the newest last."""
    newest = (
        select(Rating.assignment_id, func.max(Rating.revision).label("revision"))
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .where(Assignment.rater_id == rater_id)
        .group_by(Rating.assignment_id)
        .subquery()
    )
    with database.session() as session:
        protocol = protocol_of(campaign_of(session, rater_id))
        answers: dict[int, dict[int, ScoredAnswer]] = defaultdict(dict)  # by assignment and system
        is_newest = newest.c.assignment_id == Rating.assignment_id, newest.c.revision == Rating.revision
        stored = select(Rating.assignment_id, Rating.system, Rating.step, Rating.payload)
        for assignment_id, system, step, payload in session.execute(stored.join(newest, and_(*is_newest))):
            answers[assignment_id][system] = ScoredAnswer(step, payload)
        columns = (Assignment.id, Assignment.order, Item.source, newest.c.revision, Item.page, Item.position)
        rows = session.execute(
            select(*columns)
            .join(Item, Item.id == Assignment.item_id)
            .join(newest, newest.c.assignment_id == Assignment.id)
            .where(
                Assignment.rater_id == rater_id,
                Assignment.submitted_at.is_not(None),
                Item.kind != ItemKind.TUTORIAL,
            )
            .order_by(Assignment.submitted_at, Item.position)
        ).all()
    pages: dict[int, Earlier] = {}  # by the position of their first item
    for number, (assignment_id, order, source, revision, page, position) in enumerate(rows, start=1):
        first = position if page is None else page
        given = protocol.in_words([answers[assignment_id][group[0]] for group in order])
        if (so_far := pages.get(first)) is not None:
            pages[first] = replace(so_far, items=so_far.items + 1, given=f"{so_far.given} | {given}")
        else:
            pages[first] = Earlier(assignment_id, number, source, revision, given)
    return list(pages.values())


def discard_draft(database: Database, rater_id: int, assignment_id: int) -> None:
    """Discard the draft of a submitted page, whose stored answers stay.

    A page that is not submitted keeps its draft. Raise RatingRefused for another rater's page.
    """
    with database.transaction() as session:
        _, page = lock_page(session, rater_id, assignment_id)
        newest = newest_revision(stored_answers(session, page))
        if newest == 0:
            return
        for assignment in page.assignments:
            if assignment.draft is not None and assignment.draft.get("revision", 0) > newest:
                assignment.draft = None


def reopen(database: Database, rater_id: int, assignment_id: int) -> Work:
    """Open a submitted page to revise it, with the stored answers or a newer draft.

    Raise RatingRefused if the page is not submitted or not this rater's, or if the campaign or the rater is
    no longer active.
    """
    with database.session() as session:
        campaign = campaign_of(session, rater_id)
        rater = active_rater(session, campaign, rater_id)
        page = load_page(session, rater_id, assignment_id)
        stored = stored_answers(session, page)
        if page.first_assignment.submitted_at is None or not stored[0]:
            raise RatingRefused("this item is not saved yet")
        revision = newest_revision(stored)
        document_score = document_score_of(session, campaign, page)
        answers, document, comment = None, None, None  # a newer draft has its own
        if (page.first_assignment.draft or {}).get("revision") != revision + 1:
            answers = [
                of_item[revision][group[0]].answer
                for assignment, of_item in zip(page.assignments, stored, strict=True)
                for group in assignment.order
            ]
            document = document_score.stored(session, page, revision)
            comment = page.first_assignment.comment
        outlook = load_outlook(session, campaign, rater, database.now(session))
    return as_work(
        *(campaign, page, outlook, document_score),
        draft=answers,
        document=document,
        comment=comment,
        revision=revision + 1,
    )


def practice_guidance(
    database: Database, rater_id: int, assignment_id: int, revision: int
) -> Guidance | None:
    """Return a practice item's feedback to a stored answer; None for other items and without an answer."""
    with database.session() as session:
        page = load_page(session, rater_id, assignment_id)
        answers = stored_answers(session, page)[0].get(revision)
        return None if answers is None else guidance_of(page, answers)


def guidance_of(page: RaterPage, answers: Mapping[int, ScoredAnswer]) -> Guidance | None:
    """Compare answers, by system, with the accepted ones of a practice item; None for other items."""
    guidance = page.first_item.guidance
    if guidance is None or page.first_item.kind != ItemKind.TUTORIAL:
        return None
    lesson = Guidance(guidance["explanation"])
    for group in page.first_assignment.order:
        system, answer = str(group[0]), answers[group[0]]
        steps, expected = guidance["steps"].get(system), guidance.get("spans", {}).get(system)
        lesson.accepted.append(None if steps is None else (steps[0], steps[1]))
        lesson.right.append(steps is None or steps[0] <= answer.step <= steps[1])
        spans = [] if expected is None else spans_of(answer.payload)
        hits = which_are_marked([ExpectedSpan.model_validate(span) for span in expected or ()], spans)
        lesson.spans.append(expected)
        lesson.found.append(hits)
        lesson.marked.append(expected is None or as_expected(expected, spans))
    return lesson
