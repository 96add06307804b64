"""HTML of the pages, from the templates beside this file. Whatever comes from users or models is escaped.

A page's template is a file of macros, one for each piece that the page shows; `parts.html` has macros that
pages share, and `creamtea.report.html` those of a report's blocks. Nothing else in the web app builds HTML.

Components have scripts: only a script can follow a link into a page that is still being drawn, sort a table,
or filter a list. A list is the page's own HTML; a component above a long one has the field and the script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

import streamlit as st
from jinja2 import Environment
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from creamtea import languages
from creamtea.human.protocols import protocol_title
from creamtea.report.html import block_styles, part, table_styles, templates_in
from creamtea.report.text import code_parts
from creamtea.store.tables import ItemKind
from creamtea.wording import counted, duration, with_minus
from creamtea_webapp.gate.paths import address_of_media

HERE = Path(__file__).parent
STYLES = ("pages.css", "lists.css", "tables.css")  # in this order, after the styles of a report's blocks
TABLES_FROM = 60  # rem; in a window of this width or more, a table that does not fit scrolls
SHORT = 6  # rows up to which a list needs no sorting or filter
Cell = str | tuple[str, float | str]  # text or a template's HTML, perhaps with another value to sort by
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def render(template: str, macro: str | None = None, /, **values: Any) -> Markup:
    """Render a macro of a template as HTML, or without `macro` the whole template.

    Every value is escaped unless it is `Markup` that a template made. A missing value is an error.
    """
    loaded = _environment().get_template(template)
    if macro is None:
        return Markup(loaded.render(**values))  # noqa: S704 (the template escapes its values)
    return cast(Markup, getattr(loaded.module, macro)(**values))


def show(template: str, macro: str, /, **values: Any) -> None:
    """Put a macro of this template on the page."""
    st.html(render(template, macro, **values))


def show_missing(title: str, overview: str, address: str, error: object = "") -> None:
    """Say that a page does not exist, and why; link to the `overview` of the pages that do."""
    show("parts.html", "missing", title=title, error=str(error), overview=overview, address=address)


def show_part(macro: str, /, *values: Any) -> None:
    """Put a macro of the report's own templates on the page."""
    st.html(Markup('<div class="ct">{}</div>').format(part(macro, *values)))


@cache
def component(name: str) -> Callable[..., Any]:
    """Return the component whose files have this name."""
    files = HERE.glob(f"components/{name}.*")
    parts: dict[str, Any] = {file.suffix[1:]: file.read_text(encoding="utf-8") for file in files}
    return st.components.v2.component(f"creamtea_{name}", **parts)


def prepare_tables() -> None:
    """Put the style sheet of a report's tables and the script that sorts them on the page, once."""
    st.html(f"<style>{table_styles(TABLES_FROM)}</style>")
    component("sorting")(key="sorting")


def show_list(
    key: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], words: Sequence[int] = ()
) -> None:
    """Show a table, sorted by a click on a head and filtered by what somebody types.

    `words`: columns of text, set to the left. On a phone the cells of a row stand below each other.
    """
    if len(rows) > SHORT:
        component("lists")(key=f"list-{key}", data={"table": f"table-{key}", "rows": len(rows)})
    show("parts.html", "table", key=key, heads=heads, rows=rows, words=words)


def note(text: str) -> None:
    """Put a remark on the page, in small type."""
    show("parts.html", "note", text=text)


def show_styles() -> None:
    """Put the styles of everything that `show` shows on the page."""
    st.html(f"<style>{_styles()}</style>")


@cache
def _styles() -> str:
    return "\n".join([block_styles(), *((HERE / name).read_text(encoding="utf-8") for name in STYLES)])


@cache
def markdown(text: str) -> Markup:
    """Render an organiser's Markdown as HTML.

    HTML and images in it stay text: an image would tell another site who rates. Links open in a new tab.
    Headings follow the page's in consecutive levels, whichever levels the organiser chose.
    """
    tokens = MARKDOWN.parse(text)
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    used = sorted({token.tag for token in headings})
    level = 1
    for token in headings:
        if token.type == "heading_open":
            level = min(2 + used.index(token.tag), level + 1)
        token.tag = f"h{level}"
    html = MARKDOWN.renderer.render(tokens, MARKDOWN.options, {})
    html = html.replace("<a href", '<a target="_blank" rel="noreferrer" href')
    return Markup(html)  # noqa: S704 (see above)


def _image(renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    return str(escape(f"![{tokens[index].content}]({tokens[index].attrs['src']})"))


MARKDOWN.add_render_rule("image", _image)


def moment(when: datetime) -> str:
    """Format a moment: "2026-03-04 05:06 UTC"."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def about(minutes: float) -> str:
    """Format a rough duration: "about 40 minutes", "about 2.5 hours"."""
    if minutes < 90:
        return f"about {counted(max(1, round(minutes)), 'minute')}"
    return f"about {round(minutes / 30) / 2:g} hours"


@cache
def _environment() -> Environment:
    filters = {
        "moment": moment,
        "counted": counted,
        "duration": duration,
        "about_time": about,
        "code_parts": code_parts,
        "with_minus": with_minus,
        "number": lambda value: f"{value:,}",
        "pair": lambda pair: languages.pair(*pair),
        "protocol": protocol_title,
        "media_address": address_of_media,
        "item_kind": ItemKind,
    }
    return templates_in(HERE / "templates", filters)
