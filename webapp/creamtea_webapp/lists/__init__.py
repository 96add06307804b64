"""Lists as tables, the same on every page: sorted by a click on a head, filtered by what somebody types.

The table is the page's own HTML; a Streamlit component above it, where it is long, has the field and the
script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea_webapp.markup import show

HERE = Path(__file__).parent
SHORT = 6  # rows that nobody has to sort or filter
Cell = str | tuple[str, float | str]  # text or HTML of a template, and what to sort by if it is not that


@cache
def _component() -> Callable[..., Any]:
    html, css, js = ((HERE / f"lists.{end}").read_text(encoding="utf-8") for end in ("html", "css", "js"))
    return st.components.v2.component("creamtea_lists", html=html, css=css, js=js)


def show_list(
    key: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], words: Sequence[int] = ()
) -> None:
    """Show a table; `words`: columns of text, set to the left. On a phone the cells of a row stand below each
    other."""
    if len(rows) > SHORT:
        _component()(key=f"list-{key}", data={"table": f"table-{key}", "rows": len(rows)})
    show("parts.html", "table", key=key, heads=heads, rows=rows, words=words)
