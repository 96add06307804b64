"""The rating page, the only one that a rater gets, with the texts before, beside and after rating.

Instructions and the text of the consent are Markdown by the organiser (`creamtea_webapp.markup.markdown`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from creamtea.human import rating
from creamtea.human.making.questions import MAX_ANSWER, Question, WrongAnswers
from creamtea.human.rating import ConsentMissing, Guidance, RatingRefused, TryAgain, Work, raters
from creamtea.human.rating.raters import Welcome, Workload
from creamtea.store.rows import MAX_ID, row_id
from creamtea_webapp import session
from creamtea_webapp.board import BoardState, Notice, board, earlier_items
from creamtea_webapp.markup import markdown, show

TEMPLATE = "welcome.html"
WIDTH = 720  # pixels of running text
# messages for a rater who has rated nothing: others have the last items, or none is left
AWAY = (
    "Nothing to rate at the moment",
    "Others are working on the last items. If any are left unfinished, you can rate them: try again in two "
    "hours.",
)
NOTHING_LEFT = ("All done", "Nothing is left to rate. Thank you for your time!")
NOTICE = "rating-notice"
ELSEWHERE = "This item was already saved in another tab with other values. Open Earlier items to change it."
VIEW, AGAIN, ANSWER = "view", "again", "answer"  # keys in the address
ABOUT, WRONG = "about-rater-", "wrong-about-rater"  # answers about the rater, and mistakes in them


def consent(known: Welcome, workload: Workload, on_agree: Callable[[], None]) -> None:
    """Show the first page: what this is about, what is kept, questions about the rater, and the button.

    It is a form: leaving a field by pressing the button does not redraw the page under that press.
    """
    with _column(), st.form("taking-part", border=False, enter_to_submit=False):
        show(TEMPLATE, "task", text=known.protocol.welcome, languages=known.languages, workload=workload)
        if known.instructions.strip():
            show(TEMPLATE, "written", text=markdown(known.instructions))
        show(TEMPLATE, "taking_part", pseudonym=known.pseudonym, contact=known.contact)
        if known.consent.strip():
            show(TEMPLATE, "written", text=markdown(known.consent))
        if known.questions:
            _ask(known.questions)
        st.form_submit_button("I agree, begin", type="primary", on_click=on_agree)


def _ask(questions: Sequence[Question]) -> None:
    show(TEMPLATE, "about_you")
    wrong: dict[int, str] = st.session_state.pop(WRONG, {})
    for number, question in enumerate(questions):
        label = question.ask + (" (optional)" if question.optional else "")
        show(TEMPLATE, "question", text=label)  # Streamlit would read it as Markdown
        widget: dict[str, Any] = {"label_visibility": "collapsed", "key": f"{ABOUT}{number}"}
        if question.options:
            st.selectbox(label, question.options, None, placeholder="Choose", **widget)
        else:
            st.text_input(label, max_chars=MAX_ANSWER, **widget)
        if number in wrong:
            show("parts.html", "field_error", message=wrong[number])
    if wrong:
        show("parts.html", "field_error", message="Some answers are missing or invalid: see above.")


def given_answers(state: Any) -> list[str]:
    """Return the answers about the rater, in the order of the questions."""
    answers = {int(key.removeprefix(ABOUT)): state[key] for key in state if str(key).startswith(ABOUT)}
    return [str(answers.get(number) or "") for number in range(max(answers, default=-1) + 1)]


def instructions(known: Welcome) -> None:
    """Show the organiser's instructions and contact, folded away below what the rater does."""
    text = markdown(known.instructions) if known.instructions.strip() else ""
    if text or known.contact:
        show(TEMPLATE, "instructions", text=text, contact=known.contact)


def domain_instructions(above: DeltaGenerator, work: Work) -> None:
    """Show what the organiser wrote for the page's domain, above the board."""
    if work.instructions.strip():
        with above:
            show(TEMPLATE, "domain", text=markdown(work.instructions))


def all_done(known: Welcome, saved: int, away: bool, on_earlier: Callable[[], None]) -> None:
    """Show that nothing is left to rate, with the completion code for raters who have rated something.

    `away`: other raters have the last items.
    """
    with _column():
        if not saved:
            _message(*(AWAY if away else NOTHING_LEFT))
            return
        items = "1 item is" if saved == 1 else f"{saved:,} items are"
        close = "" if known.completion_url else " You can close this page."
        _message("All done", f"{items} rated and saved. Thank you!{close}")
        if known.completion_code or known.completion_url:
            show(TEMPLATE, "completion", code=known.completion_code, address=known.completion_url)
        st.button("Look at earlier items", on_click=on_earlier)


def not_open(known: Welcome) -> None:
    """Show that a campaign is not launched yet, or closed."""
    with _column():
        if known.state == "draft":
            _message("Not open yet", "This evaluation has not started. Come back when you hear that it has.")
        else:
            _message(
                "Closed", "This evaluation is closed. What you saved is kept. Thank you for taking part!"
            )


def ended(why: str) -> None:
    with _column():
        _message("Your part has ended", f"{why[:1].upper()}{why[1:]}.")


@contextmanager
def _column() -> Iterator[None]:
    """Put running text in the middle of the page, with buttons that a thumb hits."""
    with st.container(horizontal_alignment="center"), st.container(width=WIDTH, key="rater-text"):
        yield


def _message(heading: str, text: str) -> None:
    show("parts.html", "head", text=heading, lead=text)


# ---------------------------------------------------------------- the page
#
# It names neither study nor systems. What is on the screen follows from the database and the address alone,
# so that a reload, a second tab and a restarted server show the same: `?view=earlier` the list of saved
# items, `?again=ID` a saved item to change, `?answer=ID` what was expected of a practice item.


