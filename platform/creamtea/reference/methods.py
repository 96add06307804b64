"""docs/reference/methods.md: every kind of every family with its keys, and the rating protocols."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from creamtea.human.protocols import OWN
from creamtea.methods.family import Family
from creamtea.methods.plugins import FAMILIES
from creamtea.methods.searches import PRECISIONS
from creamtea.reference.fields import fields_table, parts_of
from creamtea.reference.markup import GENERATED, cell, paragraphs, table
from creamtea.study.spec import Study

NOTES = Path(__file__).with_suffix(".md")  # what to know about a family, in a section of its heading

INTRODUCTION = f"""\
# Methods

{GENERATED}

Every kind that creamtea itself has, with its keys, and what to know about its family. The blocks that
kinds stand in are in [the study file](study.md), what their steps write and measure in
[steps](../steps.md). [How things are measured](../methods.md) has the statistics. `creamtea plugins --all`
lists the kinds of plug-ins, too."""


def notes() -> dict[str, str]:
    """Read the sections of NOTES by their headings."""
    parts = NOTES.read_text(encoding="utf-8").removeprefix("## ").split("\n## ")
    return {heading: text.strip() for heading, _, text in (part.partition("\n") for part in parts)}


def anchor(family: Family[Any]) -> str:
    """Of the family's section: "test-sets"."""
    return family.group.rpartition(".")[2].replace("_", "-")


def markdown() -> str:
    parts = list(parts_of(Study))
    links = {part.model.__name__: f"study.md#{part.key}" for part in reversed(parts) if part.family is None}
    links |= {part.model.__name__: f"#{anchor(part.family)}" for part in parts if part.family is not None}
    lines = [INTRODUCTION, ""]
    about = notes()
    for family in FAMILIES:
        places = dict.fromkeys(part.place for part in parts if part.family is family)
        heading = anchor(family).replace("-", " ").capitalize()
        lines += [f"## {heading}", ""]
        lines += ["At " + ", ".join(f"`{place}`" for place in places) + ", told apart by `kind`."]
        lines += [f"Without a `kind` it is `{family.default}`."] if family.default else []
        lines += ["", about.pop(heading)] if heading in about else []
        for kind, method in family.built_in.items():
            lines += ["", f"### {family.noun} `{kind}`", "", f"**{cell(method.title)}.** "]
            lines += [*paragraphs(method.__doc__), *fields_table(method, links)]
            made = [("file", method.files), ("metric", method.metrics)]
            lines += table(
                ("its step adds", "name", "what"),
                [(part, f"`{name}`", cell(what)) for part, names in made for name, what in names.items()],
            )
    lines += [
        "",
        "## Training",
        "",
        "At `variants.NAME.training` ([its keys](study.md#training)).",
        "",
        about.pop("Training"),
    ]
    lines += [*_precisions(), about.pop("Precisions"), ""]
    if about:
        raise ValueError(f"{NOTES.name} has sections of no family: {', '.join(about)}")
    return "\n".join([*lines, *_protocols()]).rstrip() + "\n"


def _precisions() -> list[str]:
    rows = [(f"`{name}`", ", ".join(devices)) for name, devices in PRECISIONS.items()]
    return ["", "## Precisions", "", "At `systems.NAME.precision`.", *table(("precision", "on"), rows)]


def _protocols() -> list[str]:
    rows = []
    for name, protocol in OWN.items():
        if not protocol.rated_here:
            continue
        systems = f"{protocol.min_systems} to {protocol.max_systems}"
        selections = ", ".join(f"`{selection}`" for selection in protocol.selections)
        rows.append((f"`{name}`", cell(protocol.title), cell(protocol.summary), systems, selections))
    headings = ("`kind`", "name", "what a rater does", "systems", "`sample.kind`")
    about = "Of [a campaign](campaign.md#protocol); the [guide](../guide-organiser.md) compares them."
    return ["## Rating protocols", "", about, *table(headings, rows)]
