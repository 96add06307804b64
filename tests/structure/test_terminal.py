"""Commands print through one place, which shows control characters: a terminal obeys none."""

from __future__ import annotations

import ast
from pathlib import Path

PLATFORM = Path(__file__).parents[2] / "platform" / "creamtea"
COMMANDS, PRINTING = PLATFORM / "cli", PLATFORM / "cli" / "printing.py"
CONSOLE = PLATFORM / "report" / "terminal.py"


def by_hand(source: str) -> list[str]:
    """The calls that print, or make a console of rich's own."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id="typer" | "click"), attr="echo" | "secho"))
                | ast.Call(func=ast.Name(id="print" | "Console"))
            ):
                found.append(f"line {node.lineno}: {ast.unparse(node.func)}")
    return found


def test_commands_print_through_one_place() -> None:
    files = [path for path in [*COMMANDS.rglob("*.py"), *CONSOLE.parent.rglob("*.py")] if path != PRINTING]
    found = {path.relative_to(PLATFORM).as_posix(): by_hand(path.read_text("utf-8")) for path in files}
    assert len(found) > 50
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_printing_by_hand_is_found() -> None:
    for line in ("typer.echo(x)", "typer.secho(x)", "print(x)", "Console()"):
        assert by_hand(line), line
    for line in ("say(x)", "console.print(x)", "PrintingConsole()"):
        assert not by_hand(line), line
