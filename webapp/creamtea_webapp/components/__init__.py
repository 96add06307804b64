"""Streamlit components that several pages share: the table of contents, and lists that sort and filter.

Only a script can follow a link into a page that is still being drawn. A list is the page's own HTML; if it is
long, a component above it has the field and the script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.report.model import Heading
from creamtea.report.text import anchor
from creamtea_webapp.markup import show

HERE = Path(__file__).parent
SHORT = 6  # rows up to which a list needs no sorting or filter
Cell = str | tuple[str, float | str]  # text or a template's HTML, perhaps with another value to sort by


@cache
def _component(name: str) -> Callable[..., Any]:
    html, css, js = ((HERE / f"{name}.{end}").read_text(encoding="utf-8") for end in ("html", "css", "js"))
    return st.components.v2.component(f"creamtea_{name}", html=html, css=css, js=js)


def show_contents(headings: Sequence[Heading], key: str) -> None:
    """Show links to the page's sections, whose headings have their addresses as ids."""
    entries = [
        {"title": heading.title, "address": anchor(heading.path), "level": heading.level}
        for heading in headings
    ]
    _component("contents")(key=key, data={"entries": entries})


def show_list(
    key: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], words: Sequence[int] = ()
) -> None:
    """Show a table, sorted by a click on a head and filtered by what somebody types.

    `words`: columns of text, set to the left. On a phone the cells of a row stand below each other.
    """
    if len(rows) > SHORT:
        _component("lists")(key=f"list-{key}", data={"table": f"table-{key}", "rows": len(rows)})
    show("parts.html", "table", key=key, heads=heads, rows=rows, words=words)
