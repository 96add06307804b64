"""What raters read before, beside and after rating: welcome and consent, instructions, the ends.

Instructions and the text of the consent are Markdown by the organiser (`creamtea_webapp.markup.markdown`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st

from creamtea.human.making.questions import MAX_ANSWER, Question
from creamtea.human.rating.raters import Welcome, Workload
from creamtea_webapp.markup import markdown, show

TEMPLATE = "welcome.html"
WIDTH = 720  # pixels of running text
# to a rater who has rated nothing, when the last items are with others, and when none is left
AWAY = (
    "Nothing to rate at the moment",
    "Others are working on the last items. If any are left unfinished, you can rate them: try again in two "
    "hours.",
)
NOTHING_LEFT = ("All done", "Nothing is left to rate. Thank you for your time!")
ABOUT, WRONG = "about-rater-", "wrong-about-rater"  # answers about the rater, and what is wrong with them


def consent(known: Welcome, workload: Workload, on_agree: Callable[[], None]) -> None:
    """The first page: what this is about, what is kept, questions about the rater, and the button without
    which nothing begins. A form: leaving a field draws nothing anew under the press that left it."""
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
        own: dict[str, Any] = {"label_visibility": "collapsed", "key": f"{ABOUT}{number}"}
        if question.options:
            st.selectbox(label, question.options, None, placeholder="Choose", **own)
        else:
            st.text_input(label, max_chars=MAX_ANSWER, **own)
        if number in wrong:
            show(TEMPLATE, "wrong_answer", message=wrong[number])
    if wrong:
        show(TEMPLATE, "wrong_answer", message="Some answers are missing or invalid: see above.")


def given_answers(state: Any) -> list[str]:
    """What was answered, in the order of the questions."""
    given = {int(key.removeprefix(ABOUT)): state[key] for key in state if str(key).startswith(ABOUT)}
    return [str(given.get(number) or "") for number in range(max(given, default=-1) + 1)]


def instructions(known: Welcome) -> None:
    """The organiser's instructions and whom to ask, folded away below what the rater does."""
    text = markdown(known.instructions) if known.instructions.strip() else ""
    if text or known.contact:
        show(TEMPLATE, "instructions", text=text, contact=known.contact)


def all_done(known: Welcome, saved: int, away: bool, on_earlier: Callable[[], None]) -> None:
    """`away`: the last items are with others. The completion code is for those who have rated something."""
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
    """A campaign that is not launched yet, or closed."""
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
    """Running text in the middle of the page, and buttons that a thumb hits."""
    with st.container(horizontal_alignment="center"), st.container(width=WIDTH, key="rater-text"):
        yield


def _message(heading: str, text: str) -> None:
    show(TEMPLATE, "message", heading=heading, text=text)
