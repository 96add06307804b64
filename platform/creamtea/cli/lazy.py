"""A group of commands whose modules are imported when they are asked for: all together take seconds."""

from __future__ import annotations

import ast
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
PACKAGE = "creamtea.cli"
NOUNS = {int: "whole number", float: "number", str: "text", Path: "path"}


@dataclass(frozen=True)
class Entry:
    """Where a command is: `place` is "module:function", or "module:commands" of a group.

    `examples`: the module's text below the command's help. `summary`: of a group; a command's is the first
    paragraph of its docstring.
    """

    place: str
    examples: str = "EXAMPLES"
    summary: str = ""

    def load(self, name: str) -> Any:
        """The Typer command, with all its options."""
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
            alone.command(epilog=getattr(loaded, self.examples))(entry)
            command = typer.main.get_command(alone)
        command.name = name
        _in_plain_words(command)
        return command

    def described(self) -> str:
        """The summary, read from the source: nothing is imported."""
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
    """Help that says "text" for "<str>", and nothing for a flag, which takes no value, and for an argument,
    whose name says what it is."""
    for inner in command.commands.values() if isinstance(command, TyperGroup) else ():
        _in_plain_words(inner)
    _say_types_of_options(command)


def _say_types_of_options(command: Any) -> None:
    help_option = command.get_help_option(
        typer.Context(command, help_option_names=HELP_OPTIONS["help_option_names"])
    )
    for option in (*command.params, help_option):
        noun = NOUNS.get(type_of_one(option.type_descriptor.annotation))
        if option.param_type_name == "argument":
            if noun is not None:  # not a choice, whose values are shown there
                option.display_type_rich = lambda ctx: None
        elif option.is_flag:
            option.metavar = ""
        elif option.metavar is None:
            option.metavar = noun


def type_of_one(annotation: Any) -> Any:
    """Of a list's elements, and of what may be None."""
    if get_origin(annotation) not in (list, Union, UnionType):
        return annotation
    return type_of_one(next(part for part in get_args(annotation) if part is not type(None)))


class Listed(TyperCommand):
    """A command that is known by name and summary; what it parses is up to the loaded one."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name=name, callback=None, help=entry.described())
        self.entry = entry

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.entry.load(self.name or "").make_context(info_name, args, parent=parent, **extra)


class LoadedCommands(MutableMapping[str, Any]):
    """The whole commands by name, each loaded once; for those who go through all of them."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = entries
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._entries[name].load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def lazy_group(entries: dict[str, Entry]) -> type[TyperGroup]:
    """The class of a Typer group that has these commands."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**{**attributes, "commands": {}})
            self.commands = LoadedCommands(entries)

        def get_params(self, ctx: Any) -> Any:
            _say_types_of_options(self)
            return super().get_params(ctx)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return Listed(cmd_name, entries[cmd_name]) if cmd_name in entries else None

        def list_commands(self, ctx: Any) -> list[str]:
            return list(entries)

    return LazyGroup
