"""`creamtea plugins`: the kinds that installed packages add."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.plugins import Additions, Plugin

PLUGINS_EXAMPLES = "Example: `creamtea plugins`, and `creamtea plugins --all` with creamtea's own kinds"


def plugins(
    everything: Annotated[bool, typer.Option("--all", help="List creamtea's own kinds, too.")] = False,
    as_json: workplace.AsJson = False,
) -> None:
    """List the methods, protocols and formats that plug-ins add, and the plug-ins that cannot be loaded.

    A plug-in is an installed package with entry points of creamtea; docs/extending.md shows how to write one.
    """
    rows = _rows(everything)
    if as_json:
        say(json.dumps(rows, indent=2))
    elif not rows:
        say("no plug-ins are installed; `creamtea plugins --all` lists creamtea's own kinds")
    else:
        _show(rows)
    if any(row["state"] == "broken" for row in rows):
        raise typer.Exit(1)


def _rows(everything: bool) -> list[dict[str, str]]:
    from creamtea.human.formats.exchange import FORMATS
    from creamtea.human.protocols import PROTOCOLS
    from creamtea.methods.plugins import FAMILIES

    groups: list[tuple[str, Mapping[str, Any], Additions[Any]]] = [
        *((family.noun, family.built_in, family.added) for family in FAMILIES),
        ("rating protocol", PROTOCOLS.built_in, PROTOCOLS.added()),
        ("format of ratings", FORMATS.built_in, FORMATS.added()),
    ]
    rows = []
    for noun, built_in, added in groups:
        if everything:
            creamtea_itself = Plugin("creamtea", "")
            rows += [
                _row(noun, kind, creamtea_itself, "built in", method.title)
                for kind, method in built_in.items()
            ]
        rows += [
            _row(noun, kind, added.plugins[kind], "ready", method.title)
            for kind, method in added.kinds.items()
        ]
        rows += [_row(noun, broken.kind, broken.plugin, "broken", broken.reason) for broken in added.broken]
    return rows


def _row(family: str, kind: str, plugin: Plugin, state: str, about: str) -> dict[str, str]:
    return {"family": family, "kind": kind, **asdict(plugin), "state": state, "about": about}


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from creamtea.report.terminal import make_console

    table = Table("family", "kind", "package", "state", "about", box=None, pad_edge=False)
    for row in rows:
        package = f"{row['distribution']} {row['version']}".rstrip()
        cells = (row["family"], row["kind"], package, row["state"], row["about"])
        table.add_row(*map(escape, cells))
    make_console().print(table)
