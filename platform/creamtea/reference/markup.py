"""Markdown of the reference's pages."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

GENERATED = "This page is generated from the code (`make docs`), and a test keeps it true."


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """With a line before it and one after it; nothing without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return []
    return ["", f"| {' | '.join(headings)} |", "|" + ":--|" * len(headings), *lines, ""]


def cell(text: str) -> str:
    return escaped(" ".join(text.split())).replace("|", "\\|")


def escaped(text: str) -> str:
    """Text in which `code` is marked, and nothing else."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([*<\[\]])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def code(value: Any) -> str:
    """As in YAML: `true`, `0.5`, `[1, 2]`, `adam`."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return f"`{text}`"


def paragraphs(docstring: str | None) -> list[str]:
    return escaped(inspect.cleandoc(docstring or "")).splitlines()
