"""The command line: puts the commands together, and turns errors into one line and an exit code.

A command's module is imported when the command is asked for: all together take seconds.

Exit codes: 0 done, 1 something failed, 2 the input is wrong, 130 interrupted, 141 the output is no longer
read (`| head`).
"""

from __future__ import annotations

import ast
import errno
import os
import sys
from collections import UserDict
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from traceback import print_exc
from types import UnionType
from typing import Annotated, Any, NoReturn, Union, get_args, get_origin

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

import creamtea
from creamtea.cli.printing import say
from creamtea.errors import CreamteaError

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
PACKAGE = "creamtea.cli"
NOUNS = {int: "whole number", float: "number", str: "text", Path: "path"}


@dataclass(frozen=True)
class Entry:
    """Where a command is: `place` is "module:function", or "module:commands" of a group.

    The module's NAME_EXAMPLES is the text below the command's help. `summary`: for a group; a command's
    summary is the first paragraph of its docstring.
    """

    place: str
    summary: str = ""

    def load(self, name: str) -> Any:
        """Import the Typer command, with all its options."""
        module, _, attribute = self.place.partition(":")
        loaded = import_module(f"{PACKAGE}.{module}")
        entry = getattr(loaded, attribute)
        if isinstance(entry, typer.Typer):
            entry.info.help = self.summary
            command: Any = typer.main.get_group(entry)
        else:
            alone = typer.Typer(
                rich_markup_mode="markdown",
                add_completion=False,
                pretty_exceptions_enable=False,
                context_settings=HELP_OPTIONS,
            )
            alone.command(epilog=getattr(loaded, f"{attribute.upper()}_EXAMPLES"))(entry)
            command = typer.main.get_command(alone)
        command.name = name
        _in_plain_words(command)
        return command

    def described(self) -> str:
        """Read the summary from the source, without importing anything."""
        if self.summary:
            return self.summary
        module, _, attribute = self.place.partition(":")
        spec = find_spec(f"{PACKAGE}.{module}")
        assert spec is not None
        assert spec.origin is not None
        for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == attribute:
                return (ast.get_docstring(node) or "").partition("\n\n")[0]
        raise LookupError(f"{self.place} is not there")


def _in_plain_words(command: Any) -> None:
    """Make help say "text" for "<str>", and nothing for flags and arguments.

    A flag takes no value, and an argument's name says what it is.
    """
    for inner in command.commands.values() if isinstance(command, TyperGroup) else ():
        _in_plain_words(inner)
    _say_types_of_options(command)


def _say_types_of_options(command: Any) -> None:
    help_option = command.get_help_option(
        typer.Context(command, help_option_names=HELP_OPTIONS["help_option_names"])
    )
    for option in (*command.params, help_option):
        noun = NOUNS.get(element_type(option.type_descriptor.annotation))
        if option.param_type_name == "argument":
            if noun is not None:  # not a choice, whose values are shown there
                option.display_type_rich = lambda ctx: None
        elif option.is_flag:
            option.metavar = ""
        elif option.metavar is None:
            option.metavar = noun


def element_type(annotation: Any) -> Any:
    """Return the element type of `list[T]`, or T of `T | None`."""
    if get_origin(annotation) not in (list, Union, UnionType):
        return annotation
    return element_type(next(part for part in get_args(annotation) if part is not type(None)))


class LazyCommand(TyperCommand):
    """A command with its name and summary; it is loaded only to parse its arguments."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name=name, callback=None, help=entry.described())
        self.entry = entry

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.entry.load(self.name or "").make_context(info_name, args, parent=parent, **extra)


class LoadedCommands(UserDict[str, Any]):
    """The commands by name, each loaded when it is first read; for code that goes through all of them."""

    def __getitem__(self, name: str) -> Any:
        if isinstance(entry := self.data[name], Entry):
            self.data[name] = entry.load(name)
        return self.data[name]


def lazy_group(entries: dict[str, Entry]) -> type[TyperGroup]:
    """Return the class of a Typer group that has these commands."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**{**attributes, "commands": {}})
            self.commands = LoadedCommands(entries)

        def get_params(self, ctx: Any) -> Any:
            _say_types_of_options(self)
            return super().get_params(ctx)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return LazyCommand(cmd_name, entries[cmd_name]) if cmd_name in entries else None

        def list_commands(self, ctx: Any) -> list[str]:
            return list(entries)

    return LazyGroup


creamtea.collect_rarely()

