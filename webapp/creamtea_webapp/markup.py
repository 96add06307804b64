"""HTML of the pages: whatever comes from users or models goes through `escape`, never through Markdown."""

from __future__ import annotations

import html
from datetime import datetime
from functools import cache
from pathlib import Path

import streamlit as st


def escape(text: object) -> str:
    """For element content and quoted attributes."""
    return html.escape(str(text), quote=True)


def foreign(text: str, language: str, tag: str = "p") -> str:
    """Text of a user or a model in its language and its own direction; an empty one says so."""
    if not text.strip():
        return f'<{tag} class="empty">(empty)</{tag}>'
    return f'<{tag} dir="auto" lang="{escape(language)}">{escape(text)}</{tag}>'


def moment(at: datetime) -> str:
    """ "2026-03-04 05:06 UTC"."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def state_badge(state: str) -> str:
    return f'<span class="state {escape(state)}">{escape(state)}</span>'


def show_styles() -> None:
    """The styles of everything that pages show by `st.html`."""
    st.html(f"<style>{_styles()}</style>")


@cache
def _styles() -> str:
    return (Path(__file__).parent / "pages.css").read_text(encoding="utf-8")
