"""What the commands of a campaign share."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import MISSING, asdict, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from pydantic import BaseModel

from creamtea.access import audit
from creamtea.cli.printing import say
from creamtea.errors import InputError
from creamtea.files import read_text
from creamtea.printable import printable

Options = TypeVar("Options")

ACTOR = audit.COMMAND_LINE
MAX_BYTES = 5_000_000  # of a file given to a command

Name = Annotated[str, typer.Argument(metavar="NAME", help="The campaign.")]
RaterNames = Annotated[
    list[str], typer.Option("--rater", metavar="PSEUDONYM", help="The rater, by a pseudonym. Repeatable.")
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the campaign's log keeps it.")]


def with_options(
    options: type[Options],
) -> Callable[[Callable[[str, Options], None]], Callable[..., None]]:
    """A command of a campaign's name that takes the fields of a dataclass as its options.

    typer reads a command's options from its signature: this gives it one with a parameter for each field.
    """
    hints = get_type_hints(options, include_extras=True)
    parameters = [inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Name)]
    parameters += [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(options)  # type: ignore[arg-type]  # a dataclass
    ]

    def decorate(command: Callable[[str, Options], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(name: str, **values: Any) -> None:
            command(name, options(**values))

        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    return decorate


def text_of(option: str, path: Path | None) -> str:
    """The text of a file given to `option`, "" without one; InputError where it is not text."""
    if path is None:
        return ""
    text = read_text(path, f"{option} {path}", MAX_BYTES)
    if "\0" in text:
        raise InputError(f"{option} {path}: holds a NUL character, which a database cannot store")
    return text


def names(option: str, listed: str) -> list[str]:
    """ "a, b" as ["a", "b"]; InputError for a list of nothing."""
    given = [name.strip() for name in listed.split(",") if name.strip()]
    if not given:
        raise InputError(f"{option}: give names with commas between them")
    return given


def show(json_output: bool, values: Any, lines: Iterable[str]) -> None:
    """The values as JSON where that was asked for, else the lines; no text in one begins another."""
    for line in [as_json(values)] if json_output else lines:
        say(printable(line))


def as_json(value: Any) -> str:
    """JSON in one line; moments in ISO 8601."""
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
