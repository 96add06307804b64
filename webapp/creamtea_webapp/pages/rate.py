"""The rating page: the only one that a rater gets. It names neither study nor systems.

What is on the screen follows from the database and the address alone, so that a reload, a second tab and a
restarted server show the same: `?view=earlier` the list of saved items, `?again=ID` a saved item to change,
`?answer=ID` what was expected of a practice item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from creamtea.human import rating as assignment
from creamtea.human.making.questions import WrongAnswers
from creamtea.human.rating import ConsentMissing, Guidance, RatingRefused, TryAgain, Work, raters
from creamtea.human.rating.raters import Welcome
from creamtea.store.rows import MAX_ID, row_id
from creamtea_webapp import session
from creamtea_webapp.board import BoardState, Notice, board
from creamtea_webapp.board.earlier import earlier_items
from creamtea_webapp.pages import welcome as words

NOTICE = "rating-notice"
ELSEWHERE = "This item was already saved in another tab with other values. Open Earlier items to change it."
VIEW, AGAIN, ANSWER = "view", "again", "answer"  # of the address


def page() -> None:
    rater_id = session.require_rater()
    try:
        known = raters.welcome(session.database(), rater_id)
        if known.state != "launched":
            words.not_open(known)
        elif not (known.consented or known.excluded):
            words.consent(known, raters.workload(session.database(), rater_id), on_agree=_consent)
        else:
            _rating(known, rater_id)
    except RatingRefused as refused:  # excluded or forgotten, or the campaign closed a moment ago
        words.ended(str(refused))


def _rating(known: Welcome, rater_id: int) -> None:
    database = session.database()
    saved = assignment.earlier(database, rater_id)
    if st.query_params.get(VIEW) == "earlier":
        earlier_items(saved, known.languages[0], on_act=_act)
        words.instructions(known)
        return
    notice = st.session_state.get(NOTICE, Notice())
    with st.empty():  # holds one element: the old board goes as the new one comes
        if (answered := _answered(rater_id)) is not None:
            work, guidance = answered
            board(work, BoardState(work.done, notice, feedback=guidance), on_draft=_draft, on_act=_act)
        elif (again := _asked_for(AGAIN, rater_id)) is not None:
            number = next((one.number for one in saved if one.assignment_id == again.assignment_id), 1)
            board(again, BoardState(number, notice, revising=True), on_draft=_draft, on_act=_act)
        elif (next_one := assignment.next_item(database, rater_id)) is not None:
            shown = BoardState(next_one.done + 1, notice, earlier=bool(saved))
            board(next_one, shown, on_draft=_draft, on_act=_act)
        else:
            away = not saved and assignment.others_have_items(database, rater_id)
            words.all_done(known, len(saved), away, on_earlier=lambda: _go(VIEW, "earlier"))
    words.instructions(known)


def _answered(rater_id: int) -> tuple[Work, Guidance] | None:
    """The practice item that the address names, with what was expected."""
    answered = _asked_for(ANSWER, rater_id)
    if answered is None:
        return None
    guidance = assignment.practice_guidance(
        session.database(), rater_id, answered.assignment_id, answered.revision - 1
    )
    return None if guidance is None else (answered, guidance)


def _asked_for(name: str, rater_id: int) -> Work | None:
    """The saved item that the address names; None without one that is this rater's."""
    asked = row_id(st.query_params.get(name, ""))
    if asked is None:
        return None
    try:
        return assignment.reopen(session.database(), rater_id, asked)
    except RatingRefused:
        return None


def _go(name: str | None = None, value: str = "") -> None:
    """To the current item, or where one part of the address says."""
    st.query_params.from_dict({name: value} if name else {})


# ---------------------------------------------------------------- what the browser sends
# One callback, one transaction: Streamlit may abort a running script, but not in here, since nothing here
# draws on the page.


def _consent() -> None:
    who = session.identity()
    if who is not None and who.rater_id is not None:
        try:
            raters.consent(session.database(), who.rater_id, words.given_answers(st.session_state))
        except WrongAnswers as wrong:
            st.session_state[words.WRONG] = wrong.messages
        except RatingRefused:
            pass  # the page says why


def _draft(sent: Any) -> None:
    def keep(rater_id: int, assignment_id: int) -> None:
        answers, comment, revision = sent.get("answers"), sent.get("comment"), sent.get("revision")
        document = sent.get("document", [])
        if isinstance(answers, list) and isinstance(document, list) and type(revision) is int:
            assignment.save_draft(
                session.database(), rater_id, assignment_id, answers, comment, revision, document
            )

    _do(sent, keep)


def _act(sent: Any) -> None:
    kind = sent.get("kind") if isinstance(sent, dict) else None
    if kind == "earlier":
        _go(VIEW, "earlier")
    elif kind == "again":
        _do(sent, lambda rater_id, assignment_id: _go(AGAIN, str(assignment_id)))
    elif kind == "current":  # from a saved item, which stays as it was, or from the list of them
        _go()
        _do(sent, _discard)
    elif kind == "continue":
        _go()
    elif kind == "skip":
        _do(sent, lambda rater_id, assignment_id: _skip(sent, rater_id, assignment_id))
    elif kind == "save":
        _do(sent, lambda rater_id, assignment_id: _save(sent, rater_id, assignment_id))


def _discard(rater_id: int, assignment_id: int) -> None:
    assignment.discard_draft(session.database(), rater_id, assignment_id)


def _skip(sent: dict[str, Any], rater_id: int, assignment_id: int) -> None:
    reason = sent.get("reason")
    if isinstance(reason, str):
        assignment.skip(session.database(), rater_id, assignment_id, reason)


def _save(sent: dict[str, Any], rater_id: int, assignment_id: int) -> str | None:
    """What to tell the rater, if anything."""
    answers, revision = sent.get("answers"), sent.get("revision")
    document = sent.get("document", [])
    if not isinstance(answers, list) or not isinstance(document, list) or type(revision) is not int:
        return None
    stored = assignment.submit(
        session.database(),
        rater_id,
        assignment_id,
        answers,
        revision,
        comment=sent.get("comment", ""),
        active_ms=sent.get("active_ms"),
        document=document,
    )
    if stored.guidance is not None:
        _go(ANSWER, str(assignment_id))
    else:
        _go()
    return ELSEWHERE if stored.differs else None


def _do(sent: Any, act: Callable[[int, int], str | None]) -> None:
    """Act for the rater on the item that was sent, if it looks like one; a refusal, and what `act` returns,
    is told on the page."""
    who = session.identity()
    if who is None or who.rater_id is None or not isinstance(sent, dict):
        return
    assignment_id = sent.get("assignment")
    if type(assignment_id) is not int or not 0 < assignment_id <= MAX_ID:
        return
    try:
        told = act(who.rater_id, assignment_id)
    except ConsentMissing:
        return  # the page asks for it
    except TryAgain as warning:
        _notice(str(warning))
    except RatingRefused as refused:
        reason = str(refused)
        _notice(f"{reason[:1].upper()}{reason[1:]}.")
    else:
        # numbers go on: the browser knows by them which notices it has shown
        if told is not None or st.session_state.get(NOTICE, Notice()).text:
            _notice(told or "")


def _notice(text: str) -> None:
    last = st.session_state.get(NOTICE, Notice())
    st.session_state[NOTICE] = Notice(text, last.number + 1)