def page() -> None:
    rater_id = session.require_rater()
    try:
        known = raters.welcome(session.database(), rater_id)
        if known.state != "launched":
            not_open(known)
        elif not (known.consented or known.excluded):
            consent(known, raters.workload(session.database(), rater_id), on_agree=_consent)
        else:
            _rating(known, rater_id)
    except RatingRefused as refused:  # excluded or forgotten, or the campaign closed a moment ago
        ended(str(refused))


def _rating(known: Welcome, rater_id: int) -> None:
    database = session.database()
    saved = rating.earlier(database, rater_id)
    if st.query_params.get(VIEW) == "earlier":
        earlier_items(saved, known.languages[0], on_act=_act)
        instructions(known)
        return
    notice = st.session_state.get(NOTICE, Notice())
    above = st.empty()
    with st.empty():  # holds one element: the old board goes as the new one comes
        if (answered := _answered(rater_id)) is not None:
            work, guidance = answered
            domain_instructions(above, work)
            board(work, BoardState(work.done, notice, feedback=guidance), on_draft=_draft, on_act=_act)
        elif (again := _asked_for(AGAIN, rater_id)) is not None:
            number = next((item.number for item in saved if item.assignment_id == again.assignment_id), 1)
            domain_instructions(above, again)
            board(again, BoardState(number, notice, revising=True), on_draft=_draft, on_act=_act)
        elif (item := rating.next_item(database, rater_id)) is not None:
            domain_instructions(above, item)
            shown = BoardState(item.done + 1, notice, earlier=bool(saved))
            board(item, shown, on_draft=_draft, on_act=_act)
        else:
            away = not saved and rating.others_have_items(database, rater_id)
            all_done(known, sum(page.items for page in saved), away, on_earlier=lambda: _go(VIEW, "earlier"))
    instructions(known)


def _answered(rater_id: int) -> tuple[Work, Guidance] | None:
    """Return the practice item that the address names, with what was expected."""
    answered = _asked_for(ANSWER, rater_id)
    if answered is None:
        return None
    guidance = rating.practice_guidance(
        session.database(), rater_id, answered.assignment_id, answered.revision - 1
    )
    return None if guidance is None else (answered, guidance)


def _asked_for(name: str, rater_id: int) -> Work | None:
    """Return the saved item that the address names; None if it is not this rater's."""
    asked = row_id(st.query_params.get(name, ""))
    if asked is None:
        return None
    try:
        return rating.reopen(session.database(), rater_id, asked)
    except RatingRefused:
        return None


def _go(name: str | None = None, value: str = "") -> None:
    """Go to the current item, or to the page for this key of the address."""
    st.query_params.from_dict({name: value} if name else {})


# ---------------------------------------------------------------- what the browser sends
# One callback, one transaction: Streamlit may abort a running script, but not in here, since nothing here
# draws on the page.


def _consent() -> None:
    who = session.identity()
    if who is not None and who.rater_id is not None:
        try:
            raters.consent(session.database(), who.rater_id, given_answers(st.session_state))
        except WrongAnswers as wrong:
            st.session_state[WRONG] = wrong.messages
        except RatingRefused:
            pass  # the page says why


def _draft(sent: Any) -> None:
    def keep(rater_id: int, assignment_id: int) -> None:
        answers, comment, revision = sent.get("answers"), sent.get("comment"), sent.get("revision")
        document = sent.get("document", [])
        if isinstance(answers, list) and isinstance(document, list) and type(revision) is int:
            rating.save_draft(
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
        _do(sent, partial(rating.discard_draft, session.database()))
    elif kind == "continue":
        _go()
    elif kind == "skip":
        _do(sent, lambda rater_id, assignment_id: _skip(sent, rater_id, assignment_id))
    elif kind == "save":
        _do(sent, lambda rater_id, assignment_id: _save(sent, rater_id, assignment_id))


def _skip(sent: dict[str, Any], rater_id: int, assignment_id: int) -> None:
    reason = sent.get("reason")
    if isinstance(reason, str):
        rating.skip(session.database(), rater_id, assignment_id, reason)


def _save(sent: dict[str, Any], rater_id: int, assignment_id: int) -> str | None:
    """Save the answers. Return what to tell the rater, if anything."""
    answers, revision = sent.get("answers"), sent.get("revision")
    document = sent.get("document", [])
    if not isinstance(answers, list) or not isinstance(document, list) or type(revision) is not int:
        return None
    stored = rating.submit(
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
    """Act for the rater on the item that the browser names, if the request is well-formed.

    A refusal is shown as a notice, and so is a message that `act` returns.
    """
    who = session.identity()
    if who is None or who.rater_id is None or not isinstance(sent, dict):
        return
    assignment_id = sent.get("assignment")
    if type(assignment_id) is not int or not 0 < assignment_id <= MAX_ID:
        return
    try:
        message = act(who.rater_id, assignment_id)
    except ConsentMissing:
        return  # the page asks for it
    except TryAgain as warning:
        _notice(str(warning))
    except RatingRefused as refused:
        reason = str(refused)
        _notice(f"{reason[:1].upper()}{reason[1:]}.")
    else:
        # numbers keep rising: they tell the browser which notices it has shown
        if message is not None or st.session_state.get(NOTICE, Notice()).text:
            _notice(message or "")


def _notice(text: str) -> None:
    last = st.session_state.get(NOTICE, Notice())
    st.session_state[NOTICE] = Notice(text, last.number + 1)
