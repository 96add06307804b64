"""What raters read before, beside and after rating: welcome and consent, instructions, the ends.

Instructions and the text of the consent are Markdown by the organiser. HTML in them stays text, and so do
images, which would tell another site who rates; links work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from creamtea.human.raters import Welcome
from creamtea_webapp.markup import show

TEMPLATE = "welcome.html"
WIDTH = 720  # pixels of running text
HEADING = re.compile(r"^( {0,3})(#{1,6})(?=[ \t]|$)", re.MULTILINE)


def consent(known: Welcome, on_agree: Callable[[], None]) -> None:
    """The first page: what this is about, what is kept, and the button without which nothing begins."""
    with _column():
        show(TEMPLATE, "task", text=known.protocol.welcome, languages=known.languages)
        if known.instructions.strip():
            st.markdown(_markdown(known.instructions))
        show(TEMPLATE, "taking_part", pseudonym=known.pseudonym)
        if known.consent.strip():
            st.markdown(_markdown(known.consent))
        st.button("I agree, begin", type="primary", on_click=on_agree)


def instructions(known: Welcome) -> None:
    """The organiser's instructions, folded away under the board."""
    if known.instructions.strip():
        with st.expander("Instructions"), st.container(width=WIDTH):
            st.markdown(_markdown(known.instructions))


def all_done(saved: int, on_earlier: Callable[[], None]) -> None:
    with _column():
        items = "1 item is" if saved == 1 else f"{saved:,} items are"
        _message("All done", f"{items} rated and saved. Thank you! You can close this page.")
        if saved:
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


def _markdown(text: str) -> str:
    """The text without images: what begins one is written out. Its headings stand in order below the page's,
    whichever levels the organiser chose."""
    used = sorted({len(heading[2]) for heading in HEADING.finditer(text)})
    level = 1

    def below(heading: re.Match[str]) -> str:
        nonlocal level
        level = min(2 + used.index(len(heading[2])), level + 1)
        return f"{heading[1]}{'#' * level}"

    return HEADING.sub(below, text).replace("![", "!\\[")
