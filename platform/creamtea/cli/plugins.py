"""`creamtea plugins`: the kinds that installed packages add."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from creamtea.cli import workplace as shared


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `creamtea plugins`, and `creamtea plugins --all` with creamtea's own kinds")(
        plugins
    )


def plugins(
    everything: Annotated[bool, typer.Option("--all", help="List creamtea's own kinds, too.")] = False,
    as_json: shared.AsJson = False,
) -> None:
    """List the kinds of methods that plug-ins add, and the plug-ins that cannot be loaded.

    A plug-in is an installed package with entry points of creamtea; docs/extending.md shows how to write one.
    """
    rows = _rows(everything)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif not rows:
        typer.echo("no plug-ins are installed; `creamtea plugins --all` lists creamtea's own kinds")
    else:
        _show(rows)
    if any(row["state"] == "broken" for row in rows):
        raise typer.Exit(1)


def _rows(everything: bool) -> list[dict[str, str]]:
    from creamtea.methods.plugins import FAMILIES

    rows = []
    for family in FAMILIES:
        for kind, method in family.kinds.items():
            plugin = family.plugins.get(kind)
            if plugin is not None:
                words = (plugin.distribution, plugin.version, "ready", method.title)
                rows.append(_row(family.noun, kind, *words))
            elif everything:
                rows.append(_row(family.noun, kind, "creamtea", "", "built in", method.title))
        for entry in family.broken:
            plugin = entry.plugin
            words = (plugin.distribution, plugin.version, "broken", entry.reason)
            rows.append(_row(family.noun, entry.kind, *words))
    return rows + _protocol_rows(everything)


def _protocol_rows(everything: bool) -> list[dict[str, str]]:
    from creamtea.human.protocols import OWN, find_protocol, plug_in_protocols

    noun = "rating protocol"
    rows = []
    if everything:
        rows += [_row(noun, name, "creamtea", "", "built in", own.title) for name, own in OWN.items()]
    for listed in plug_in_protocols():
        state = "broken" if listed.problem else "ready"
        about = listed.problem or find_protocol(listed.name).title
        rows.append(_row(noun, listed.name, listed.origin.distribution, listed.origin.version, state, about))
    return rows


def _row(family: str, kind: str, distribution: str, version: str, state: str, about: str) -> dict[str, str]:
    return {
        "family": family,
        "kind": kind,
        "distribution": distribution,
        "version": version,
        "state": state,
        "about": about,
    }


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from creamtea.report.terminal import make_console

    table = Table("family", "kind", "package", "state", "about", box=None, pad_edge=False)
    for row in rows:
        package = f"{row['distribution']} {row['version']}".rstrip()
        table.add_row(row["family"], row["kind"], package, row["state"], row["about"])
    make_console().print(table)
