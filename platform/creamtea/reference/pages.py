"""The pages of docs/reference, by file name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from creamtea.cli.main import NOUNS, type_of_one
from creamtea.contract.step import Column
from creamtea.document.values import Strict
from creamtea.human.making.settings import CampaignDocument
from creamtea.human.protocols import OWN
from creamtea.methods.analysis import ANALYSES, EMPTY, LENGTH
from creamtea.methods.family import Family
from creamtea.methods.metrics import METRICS
from creamtea.methods.plugins import FAMILIES
from creamtea.methods.searches import PRECISIONS
from creamtea.methods.training import SelectBy
from creamtea.reference.environment import environment_page
from creamtea.reference.tables import GENERATED, cell, code, fields_table, paragraphs, parts_of, table
from creamtea.report.latency import LATENCY, SPEED
from creamtea.report.tables import (
    PAIRS,
    RECALL_IDIOM,
    RECALL_MACRO,
    RECALL_SENTENCE,
    RECALL_WORDS,
    SELECTED,
    training_columns,
)
from creamtea.study.grid import GRID_KEYS
from creamtea.study.spec import Study

# ---------------------------------------------------------------- study.md

STUDY_INTRODUCTION = f"""\
# The study file

{GENERATED}

Every key of a study. [Methods](methods.md) are on a page of their own; the
[guide](../guide-researcher.md#the-study-file) has them in use. `creamtea schema` says the same to an editor,
and `creamtea validate` finds every mistake in a file.

- NAME is a name of yours: letters, digits and `._=,+-`, of which the first is a letter or digit.
- A key without a default is *required*, or is absent unless you write it.
- Below VARIANT_KEYS of a variant, and SYSTEM_KEYS
  of a system, a list in place of a value makes one variant or system for each
  ([grids](../guide-researcher.md#the-study-file)).
- Paths are relative to the study's folder, or to `--data`."""


def study_page() -> str:
    blocks = _blocks()
    links = {model.__name__: f"#{places[0][0]}" for model, places in blocks.items()}
    for part in parts_of(Study):
        if part.family is not None:
            links[part.model.__name__] = f"methods.md#{anchor(part.family)}"
    introduction = STUDY_INTRODUCTION
    for word, section in (("VARIANT_KEYS", "variants"), ("SYSTEM_KEYS", "systems")):
        introduction = introduction.replace(word, ", ".join(f"`{key}`" for key in GRID_KEYS[section]))
    lines = [introduction, "", "## The whole file", "", *paragraphs(Study.__doc__)]
    lines += fields_table(Study, links)
    for model, places in blocks.items():
        lines += [f"## {places[0][0]}", "", "At " + ", ".join(f"`{place}`" for _, place in places) + "."]
        lines += ["", *paragraphs(model.__doc__), *fields_table(model, links)]
    return "\n".join(lines).rstrip() + "\n"


def _blocks() -> dict[type[Strict], list[tuple[str, str]]]:
    """Return the places of each block as (key, place), in the study's order."""
    result: dict[type[Strict], list[tuple[str, str]]] = {}
    for part in parts_of(Study):
        places = result.setdefault(part.model, []) if part.family is None else []
        if (part.key, part.place) not in places:
            places.append((part.key, part.place))
    return result


# ---------------------------------------------------------------- campaign.md

CAMPAIGN_INTRODUCTION = f"""\
# The campaign file

{GENERATED}

Every key of a campaign. The [guide for organisers](../guide-organiser.md) says when to use which.
`creamtea campaign init` writes a file with these comments, `creamtea campaign validate FILE` finds
every mistake, and `creamtea campaign schema` says the same to an editor.

- A key without a default is *required*, or is absent unless you write it.
- Files are named relative to the campaign's folder. `instructions`, `domain_instructions`, `consent` and
  `questions` name a file if they are one line that ends in `.md` or `.txt`, and otherwise are the text.
- A key that would do nothing is a mistake: `strata` without `kind: stratified`, say."""


def campaign_page() -> str:
    blocks = {part.model: part.place for part in parts_of(CampaignDocument)}
    links = {model.__name__: f"#{place.replace('.', '')}" for model, place in blocks.items()}
    lines = [CAMPAIGN_INTRODUCTION, "", "## The whole file", "", *paragraphs(CampaignDocument.__doc__)]
    lines += fields_table(CampaignDocument, links)
    for model, place in blocks.items():
        lines += [f"## {place}", "", *paragraphs(model.__doc__), *fields_table(model, links)]
    return "\n".join(lines).rstrip() + "\n"


# ---------------------------------------------------------------- methods.md

NOTES = Path(__file__).with_name("methods.md")  # what to know about a family, in a section of its heading

METHODS_INTRODUCTION = f"""\
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
    """Return the anchor of a family's section: "test-sets"."""
    return family.group.rpartition(".")[2].replace("_", "-")


def methods_page() -> str:
    parts = list(parts_of(Study))
    links = {part.model.__name__: f"study.md#{part.key}" for part in reversed(parts) if part.family is None}
    links |= {part.model.__name__: f"#{anchor(part.family)}" for part in parts if part.family is not None}
    lines = [METHODS_INTRODUCTION, ""]
    about = notes()
    for family in FAMILIES:
        places = dict.fromkeys(part.place for part in parts if part.family is family)
        heading = anchor(family).replace("-", " ").capitalize()
        lines += [*([""] if lines[-1] else []), f"## {heading}", ""]
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
    rows = [(f"`{name}`", ", ".join(devices)) for name, devices in PRECISIONS.items()]
    lines += ["", "## Precisions", "", "At `systems.NAME.precision`.", *table(("precision", "on"), rows)]
    lines += [about.pop("Precisions"), ""]
    if about:
        raise ValueError(f"{NOTES.name} has sections of no family: {', '.join(about)}")
    return "\n".join([*lines, *_protocols()]).rstrip() + "\n"


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


# ---------------------------------------------------------------- measures.md

MEASURES_INTRODUCTION = f"""\
# What reports measure

{GENERATED}

The columns of a study's report, with their units and the better direction. Brackets in a cell are 95 %
intervals; what Δ, p and `*` mean is in the [guide for readers](../guide-reader.md), which also explains
ratings by people. With `--json` values are at full precision, under the name in the last column; shares are
from 0 to 1."""

HEADINGS = ("column", "unit", "better", "meaning", "in JSON")


def measures_page() -> str:
    lines = [MEASURES_INTRODUCTION, "", "## Quality", ""]
    lines += ["One for each of a study's [metrics](methods.md#metrics)."]
    lines += table(("kind", "column", "better", "meaning"), _metrics())
    recall = (RECALL_WORDS, RECALL_IDIOM, RECALL_MACRO, RECALL_SENTENCE, SELECTED)
    sections: list[tuple[str, str, Iterable[Column]]] = [
        ("Recall and selected size", "Of a vocabulary selection; for a full one recall is 100.", recall),
        ("Outputs", "Of every system.", (LENGTH, EMPTY)),
        ("Latency", "Of the systems that `latency` times.", (*LATENCY, SPEED)),
        ("Trainings", "Below *Provenance*.", training_columns(get_args(SelectBy))),
        ("Corpora", "Below *Provenance*.", PAIRS),
    ]
    for title, about, columns in sections:
        lines += [f"## {title}", "", about, *table(HEADINGS, map(_row, columns))]
    for kind, method in ANALYSES.built_in.items():
        columns = [measure.column for layout in method.tables for measure in layout.measures]
        lines += [f"## {method.title}", "", f"Of [the analysis `{kind}`](methods.md#analysis-{kind})."]
        lines += table(HEADINGS, map(_row, dict.fromkeys(columns)))
    return "\n".join(lines).rstrip() + "\n"


def _metrics() -> Iterable[tuple[str, str, str, str]]:
    for kind, method in METRICS.built_in.items():
        if any(field.is_required() for name, field in method.model_fields.items() if name != "kind"):
            shown = "the `display` says it", "the `display` says it"
        else:
            column = method.model_validate({"kind": kind}).column()
            shown = column.title, column.better
        yield f"`{kind}`", *shown, cell(method.__doc__ or "")


def _row(column: Column) -> tuple[str, str, str, str, str]:
    return cell(column.title), cell(column.unit), column.better, cell(column.note), f"`{column.key}`"


# ---------------------------------------------------------------- commands.md

COMMANDS_INTRODUCTION = f"""\
# Commands

{GENERATED}

Every command with its options, as `creamtea COMMAND --help` has them.

Exit codes: 0 done, 1 something failed, 2 the input is wrong, 130 interrupted, 141 nobody reads the output
any more (`| head`). `creamtea --traceback COMMAND` shows where an error came from, for a bug report;
`creamtea --version` prints the version."""


def commands_page() -> str:
    from creamtea.cli.main import app

    lines = [COMMANDS_INTRODUCTION, ""]
    for name, command in commands(get_command(app)):
        lines += [f"## {name}", ""]
        lines += [cell(part) for part in (command.help or "").split("\n\n") for part in (part, "")]
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        lines += table(("argument or option", "value", "default", "meaning"), map(_parameter_row, shown))
        lines += [*(command.epilog or "").strip().splitlines(), ""]
    return "\n".join(lines).rstrip() + "\n"


def commands(command: Any, name: str = "creamtea") -> Iterator[tuple[str, Any]]:
    """Yield every command below a group with its full name, such as "creamtea campaign create"."""
    for key, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from commands(inner, f"{name} {key}")
        else:
            yield f"{name} {key}", inner


def _parameter_row(parameter: Any) -> tuple[str, str, str, str]:
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


PAGES: dict[str, Callable[[], str]] = {
    "study.md": study_page,
    "campaign.md": campaign_page,
    "methods.md": methods_page,
    "measures.md": measures_page,
    "commands.md": commands_page,
    "environment.md": environment_page,
}
