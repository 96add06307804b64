"""The buttons that save a table or a figure as a file, which is made at the click."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from creamtea.access import sessions
from creamtea.report.export import file_stem, files_of
from creamtea.report.model import Figure, Table
from creamtea_webapp import session

NAMES = {"csv": "CSV", "latex": "LaTeX", "svg": "SVG", "png": "PNG"}


def download_buttons(block: Table | Figure, path: str) -> None:
    """`path` names the block on its page, and without its first part the file."""
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
    """What is saved was drawn for somebody who might read it: PermissionError if that right has ended since.

    It is called from a thread that knows no browser, so the browser's cookie is read here.
    """
    cookie = st.context.cookies.get(session.cookie_name())

    def guarded() -> bytes:
        who = sessions.identify(session.database(), cookie)
        if not session.may_read(who, path):
            raise PermissionError("no right to read reports")
        return make()

    return guarded
