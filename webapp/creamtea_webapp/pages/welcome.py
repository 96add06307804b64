"""What raters read before, beside and after rating: welcome and consent, instructions, the ends.

Instructions and the text of the consent are Markdown by the organiser. HTML in them stays text, and so do
images, which would tell another site who rates; links work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from creamtea import languages
from creamtea.human.raters import Welcome
from creamtea_webapp.markup import escape

WIDTH = 720  # pixels of running text

WHAT = {
    "contrastive-da": "You will see one sentence at a time and several translations of it, and give each a "
    "value from 1 to 6.",
    "da": "You will see one sentence and one translation of it at a time, and give it a value from 0 to 100.",
    "da-sqm": "You will see one sentence and one translation of it at a time, and give it a value from 0 to "
    "100.",
    "preference": "You will see one sentence and two translations of it at a time, and say which is better.",
}


def consent(known: Welcome, on_agree: Callable[[], None]) -> None:
    """The first page: what this is about, what is kept, and the button without which nothing begins."""
    with _column():
        st.html(
            '<div class="ct"><h1>Rating translations</h1>'
            f'<p class="lead">{WHAT[known.protocol]}</p>'
            f'<p class="facts"><span>{escape(languages.pair(*known.languages))}</span></p></div>'
        )
        if known.instructions.strip():
            st.markdown(_markdown(known.instructions), unsafe_allow_html=False)
        st.html(
            '<div class="ct"><h2>Taking part</h2><p>What you give is stored under the name '
            f"<strong>{escape(known.pseudonym)}</strong> and used in this evaluation: your scores, your "
            "comments, why you skip an item, and how long you work on each. You can stop at any time and go "
            "on later, also on another device; what you have saved is kept.</p></div>"
        )
        if known.consent.strip():
            st.markdown(_markdown(known.consent), unsafe_allow_html=False)
        st.button("I agree, begin", type="primary", on_click=on_agree)


def instructions(known: Welcome) -> None:
    """The organiser's instructions, folded away under the board."""
    if known.instructions.strip():
        with st.expander("Instructions"), st.container(width=WIDTH):
            st.markdown(_markdown(known.instructions), unsafe_allow_html=False)


def all_done(saved: int, on_earlier: Callable[[], None]) -> None:
    with _column():
        items = "1 item is" if saved == 1 else f"{saved:,} items are"
        _told("All done", f"{items} rated and saved. Thank you! You can close this page.")
        if saved:
            st.button("Look at earlier items", on_click=on_earlier)


def not_open(known: Welcome) -> None:
    """A campaign that is not launched yet, or closed."""
    with _column():
        if known.state == "draft":
            _told("Not open yet", "This evaluation has not begun. Come back when you are told that it has.")
        else:
            _told("Closed", "This evaluation is closed. What you saved is kept. Thank you for taking part!")


def ended(why: str) -> None:
    with _column():
        _told("Your part has ended", f"{why[:1].upper()}{why[1:]}.")


@contextmanager
def _column() -> Iterator[None]:
    """Running text in the middle of the page, and buttons that a thumb hits."""
    st.html("<style>.stButton button { min-height: 44px; padding-inline: 1.5rem; }</style>")
    with st.container(horizontal_alignment="center"), st.container(width=WIDTH):
        yield


def _told(heading: str, text: str) -> None:
    st.html(f'<div class="ct"><h1>{escape(heading)}</h1><p class="lead">{escape(text)}</p></div>')


def _markdown(text: str) -> str:
    """The text without images: what begins one is written out."""
    return text.replace("![", "!\\[")
