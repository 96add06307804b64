"""What the commands of a campaign share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from creamtea.access import audit
from creamtea.cli.printing import say
from creamtea.errors import InputError
from creamtea.files import read_storable, replacing
from creamtea.printable import printable

ACTOR = audit.COMMAND_LINE
MAX_BYTES = 5_000_000  # of a file given to a command

Name = Annotated[str, typer.Argument(metavar="NAME", help="The campaign.")]
RaterNames = Annotated[
    list[str], typer.Option("--rater", metavar="PSEUDONYM", help="The rater, by a pseudonym. Repeatable.")
]
Surplus = Annotated[
    bool, typer.Option("--surplus", help="Allow more links than there is work for: not everybody comes.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the log keeps it.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the campaign's log keeps it.")]


def text_of(option: str, path: Path | None) -> str:
    """Read the text of a file given to `option`, "" without one; InputError where it is not text."""
    return "" if path is None else read_storable(path, f"{option} {path}", MAX_BYTES)


def write_new(output: Path, text: str, force: bool) -> None:
    """Write a file; InputError for one that is there, without `force`."""
    if output.exists() and not force:
        raise InputError(f"{output} exists: choose another with --output, or overwrite it with --force")
    with replacing(output) as file:
        file.write_text(text, encoding="utf-8")


def names(option: str, listed: str) -> list[str]:
    """Read "a, b" as ["a", "b"]; InputError for a list of nothing."""
    given = [name.strip() for name in listed.split(",") if name.strip()]
    if not given:
        raise InputError(f"{option}: give names with commas between them")
    return given


def show(json_output: bool, values: Any, lines: Iterable[str]) -> None:
    """Print the values as JSON where that was asked for, else the lines; no text in one begins another."""
    for line in [as_json(values)] if json_output else lines:
        say(printable(line))


def as_json(value: Any) -> str:
    """Write JSON in one line; moments in ISO 8601."""
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
