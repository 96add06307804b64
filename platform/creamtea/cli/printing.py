"""The one place in which commands print text; tables are for `report.terminal.make_console`."""

from __future__ import annotations

import sys

import typer

from creamtea.printable import printable, printable_lines

_FRESH = "\r\033[K"  # the beginning of the line, and nothing on it


def say(text: str, *, err: bool = False, nl: bool = True, color: str | None = None) -> None:
    """Print it, with control characters shown instead of obeyed."""
    typer.secho(printable_lines(text), err=err, nl=nl, fg=color)


def hand_over(text: str, *, nl: bool = True) -> None:
    """Print output for other programs: exactly as it is to a file or a pipe, as `say` does to a terminal."""
    typer.echo(printable_lines(text) if sys.stdout.isatty() else text, nl=nl, color=True)  # strips nothing


def say_instead(text: str) -> None:
    """Replace the line of standard error, a terminal, that this has printed before."""
    typer.echo(_FRESH + printable(text), err=True, nl=False)
