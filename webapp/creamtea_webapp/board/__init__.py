"""The rating board: a source, its outputs in blind order, and a 26-step scale for each.

A Streamlit component without an iframe; its files lie beside this one. Texts reach the page as data and
are set by `textContent` only. What the browser gets: the assignment's id, texts, languages, progress and
the draft. What it sends: `draft` (state) and `saved` (trigger), each {"assignment", "steps"}.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.human.assignment import Work

HERE = Path(__file__).parent


@cache
def _component() -> Callable[..., Any]:
    html, css, js = ((HERE / f"board.{end}").read_text(encoding="utf-8") for end in ("html", "css", "js"))
    return st.components.v2.component("creamtea_board", html=html, css=css, js=js)


def board(work: Work, notice: str, on_draft: Callable[[Any], None], on_saved: Callable[[Any], None]) -> None:
    """Show an item, with a notice above it where the last scores were not saved.

    The callbacks get what the browser sent: unchecked, it may be anything.

    The key holds the assignment's id: Streamlit carries the values of a reused key over.
    """
    key = f"board-{work.assignment_id}"

    def sent(name: str) -> Any:
        return st.session_state[key].get(name)

    _component()(
        key=key,
        data={
            "assignment": work.assignment_id,
            "source": work.source,
            "outputs": work.outputs,
            "draft": work.draft,
            "notice": notice,
            "item": work.done + 1,
            "total": work.total,
            "sourceLanguage": work.source_language,
            "targetLanguage": work.target_language,
        },
        on_draft_change=lambda: on_draft(sent("draft")),
        on_saved_change=lambda: on_saved(sent("saved")),
    )
