"""A page's table of contents: a Streamlit component, since only a script can follow a link into a page that
is still being drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.report.model import Heading
from creamtea.report.text import anchor

HERE = Path(__file__).parent


@cache
def _component() -> Callable[..., Any]:
    html, css, js = ((HERE / f"contents.{end}").read_text(encoding="utf-8") for end in ("html", "css", "js"))
    return st.components.v2.component("creamtea_contents", html=html, css=css, js=js)


def show_contents(headings: Sequence[Heading], key: str) -> None:
    """Links to the page's sections, whose headings have their addresses as ids (`report.text.anchor`)."""
    entries = [
        {"title": heading.title, "address": anchor(heading.path), "level": heading.level}
        for heading in headings
    ]
    _component()(key=key, data={"entries": entries})