TRACEBACK = "--traceback"
STDOUT = 1  # its file descriptor
CLOSED_PIPE = 141  # 128 + SIGPIPE: the exit code of a tool that this signal ends

COMMANDS = {
    "init": Entry("study_files:init"),
    "validate": Entry("study_files:validate"),
    "schema": Entry("study_files:schema"),
    "run": Entry("running:run"),
    "compare": Entry("report:compare"),
    "submit": Entry("running:submit"),
    "status": Entry("status:status"),
    "logs": Entry("status:logs"),
    "cancel": Entry("running:cancel"),
    "retry": Entry("running:retry"),
    "report": Entry("report:report"),
    "translate": Entry("models:translate"),
    "export": Entry("models:export"),
    "blame": Entry("blame:blame"),
    "bundle": Entry("bundle:bundle"),
    "verify": Entry("bundle:verify"),
    "serve": Entry("serve:serve"),
    "link": Entry("serve:link"),
    "controller": Entry("running:controller"),
    "plugins": Entry("plugins:plugins"),
    "docs": Entry("docs:docs"),
    "gc": Entry("upkeep:gc"),
    "du": Entry("upkeep:du"),
    "study": Entry("upkeep:study_commands", summary="Remove studies from the database."),
    "links": Entry("links:commands", summary="List or revoke the links of readers, organisers and raters."),
    "campaign": Entry(
        "campaign:commands", summary="Human evaluation: people rate the outputs of systems, blind."
    ),
    "programme": Entry(
        "programme:commands", summary="Human evaluation of many translation directions, from one file."
    ),
    "db": Entry("upkeep:database_commands", summary="Upgrade or check the database."),
}

NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# `Path.exists` raises these errors for wrong paths instead of returning False
WRONG_PATH = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTDIR)

app = typer.Typer(
    name="creamtea",
    cls=lazy_group(COMMANDS),
    help="Train, decode, rate and compare neural machine translation variants.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings=HELP_OPTIONS,
)


def _version(asked: bool) -> None:
    if asked:
        say(f"creamtea {creamtea.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option(TRACEBACK, help="Show the traceback of an error, for a bug report.")
    ] = False,
) -> None:
    pass


def main() -> None:
    if sys.stdout is None:  # whoever started this process closed it, and wants no output
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    try:
        _run()
    except BrokenPipeError:  # raised by a message
        _end(CLOSED_PIPE)
    except SystemExit as ended:
        # Typer and Rich turn a broken pipe into code 1
        _end(CLOSED_PIPE if isinstance(ended.__context__, BrokenPipeError) else ended.code)


def _end(code: int | str | None) -> NoReturn:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = CLOSED_PIPE
    except OSError as error:
        say(f"creamtea: {_not_written(error)}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        code = 1
    if code == CLOSED_PIPE:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)  # so that Python can flush at its end
    inline = sys.modules.get("creamtea.engine.executors.inline")
    if inline is not None and isinstance(code, int):
        inline.leave_running_steps(code)
    sys.exit(code)


def _run() -> None:
    try:
        app()
    except Exception as error:
        message, code = _message_of(error)
        if not message:
            raise
        if TRACEBACK in sys.argv:
            print_exc()
        say(f"creamtea: {message}", err=True)
        sys.exit(code)


def _message_of(error: Exception) -> tuple[str, int]:
    """Return the message and exit code of an error; no message for an unexpected error."""
    if isinstance(error, CreamteaError):
        return str(error), error.exit_code
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return f"{error.object[:60]!r} is not UTF-8 text: type it again", 2
    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        return "the folder that you are in has been deleted: `cd` to another one, and try again", 2
    if isinstance(error, OSError) and error.errno in NOT_WRITTEN and error.filename is None:
        return _not_written(error), 1
    if isinstance(error, OSError) and error.errno in WRONG_PATH and isinstance(error.filename, str):
        return f"{error.filename}: {error.strerror}; name another path", 2
    if "sqlalchemy" in sys.modules:
        from creamtea.store.engines import outage_of

        if (outage := outage_of(error)) is not None:
            safe = " What was committed is safe." if outage.patience else ""
            mend = "" if outage.remedy else " See its server's log, or which program has its file open."
            again = f"Then run the same command again (`creamtea {TRACEBACK} ...` shows where it failed)"
            return f"{outage}.{mend}{safe} {again}", 1
    return "", 1


def _not_written(error: OSError) -> str:
    return f"the output cannot be written: {error.strerror}"


def _folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


if __name__ == "__main__":
    main()
