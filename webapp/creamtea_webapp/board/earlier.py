"""The list of a rater's saved items, to open one again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import streamlit as st

from creamtea.human.rating import Earlier
from creamtea_webapp.board import HERE

KEY = "earlier-items"
MAX_SHOWN = 300  # characters of a source that the list shows


@cache
def _component() -> Callable[..., Any]:
    html, css = ((HERE / f"earlier.{end}").read_text(encoding="utf-8") for end in ("html", "css"))
    js = "\n".join((HERE / name).read_text(encoding="utf-8") for name in ("texts.js", "earlier.js"))
    return st.components.v2.component("creamtea_earlier", html=html, css=css, js=js)


def earlier_items(items: Sequence[Earlier], language: str, on_act: Callable[[Any], None]) -> None:
    """Show the items, newest first. `on_act` gets {"kind": "again", "assignment"} or {"kind": "current"},
    unchecked. `language` is the sources'."""
    _component()(
        key=KEY,
        data={
            "items": [
                {
                    "assignment": item.assignment_id,
                    "number": item.number,
                    "items": item.items,
                    "source": item.source[:MAX_SHOWN],
                    "given": item.given,
                    "revision": item.revision,
                }
                for item in reversed(items)
            ],
            "language": language,
        },
        on_act_change=lambda: on_act(st.session_state[KEY].get("act")),
    )
