"""docs/reference/commands.md: every command with its arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from creamtea.cli.main import NOUNS, type_of_one
from creamtea.reference.tables import GENERATED, cell, code, table

INTRODUCTION = f"""\
# Commands

{GENERATED}

Every command with its options, as `creamtea COMMAND --help` has them.

Exit codes: 0 done, 1 something failed, 2 the input is wrong, 130 interrupted, 141 nobody reads the output
any more (`| head`). `creamtea --traceback COMMAND` shows where an error came from, for a bug report;
`creamtea --version` prints the version."""


def commands_page() -> str:
    from creamtea.cli.main import app

    lines = [INTRODUCTION, ""]
    for name, command in commands(get_command(app)):
        lines += [f"## {name}", ""]
        lines += [cell(part) for part in (command.help or "").split("\n\n") for part in (part, "")]
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        lines += table(("argument or option", "value", "default", "meaning"), map(_row, shown))
        lines += [*(command.epilog or "").strip().splitlines(), ""]
    return "\n".join(lines).rstrip() + "\n"


def commands(command: Any, name: str = "creamtea") -> Iterator[tuple[str, Any]]:
    """Yield every command below a group with its full name, such as "creamtea campaign create"."""
    for key, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from commands(inner, f"{name} {key}")
        else:
            yield f"{name} {key}", inner


def _row(parameter: Any) -> tuple[str, str, str, str]:
    if parameter.param_type_name == "argument":
        name = code(parameter.metavar or parameter.name.upper())
    else:
        name = ", ".join(map(code, (*parameter.opts, *parameter.secondary_opts)))
    meaning = cell(parameter.help or "")
    if parameter.envvar:
        meaning += f" Also by the environment: `{parameter.envvar}`."
    return name, _value(parameter), _default(parameter), meaning


def _value(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return ""
    if parameter.param_type_name == "option" and parameter.metavar not in (None, *NOUNS.values()):
        words = code(parameter.metavar).replace("|", "\\|")
    else:
        words = _type(type_of_one(parameter.type_descriptor.annotation))
    least, most = parameter.min, parameter.max
    if least is not None or most is not None:
        words += f", {least:,} to {most:,}" if most is not None else f", at least {least:,}"
    return words + (", repeatable" if parameter.multiple else "")


def _type(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(map(code, get_args(annotation)))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(code(member.value) for member in annotation)
    return NOUNS[annotation]


def _default(parameter: Any) -> str:
    default = parameter.default
    if parameter.required:
        return "*required*"
    if default is None or default is False or default in ((), [], ""):  # 0 is a default like any other
        return ""
    if getattr(parameter, "is_flag", False):
        return code(parameter.opts[0])
    return code(default.value if isinstance(default, Enum) else str(default))
