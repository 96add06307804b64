"""The blocks of a report on a page: a function for each type, and the buttons that save them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeVar, assert_never

import streamlit as st

from creamtea.access import sessions
from creamtea.report import text
from creamtea.report.export import file_stem, files_of
from creamtea.report.html import side_by_side
from creamtea.report.model import (
    Block,
    Choice,
    Facts,
    Figure,
    Heading,
    Notes,
    Section,
    Table,
    Texts,
    Warnings,
)
from creamtea.report.vega import vega_lite
from creamtea.wording import counted
from creamtea_webapp import session
from creamtea_webapp.markup import component, note, show, show_part

FIGURES_PER_ROW = 3
CHOICES_PER_ROW = 2
NAMES = {"csv": "CSV", "latex": "LaTeX", "svg": "SVG", "png": "PNG"}
Placed = tuple[Block, str]  # with its path: the key of its widgets
Item = TypeVar("Item")


def download_buttons(block: Table | Figure, path: str) -> None:
    """Show a button for each file of a block.

    `path`: the block on its page; without its first part, the file.
    """
    files = files_of(block, file_stem(path.partition("/")[2]))
    if not files:
        return
    with st.container(horizontal=True, gap="small"):
        for kind, file in files.items():
            st.download_button(
                NAMES[kind],
                _guarded(file.make, path),
                file_name=file.name,
                mime=file.mime,
                key=f"{path}/{kind}",
                on_click="ignore",
                type="tertiary",
                icon=":material/download:",
                help=f"Save as {NAMES[kind]}",
            )


def _guarded(make: Callable[[], bytes], path: str) -> Callable[[], bytes]:
    """Make a file only for somebody who may still read it; otherwise raise PermissionError.

    Streamlit calls the result from a thread that knows no browser, so the browser's cookie is read here.
    """
    cookie = st.context.cookies.get(session.cookie_name())

    def guarded() -> bytes:
        who = sessions.identify(session.database(), cookie)
        if not session.may_read(who, path):
            raise PermissionError("no right to read reports")
        return make()

    return guarded


def show_section(section: Section, place: str) -> None:
    """Show a section of the report itself."""
    show_block(section, f"{place}/{section.key}", level=2)


def show_block(block: Block, path: str, level: int) -> None:
    match block:
        case Section():
            _section(block, path, level)
        case Table():
            _table(block, path, level)
        case Figure():
            _figure(block, path, titled=True)
        case Choice():
            _choice(block, path)
        case Texts():
            show_part("texts", block, level)
        case Notes():
            show_part("notes", block, level)
        case Warnings():
            show_part("warnings", block, level)
        case Facts():
            show_part("facts", block, level)
        case _:
            assert_never(block)


def show_contents(headings: Sequence[Heading], key: str) -> None:
    """Show links to the page's sections, whose headings have their addresses as ids."""
    entries = [
        {"title": heading.title, "address": text.anchor(heading.path), "level": heading.level}
        for heading in headings
    ]
    component("contents")(key=key, data={"entries": entries})


def address(path: str) -> str:
    """Return the address of a block inside its page. The first part of the path is the page's own."""
    return text.anchor(path.partition("/")[2])


# ---------------------------------------------------------------- sections


def _section(section: Section, path: str, level: int) -> None:
    if section.folded:
        with st.expander(section.title):
            _blocks(section.blocks, path, level + 1)
        return
    if section.title:
        show_part("opening", section, level, address(path))
    _blocks(section.blocks, path, level + bool(section.title))


def _blocks(blocks: Sequence[Block], path: str, level: int) -> None:
    """Show blocks, some of them side by side. A single figure has half of the width, a choice all of it."""
    placed = _flat(blocks, path)
    for group in side_by_side([block for block, _ in placed], _is_narrow):
        neighbours, placed = placed[: len(group)], placed[len(group) :]
        plain = all(isinstance(block, Figure) for block in group)
        width = max(1 + plain, min(FIGURES_PER_ROW if plain else CHOICES_PER_ROW, len(group)))
        if width > 1:
            in_rows(neighbours, lambda placed: show_block(*placed, level), width, width)
        else:
            show_block(*neighbours[0], level)


def _is_narrow(block: Block) -> bool:
    """Return whether a block is narrow: a figure, or a choice of one figure at a time."""
    if isinstance(block, Choice):
        choices = [figure.choice for figure in block.figures]
        return len(set(choices)) == len(choices)
    return isinstance(block, Figure)


def _flat(blocks: Sequence[Block], path: str) -> list[Placed]:
    """Return blocks with their paths; untitled sections are replaced by their blocks."""
    placed: list[Placed] = []
    for block in blocks:
        block_path = f"{path}/{block.key}"
        if isinstance(block, Section) and not block.title:
            placed += _flat(block.blocks, block_path)
        else:
            placed.append((block, block_path))
    return placed


def in_rows(
    items: Sequence[Item], draw: Callable[[Item], None], most: int = FIGURES_PER_ROW, least: int = 2
) -> None:
    """Draw at most `most` items beside each other, in rows of at least `least` columns."""
    for start in range(0, len(items), most):
        row = items[start : start + most]
        for item, column in zip(row, st.columns(max(least, len(row))), strict=False):
            with column:
                draw(item)


# ---------------------------------------------------------------- tables and figures


def _table(table: Table, path: str, level: int) -> None:
    """Show a table; a folded one in an expander, since Streamlit draws the buttons below it."""
    title, shown = table.title or f"Table: {counted(len(table.rows), 'row')}", table
    if table.folded:
        shown = replace(table, folded=False, title="")
    with st.expander(title) if table.folded else nullcontext():
        show_part("table", shown, level, path)
        download_buttons(table, path)


def show_chart(figure: Figure, key: str, titled: bool = True) -> None:
    """Show a figure below its title."""
    if titled:
        show("parts.html", "plot_title", title=figure.title)
    if figure.rows:
        st.vega_lite_chart(vega_lite(figure, title=False), width="stretch", key=key)
    else:
        note("Nothing to draw.")


def _figure(figure: Figure, path: str, titled: bool = False) -> None:
    """Show a figure, and below it list the systems that are not drawn."""
    show_chart(figure, f"{path}/chart", titled)
    for words in (text.missing(figure), figure.about):
        if words:
            note(text.sentence(words.rstrip(".")))
    download_buttons(figure, path)


@st.fragment
def _choice(choice: Choice, path: str) -> None:
    """Show a choice of figures as a fragment, which redraws alone.

    Figures of one choice stand side by side.
    """
    session.require_block(path)
    show_part("heading", choice.title, 3, (), address(path))
    figures = choice.figures
    if not figures:
        note(text.sentence(choice.absent))
        return
    with st.container(horizontal=True):
        for position, name in enumerate(choice.names):
            options = list(dict.fromkeys(figure.choice[position] for figure in figures))
            chosen = options[0] if len(options) == 1 else st.selectbox(name, options, key=f"{path}/{name}")
            figures = tuple(figure for figure in figures if figure.choice[position] == chosen)
    if len(figures) == 1:
        _figure(figures[0], f"{path}/{figures[0].key}")
        return
    in_rows(figures, lambda panel: show_block(panel, f"{path}/{panel.key}", level=4))
