"""The one place in which commands print text; tables are for `report.terminal.make_console`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from creamtea.printable import printable, printable_lines

_FRESH = "\r\033[K"  # go to the beginning of the line, and clear it


def say(text: str, *, err: bool = False, nl: bool = True, color: str | None = None) -> None:
    """Print a text, with control characters shown instead of obeyed."""
    typer.secho(printable_lines(text), err=err, nl=nl, fg=color)


def hand_over(text: str, *, nl: bool = True) -> None:
    """Print output for other programs: unchanged to a file or a pipe, but like `say` to a terminal."""
    typer.echo(printable_lines(text) if sys.stdout.isatty() else text, nl=nl, color=True)  # strips nothing


def show(json_output: bool, values: Any, lines: Iterable[str]) -> None:
    """Print the values as JSON if asked for, else the lines; no text within a line can begin another."""
    for line in [as_json(values)] if json_output else lines:
        say(printable(line))


def as_json(value: Any) -> str:
    """Write JSON in one line; times are in ISO 8601."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def say_instead(text: str) -> None:
    """Replace the line that this function printed before on standard error, which must be a terminal."""
    typer.echo(_FRESH + printable(text), err=True, nl=False)
