"""The rating board: a page of one segment or of a document, and the list of a rater's saved items.

A Streamlit component without an iframe; its files lie beside this one. Texts reach the page as data and
are set by `textContent` only. What the browser gets: the assignment's id, texts, languages, progress and
the draft. What it sends: `draft` (state), {"assignment", "revision", "answers", "document", "comment"}, and
`act` (trigger), {"kind", "assignment", …}. The kind is the rater's request: "save" the answers, "skip" the
item, "continue" after a practice item's answer, list the "earlier" items, or go back to the "current" one and
leave an earlier item unchanged. Neither is checked here: a browser may send anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.human.media import kind_of
from creamtea.human.protocols import find_protocol, usable_protocols
from creamtea.human.rating import Earlier, Guidance, Work
from creamtea.human.rating.page import ShownSegment
from creamtea.store.tables import MediaEntry
from creamtea_webapp.gate.middleware import UNTIL_STYLED, publish
from creamtea_webapp.gate.paths import address_of_media

HERE = Path(__file__).parent
# joined into one module in this order; a protocol's widgets come before the last
SCRIPTS = (
    *("texts.js", "media.js", "widget.js", "slider.js", "choice.js", "edit.js"),
    *("marking.js", "errors.js", "panel.js", "spans.js"),
    *("asides.js", "segment.js", "whole.js", "board.js"),
)
KEY = "earlier-items"  # the key of the list of a rater's saved items
MAX_SHOWN = 300  # characters of a source that the list shows
STYLES = (
    *("base.css", "board.css", "sources.css", "outputs.css"),
    *("acts.css", "widths.css", "edit.css", "spans.css"),
)


@dataclass(frozen=True)
class Notice:
    """Why the last request was refused; `number` tells a new notice from one that was shown."""

    text: str = ""
    number: int = 0


@dataclass(frozen=True)
class BoardState:
    """What the board shows beside the page itself."""

    number: int  # number of its first item, from 1
    notice: Notice
    revising: bool = False  # an item that was saved before
    earlier: bool = False  # whether there are items to go back to
    feedback: Guidance | None = None  # the expected answer to a practice item, which is then fixed


def _parts(protocol: str) -> tuple[str, tuple[Path, ...], tuple[Path, ...]]:
    """Return name, scripts and styles of a protocol's component; without own files they share one."""
    own = find_protocol(protocol)
    if not own.scripts + own.styles:
        return "creamtea_board", (), ()
    return f"creamtea_board_{protocol}", own.scripts, own.styles


@cache
def _component(name: str, scripts: tuple[Path, ...], styles: tuple[Path, ...]) -> Callable[..., Any]:
    return st.components.v2.component(
        name,
        html=_joined([HERE / "board.html"]),
        css=UNTIL_STYLED,
        js=_published(name, scripts, styles),
    )


@cache
def _published(name: str, scripts: tuple[Path, ...], styles: tuple[Path, ...]) -> str:
    own_scripts = [HERE / script for script in SCRIPTS]
    script = _joined([*own_scripts[:-1], *scripts, own_scripts[-1]])
    return publish(name, script, _joined([*(HERE / style for style in STYLES), *styles]))


def publish_all() -> None:
    """Publish the modules of all protocols before a browser asks: another server may have sent its page."""
    for protocol in usable_protocols():
        _published(*_parts(protocol.name))


def _joined(files: Sequence[Path]) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def board(
    work: Work, shown: BoardState, on_draft: Callable[[Any], None], on_act: Callable[[Any], None]
) -> None:
    """Show an item; the callbacks get what the browser sent.

    The key holds the assignment's id: Streamlit carries the values of a reused key over.
    """
    key = f"board-{work.assignment_id}-{work.revision}"

    def sent(name: str) -> Any:
        return st.session_state[key].get(name)

    result = _component(*_parts(work.protocol.name))(
        key=key,
        data=board_data(work, shown),
        on_draft_change=lambda: on_draft(sent("draft")),
        on_act_change=lambda: on_act(sent("act")),
    )
    # After a restart of the server, a browser brings its state into a new session. Streamlit sees no change
    # in that session, so it calls no callback.
    begun = f"begun-{key}"
    if begun not in st.session_state:
        st.session_state[begun] = True
        if result.draft is not None:
            on_draft(result.draft)


def board_data(work: Work, shown: BoardState) -> dict[str, Any]:
    """Return everything that the browser gets about a page."""
    return {
        "assignment": work.assignment_id,
        "revision": work.revision,
        "tutorial": work.tutorial,
        "segments": [_segment(segment) for segment in work.segments],
        "draft": work.draft,
        "document": _document_score(work),
        "comment": work.comment,
        **work.protocol.page_data(),
        "item": shown.number,
        "total": max(shown.number, work.total),
        "fewer": work.done + work.left < work.total,  # others have rated some
        "left": time_left(work.seconds_left),
        "sourceLanguage": work.source_language,
        "targetLanguage": work.target_language,
        "notice": {"text": shown.notice.text, "number": shown.notice.number},
        "revising": shown.revising,
        "earlier": shown.earlier,
        "feedback": None if shown.feedback is None else asdict(shown.feedback),
    }


def _segment(segment: ShownSegment) -> dict[str, Any]:
    return asdict(segment) | {"media": _files(segment.media), "files": [*map(_files, segment.files)]}


def _files(entries: Sequence[MediaEntry]) -> list[dict[str, Any]]:
    """Return the addresses of files, which tell nothing about them, without names of systems."""
    return [
        {
            "kind": kind_of(file["type"]),
            "address": address_of_media(file["digest"]),
            "description": file["description"],
            "captions": address_of_media(file["captions"]) if file.get("captions") else None,
        }
        for file in entries
    ]


def _document_score(work: Work) -> dict[str, Any] | None:
    """Return the data for the score of the whole document; None if the page does not ask for one."""
    if not work.document_letters:
        return None
    return {
        "letters": work.document_letters,
        "draft": work.document_draft,
        "before": [
            asdict(segment) | {"files": [*map(_files, segment.files)]} for segment in work.document_before
        ],
    }


def time_left(seconds: float | None) -> str:
    """Format the remaining time: "about 12 min left"; "" if it is not known yet."""
    if seconds is None:
        return ""
    minutes = max(1, round(seconds / 60))
    hours, rest = divmod(minutes, 60)
    return f"about {f'{hours} h ' if hours else ''}{f'{rest} min ' if rest else ''}left"


@cache
def _list_component() -> Callable[..., Any]:
    files = (["earlier.html"], ["base.css", "earlier.css"], ["texts.js", "earlier.js"])
    html, css, js = (_joined([HERE / name for name in names]) for names in files)
    return st.components.v2.component("creamtea_earlier", html=html, css=css, js=js)


def earlier_items(items: Sequence[Earlier], language: str, on_act: Callable[[Any], None]) -> None:
    """Show saved items, newest first. `language`: of the sources.

    `on_act` gets {"kind": "again", "assignment"} or {"kind": "current"}, unchecked.
    """
    shown = [asdict(item) | {"source": item.source[:MAX_SHOWN]} for item in reversed(items)]
    _list_component()(
        key=KEY,
        data={"items": shown, "language": language},
        on_act_change=lambda: on_act(st.session_state[KEY].get("act")),
    )
