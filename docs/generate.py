"""Write the generated pages of docs/: `python docs/generate.py`, or `make docs`.

The reference comes from models, commands and variables, the steps from their kinds, the papers' tables from
the catalogue of papers, and the verdicts on their claims from results/claims.yaml.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Self, Union, get_args, get_origin

from pydantic import Field, TypeAdapter, model_validator
from typer.main import get_command

from creamtea.cli.main import NOUNS, app, element_type
from creamtea.contract.step import Column, StepKind
from creamtea.document.document import read_document
from creamtea.document.mistakes import fields_by_key, number
from creamtea.document.values import FILE, NAME_CHARACTERS, Description, Positive, Strict, descriptions
from creamtea.human.making.settings import CampaignDocument
from creamtea.human.protocols import BUILT_IN
from creamtea.methods.analysis import ANALYSES, EMPTY, LENGTH
from creamtea.methods.family import Family
from creamtea.methods.metrics import METRICS
from creamtea.methods.plugins import FAMILIES
from creamtea.methods.searches import PRECISIONS
from creamtea.methods.training import SelectBy
from creamtea.papers.catalogue import (
    Collection,
    Direction,
    Exhibit,
    Paper,
    Status,
    collections_of,
    exhibits,
    papers,
    status_words,
)
from creamtea.report import text
from creamtea.report.model import Cell, Delta
from creamtea.report.papers import RULE, Judgement, OurValue, judge, margin_of
from creamtea.report.tables import (
    LATENCY,
    PAIRS,
    RECALL_IDIOM,
    RECALL_MACRO,
    RECALL_SENTENCE,
    RECALL_WORDS,
    SELECTED,
    SPEED,
    training_columns,
)
from creamtea.settings import CHECKPOINT_PART_MB, Serving
from creamtea.stats.paired import SIGNIFICANT
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.study.grid import GRID_KEYS
from creamtea.study.spec import Study

DOCS = Path(__file__).parent
GENERATED = "This page is generated from the code (`make docs`), and a test keeps it true."

# ---------------------------------------------------------------- study.md

STUDY_INTRODUCTION = f"""\
# The study file

{GENERATED}

Every key of a study. [Methods](methods.md) have their own page; the
[guide](../guide-researcher.md#the-study-file) shows them in use. `creamtea schema` gives an editor the same
keys, and `creamtea validate` finds every mistake in a file.

- NAME is a name that you choose: letters, digits and `._=,+-`, beginning with a letter or digit.
- A key without a default is *required*, or is absent unless you write it.
- Below VARIANT_KEYS of a variant, and SYSTEM_KEYS
  of a system, a list instead of a value makes one variant or system for each value
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
every mistake, and `creamtea campaign schema` gives an editor the same keys.

- A key without a default is *required*, or is absent unless you write it.
- Files are named relative to the campaign's folder. `instructions`, `domain_instructions`, `consent` and
  `questions` name a file if they are one line that ends in `.md` or `.txt`, and otherwise are the text.
- A key that would do nothing is a mistake, such as `strata` without `kind: stratified`."""


def campaign_page() -> str:
    blocks = {part.model: part.place for part in parts_of(CampaignDocument)}
    links = {model.__name__: f"#{place.replace('.', '')}" for model, place in blocks.items()}
    lines = [CAMPAIGN_INTRODUCTION, "", "## The whole file", "", *paragraphs(CampaignDocument.__doc__)]
    lines += fields_table(CampaignDocument, links)
    for model, place in blocks.items():
        lines += [f"## {place}", "", *paragraphs(model.__doc__), *fields_table(model, links)]
    return "\n".join(lines).rstrip() + "\n"


# ---------------------------------------------------------------- methods.md

NOTES = DOCS / "reference" / "notes.md"  # on the families, in sections with their headings

METHODS_INTRODUCTION = f"""\
# Methods

{GENERATED}

Every built-in kind with its keys, and notes on its family. [The study file](study.md) describes the blocks
around them, [steps](../steps.md) the files and metrics of their steps.
[How things are measured](../methods.md) has the statistics. `creamtea plugins --all` also lists the kinds of
plug-ins."""


def anchor(family: Family[Any]) -> str:
    """Return the anchor of a family's section: "test-sets"."""
    return family.group.rpartition(".")[2].replace("_", "-")


def methods_page() -> str:
    parts = list(parts_of(Study))
    links = {part.model.__name__: f"study.md#{part.key}" for part in reversed(parts) if part.family is None}
    links |= {part.model.__name__: f"#{anchor(part.family)}" for part in parts if part.family is not None}
    lines = [METHODS_INTRODUCTION, ""]
    parts_of_notes = NOTES.read_text(encoding="utf-8").removeprefix("## ").split("\n## ")
    about = {heading: text.strip() for heading, _, text in (part.partition("\n") for part in parts_of_notes)}
    for family in FAMILIES:
        places = dict.fromkeys(part.place for part in parts if part.family is family)
        heading = anchor(family).replace("-", " ").capitalize()
        lines += [*([""] if lines[-1] else []), f"## {heading}", ""]
        lines += ["At " + ", ".join(f"`{place}`" for place in places) + ", distinguished by `kind`."]
        lines += [f"The default `kind` is `{family.default}`."] if family.default else []
        lines += ["", about.pop(heading)] if heading in about else []
        for kind, method in family.built_in.items():
            lines += ["", f"### {family.noun} `{kind}`", "", f"**{cell(method.title)}.** "]
            lines += [*paragraphs(method.__doc__), *fields_table(method, links)]
            made = [("file", method.files), ("metric", method.metrics)]
            lines += table(
                ("its step adds", "name", "meaning"),
                [(part, f"`{name}`", cell(text)) for part, names in made for name, text in names.items()],
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
    lines += ["## Rating protocols", ""]
    lines += ["For [a campaign](campaign.md#protocol); the [guide](../guide-organiser.md) compares them."]
    lines += table(
        ("`kind`", "name", "what a rater does", "systems", "`sample.kind`"),
        [
            (
                f"`{name}`",
                cell(protocol.title),
                cell(protocol.summary),
                f"{protocol.min_systems} to {protocol.max_systems}",
                ", ".join(f"`{selection}`" for selection in protocol.selections),
            )
            for name, protocol in BUILT_IN.items()
            if protocol.rated_here
        ],
    )
    return "\n".join(lines).rstrip() + "\n"


# ---------------------------------------------------------------- measures.md

MEASURES_INTRODUCTION = f"""\
# What reports measure

{GENERATED}

The columns of a study's report, with their units and the better direction. Brackets in a cell are 95 %
intervals; the [guide for readers](../guide-reader.md) explains Δ, p and `*`, and ratings by people. With
`--json` values are at full precision, under the name in the last column; shares are from 0 to 1."""

HEADINGS = ("column", "unit", "better", "meaning", "in JSON")


def measures_page() -> str:
    lines = [MEASURES_INTRODUCTION, "", "## Quality", ""]
    lines += ["One column for each of a study's [metrics](methods.md#metrics)."]
    lines += table(("kind", "column", "better", "meaning"), _metrics())
    recall = (RECALL_WORDS, RECALL_IDIOM, RECALL_MACRO, RECALL_SENTENCE, SELECTED)
    sections: list[tuple[str, str, Iterable[Column]]] = [
        (
            "Recall and selected size",
            "For vocabulary selections; with the full vocabulary recall is 100.",
            recall,
        ),
        ("Outputs", "For every system.", (LENGTH, EMPTY)),
        ("Latency", "For the systems that `latency` times.", (*LATENCY, SPEED)),
        ("Trainings", "Below *Provenance*.", training_columns(get_args(SelectBy))),
        ("Corpora", "Below *Provenance*.", PAIRS),
    ]
    for title, about, columns in sections:
        lines += [f"## {title}", "", about, *table(HEADINGS, map(_row, columns))]
    for kind, method in ANALYSES.built_in.items():
        columns = [measure.column for layout in method.tables for measure in layout.measures]
        lines += [f"## {method.title}", "", f"For [the analysis `{kind}`](methods.md#analysis-{kind})."]
        lines += table(HEADINGS, map(_row, dict.fromkeys(columns)))
    return "\n".join(lines).rstrip() + "\n"


def _metrics() -> Iterable[tuple[str, str, str, str]]:
    for kind, method in METRICS.built_in.items():
        if any(field.is_required() for name, field in method.model_fields.items() if name != "kind"):
            shown = "from `display`", "from `display`"
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

Every command with its options, as `creamtea COMMAND --help` shows them.

Exit codes: 0 done, 1 something failed, 2 the input is wrong, 130 interrupted, 141 the reader of the output
has ended (`| head`). `creamtea --traceback COMMAND` shows where an error came from, for a bug report;
`creamtea --version` prints the version."""


def commands_page() -> str:
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
        meaning += f" Environment variable: `{parameter.envvar}`."
    return name, _value(parameter), _default(parameter), meaning


def _value(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return ""
    if parameter.param_type_name == "option" and parameter.metavar not in (None, *NOUNS.values()):
        words = code(parameter.metavar).replace("|", "\\|")
    else:
        words = _type(element_type(parameter.type_descriptor.annotation))
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


# ---------------------------------------------------------------- environment.md

ENVIRONMENT_INTRODUCTION = f"""\
# Environment

{GENERATED}

The variables of the environment that creamtea reads; it has no file of settings.
Secrets belong here, never in a study or on a command line."""


class Variable(NamedTuple):
    name: str
    default: str
    meaning: str
    field: str = ""  # the field of the settings in the code


OIDC = "of the OpenID Connect provider with which people may sign in; set all three, or none"

SECTIONS: dict[str, tuple[Variable, ...]] = {
    "Where things are": (
        Variable(
            "CREAMTEA_HOME",
            "`./creamtea-data`",
            "folder of the SQLite database, the artefacts and the logs",
            "Settings.home",
        ),
        Variable(
            "CREAMTEA_DATABASE_URL",
            "SQLite in `CREAMTEA_HOME`",
            "the database: `postgresql+psycopg://USER:PASSWORD@HOST/NAME` for several machines or raters",
            "Settings.database_url",
        ),
        Variable(
            "CREAMTEA_ARTEFACTS",
            "`artefacts` in `CREAMTEA_HOME`",
            "folder or object store (`s3://…`) of the steps' files, which every worker must reach",
            "Settings.artefacts",
        ),
    ),
    "Running studies": (
        Variable("RAY_ADDRESS", "this machine", "`HOST:PORT` of a Ray cluster, as `--address`"),
        Variable(
            "CREAMTEA_CONTROLLER",
            "empty",
            "`service`: a controller runs elsewhere, and `creamtea submit` never starts one",
            "Settings.controller_is_service",
        ),
        Variable(
            "CREAMTEA_CHECKPOINT_PART_MB",
            f"{CHECKPOINT_PART_MB:,}",
            "size in MB: all workers of a training write a larger checkpoint in parts of at most this size",
        ),
    ),
    "Metrics of other programs": (
        Variable(
            "CREAMTEA_COMET_PYTHON",
            "`.venv-comet` beside creamtea's environment",
            "the Python of COMET's own environment",
            "Settings.comet_python",
        ),
        Variable(
            "CREAMTEA_SCORERS",
            "none",
            "absolute path of the file that defines [scorers](../scorers.md)",
            "Settings.scorers",
        ),
    ),
    "The web app": (
        Variable(
            "CREAMTEA_DATA",
            "none: the page takes no studies",
            "folder that studies submitted on the page may read, at the same path for every worker; nothing "
            "outside it is opened",
            "Settings.data",
        ),
        Variable(
            "CREAMTEA_TRY_OUT",
            "`on`",
            "`off`: a study's page has no box to try a sentence in. The box also needs torch, installed with "
            "the web app, and the artefacts in a folder of its machine",
            "Settings.try_out",
        ),
        Variable(
            "CREAMTEA_TRUSTED_PROXIES",
            ", ".join(f"`{proxy}`" for proxy in Serving().trusted_proxies),
            "comma-separated addresses and networks whose `X-Forwarded-For` and "
            "`X-Forwarded-Proto` are trusted",
            "Serving.trusted_proxies",
        ),
        Variable(
            "CREAMTEA_MAX_CONNECTIONS",
            f"{Serving().max_connections}",
            "pages that may be open at once, in total; 1 to 999,999",
            "Serving.max_connections",
        ),
        Variable("CREAMTEA_OIDC_ISSUER", "none", f"address, with `https://`, {OIDC}", "SignIn.issuer"),
        Variable("CREAMTEA_OIDC_CLIENT_ID", "none", f"the app's name, {OIDC}", "SignIn.client_id"),
        Variable("CREAMTEA_OIDC_CLIENT_SECRET", "none", f"the app's secret, {OIDC}", "SignIn.client_secret"),
    ),
    "Watching": (
        Variable(
            "CREAMTEA_METRICS_TOKEN",
            "none",
            "the token that Prometheus shows at `/metrics`, at least 16 characters",
        ),
        Variable("CREAMTEA_METRICS_TOKEN_FILE", "none", "a file with that token, which overrides it"),
    ),
    "Files of deploy/ and docker-compose.yml": (
        Variable("CREAMTEA_IMAGE", "`creamtea:VERSION`", "the image that Compose runs"),
        Variable(
            "CREAMTEA_URL",
            "`http://127.0.0.1:8501`",
            "address at which people reach the web app, for printed links and sign-in; with `https://` "
            "cookies need HTTPS. `creamtea link` has `--url` instead",
        ),
        Variable("CREAMTEA_RUN", "empty", "Slurm: the command before `creamtea`, such as `apptainer exec …`"),
        Variable("CREAMTEA_HEAD_SECONDS", "120", "Slurm: seconds that Ray's head may take to start"),
        Variable(
            "CREAMTEA_TOKENS",
            "`~/.creamtea`",
            "Slurm: folder of the secret that the job's Ray processes share, on a disk that all nodes see",
        ),
    ),
    "Read by Ray and by object stores": (
        Variable("RAY_AUTH_MODE", "none", "`token`: Ray's processes show each other a token"),
        Variable("RAY_AUTH_TOKEN_PATH", "none", "file of the token; or the token, `RAY_AUTH_TOKEN`"),
        Variable(
            "RAY_USAGE_STATS_ENABLED",
            "`0`, as creamtea sets it",
            "`1`: Ray sends usage statistics to its makers",
        ),
        Variable("AWS_ACCESS_KEY_ID", "none", "for artefacts in `s3://…`, with `AWS_SECRET_ACCESS_KEY`"),
        Variable("AWS_ENDPOINT_URL", "Amazon's", "address of an object store, if not Amazon's"),
    ),
}


def environment_page() -> str:
    lines = [ENVIRONMENT_INTRODUCTION]
    for title, variables in SECTIONS.items():
        rows = [
            (f"`{name}`", default, meaning, f"`{field}`" if field else "")
            for name, default, meaning, field in variables
        ]
        lines += ["", f"## {title}", *table(("variable", "default", "meaning", "in the code"), rows)]
    return "\n".join(lines).rstrip() + "\n"


# ---------------------------------------------------------------- tables


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table between blank lines; [] if there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return []
    return ["", f"| {' | '.join(headings)} |", "|" + ":--|" * len(headings), *lines, ""]


def cell(text: str) -> str:
    return escaped(" ".join(text.split())).replace("|", "\\|")


def escaped(text: str) -> str:
    """Escape all Markdown of a text except `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([*<\[\]])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def code(value: Any) -> str:
    """Mark a value as code, written as in YAML: `true`, `0.5`, `[1, 2]`, `adam`."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return f"`{text}`"


def paragraphs(docstring: str | None) -> list[str]:
    return escaped(inspect.cleandoc(docstring or "")).splitlines()


# ---------------------------------------------------------------- keys of a model

Schema = dict[str, Any]
KEY_HEADINGS = ("key", "value", "default", "unit", "meaning")
TYPES = {"integer": "whole number", "number": "number", "boolean": "`true` or `false`", "object": "block"}
REFERENCE = "#/$defs/"


class Part(NamedTuple):
    """A block with its own keys, or a method of a family, at a place in a study."""

    place: str  # "variants.NAME.training"
    model: type[Strict]
    family: Family[Any] | None = None

    @property
    def key(self) -> str:
        """The last key of the place, without names."""
        return [part for part in self.place.split(".") if part != "NAME"][-1]


def fields_table(model: type[Strict], links: dict[str, str]) -> list[str]:
    """Build a table with a row for each key of a model.

    `links`: link to each block and family, by the name of the model or of the family's base class.
    """
    schema = model.model_json_schema()
    meanings, required = descriptions(model), schema.get("required", ())
    rows = []
    for key, value in schema.get("properties", {}).items():
        if key != "kind" or "const" not in value:
            meaning = meanings.get(key, Description(""))
            default = "*required*" if key in required else default_words(schema["properties"][key])
            words = value_words(value, schema.get("$defs", {}), links)
            rows.append((f"`{key}`", words, default, cell(meaning.unit), cell(meaning.text)))
    return table(KEY_HEADINGS, rows)


def default_words(field: Schema) -> str:
    default = field.get("default")
    if default is None or default in ({}, []) or default == "":
        return ""
    if isinstance(default, dict):
        return code(default["kind"]) if default.get("kind") else ""
    if isinstance(default, list) and all(isinstance(entry, dict) for entry in default):
        return ", ".join(code(entry["kind"]) for entry in default)
    return code(default)


def value_words(value: Schema, blocks: Schema, links: dict[str, str]) -> str:
    """Describe the values of a key: "whole number, 1 to 4,096"."""
    if "discriminator" in value:
        mapping = value["discriminator"]["mapping"].values()
        kinds = {reference.removeprefix(REFERENCE) for reference in mapping}
        name = next(
            family.base.__name__
            for family in FAMILIES
            if kinds == {method.__name__ for method in family.kinds.values()}
        )
        words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
        return f"[{words}]({links[name]})"  # "TestSet": "test set"
    if "$ref" in value:
        name = value["$ref"].removeprefix(REFERENCE)
        return f"[block]({links[name]})" if name in links else value_words(blocks[name], blocks, links)
    if several := value.get("anyOf", value.get("oneOf")):
        choices = [choice for choice in several if choice != {"type": "null"}]
        return " or ".join(value_words(choice, blocks, links) for choice in choices)
    if "enum" in value:
        return ", ".join(map(code, value["enum"]))
    if "const" in value:
        return code(value["const"])
    if value.get("type") == "array":
        least, most = value.get("minItems"), value.get("maxItems")
        count = f"{least}: " if least == most else f"at least {least}: "
        return f"list of {count if least else ''}{value_words(value['items'], blocks, links)}"
    if value.get("type") == "object" and ("additionalProperties" in value or "patternProperties" in value):
        inner = value.get("additionalProperties") or next(iter(value["patternProperties"].values()))
        if inner is True:
            return "block"
        return f"by name: {value_words(inner, blocks, links)}"
    if value.get("format") == FILE:
        return "file"
    if value.get("type") == "string":
        named = NAME_CHARACTERS in value.get("pattern", "")
        return "name" if named else "text"
    return TYPES[value["type"]] + _range(value)


def _range(value: Schema) -> str:
    least, most = value.get("minimum"), value.get("maximum")
    if least is not None and most is not None:
        return f", {number(least)} to {number(most)}"
    words = [
        f"{name} {number(value[key])}"
        for key, name in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if key in value
    ]
    return f", {' and '.join(words)}" if words else ""


def parts_of(model: type[Strict], place: str = "") -> Iterator[Part]:
    """Yield the blocks and methods below a block, depth first, once for each possible place."""
    for key, field in fields_by_key(model).items():
        for part in _parts(field.annotation, f"{place}.{key}".lstrip(".")):
            yield part
            if part.family is None:
                yield from parts_of(part.model, part.place)
            else:
                for method in part.family.built_in.values():
                    yield from parts_of(method, part.place)


def _parts(annotation: Any, place: str) -> Iterator[Part]:
    if get_origin(annotation) is dict:
        yield from _parts(get_args(annotation)[1], f"{place}.NAME")
    elif get_origin(annotation) in (list, Union, UnionType, Annotated):
        for inner in get_args(annotation):
            yield from _parts(inner, place)
    elif isinstance(annotation, type) and issubclass(annotation, Strict):
        family = annotation.__dict__.get("family")
        yield Part(place, annotation, family if family in FAMILIES else None)


# ---------------------------------------------------------------- steps.md

STEPS_INTRODUCTION = """\
# Steps

The parameters, inputs and results of each kind of step. This page is generated (`make docs`) from the kinds
(`platform/creamtea/steps/` and `platform/creamtea/methods/`), and a test keeps it true.

A step is a pure function of its parameters and of the outputs of its input steps. Its key is the sha256 of
the canonical JSON of {kind, version, parameters, {role: [keys of the input steps]}}, and of the versions of
the plug-ins that its methods come from. The keys of the inputs stand for their content, so that a whole
study's keys are known before anything has run. The digests of a user's files are parameters; their paths on a
machine are not.

Files are plain UTF-8, one sentence per line, `\\n` only; `.jsonl` files hold one JSON object per line."""


def steps_page() -> str:
    sections = (line for kind in STEP_KINDS.values() for line in _step_section(kind))
    return "\n".join([STEPS_INTRODUCTION, *sections]) + "\n"


def _step_section(kind: StepKind[Any]) -> Iterator[str]:
    exclusive = " It runs alone on its machine." if kind.exclusive else ""
    yield f"\n## {kind.name}\n\nVersion {kind.version}: {kind.title}.{exclusive}\n"
    yield "| | name | meaning |\n|:--|:--|:--|"
    params = {name: _type_name(field.annotation) for name, field in kind.params.model_fields.items()}
    yield from _step_rows("parameter", params)
    yield from _step_rows("input", kind.inputs)
    yield from _step_rows("file", kind.files)
    yield from _step_rows("metric", kind.metrics)
    yield from _step_rows("points", kind.points)
    bases = [field.annotation for field in kind.params.model_fields.values()]
    methods = (family.built_in for family in FAMILIES if family.base in bases)
    for name, method in chain.from_iterable(built_in.items() for built_in in methods):
        of = f" (`kind: {name}`)"
        yield from _step_rows("file", method.files, of)
        yield from _step_rows("metric", method.metrics, of)


def _step_rows(part: str, entries: Mapping[str, str], of: str = "") -> Iterator[str]:
    for name, words in entries.items():
        escaped_words = words.replace("|", "\\|")
        yield f"| {part} | `{name}` | {escaped_words}{of} |"


def _type_name(annotation: Any) -> str:
    """Write a type without modules and constraints: "list[HeldOut] | None"."""
    if get_origin(annotation) is Annotated:
        return _type_name(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(map(_type_name, get_args(annotation)))
    if annotation is NoneType:
        return "None"
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return re.sub(r"[\w.]+\.(\w+)", r"\1", name)


# ---------------------------------------------------------------- papers.md

PAPERS_INTRODUCTION = """\
# The papers' tables and figures

The tables and figures of the three papers, and the studies of ours that have their cells. This page is
generated (`make docs`) from `platform/creamtea/papers/`, where every published value stands as printed; a
test keeps it true.

`creamtea report --paper scones --table 3` shows one of them in the paper's own rows and columns: published
values, ours with their intervals, and a verdict on each claim. *Run* says that creamtea's authors have run
studies that measure so many of the paper's cells, or draw its figure. What came out is in the verdicts and in
[claims](results/claims.md), which also have `studies/scones-seeds.yaml` and `studies/nvs-seeds.yaml`:
comparisons by smaller models with five and three seeds. Pages are counted from the paper's first. Left out
are drawings of models and losses and a listing, which show no data: SCONES, Figures 1 and 10; NVS, Figure 2;
entmax, Figures 1 and 2."""


def papers_page() -> str:
    parts = (line for name, paper in papers().items() for line in _paper(name, paper))
    return "\n".join([PAPERS_INTRODUCTION, *parts]) + "\n"


def _paper(name: str, paper: Paper) -> Iterator[str]:
    yield f"\n## {paper.short}: {paper.authors} {paper.year}\n\n*{paper.title}*\n"
    yield "| | page | what it shows | study and command | status |\n|:--|--:|:--|:--|:--|"
    for exhibit in exhibits(name):
        yield _exhibit_row(paper, exhibit)
    yield f"\n### Studies of the {paper.short} paper\n"
    yield "| study | size | command | run |\n|:--|:--|:--|:--|"
    for collection in paper.collections.values():
        for key, member in collection.members.items():
            size = "the paper's" if collection.size == "paper" else "ours"
            ran = f"yes: [results]({collection.ran})" if collection.ran else f"no: needs {collection.not_run}"
            yield f"| {member.name} | {size} | {code(collection.command(key))} | {ran} |"


def _exhibit_row(paper: Paper, exhibit: Exhibit) -> str:
    studies = [_study(collection) for collection in collections_of(paper, exhibit).values()]
    status = status_words(paper, exhibit)
    why = why_not_run(paper, exhibit) if status == Status.NOT_RUN else []
    words = " ".join([f"**{status}**{'.' * bool(why or exhibit.missing)}", *why, exhibit.missing]).strip()
    return (
        f"| {exhibit.label} | {exhibit.page} | {exhibit.title} | {'<br>'.join(studies) or 'none'} | {words} |"
    )


def why_not_run(paper: Paper, exhibit: Exhibit) -> list[str]:
    """Return a sentence for each reason, with the collections that it concerns."""
    waiting: dict[str, list[str]] = {}
    for collection in collections_of(paper, exhibit).values():
        if collection.not_run:
            waiting.setdefault(collection.not_run, []).append(collection.title)
    return [f"{'; '.join(titles)}: needs {why}." for why, titles in waiting.items()]


def _study(collection: Collection) -> str:
    """Name a collection, with the command of its first study if that is short."""
    first, *others = collection.members
    if collection.members[first].overrides:
        return f"{collection.title}: {code(collection.members[first].name)} (command below)"
    more = f" and {len(others)} more below" if others else ""
    return f"{collection.title}: {code(collection.command(first))}{more}"


# ---------------------------------------------------------------- results/claims.md

NUMBER = r"([+−±]?[\d,]*\.?\d+)"
INTERVAL = rf"\[{NUMBER}, {NUMBER}\]"
VALUE = re.compile(rf"{NUMBER}(?: ± {NUMBER})?(?: {INTERVAL})?")
# of a difference between measures, with its deviation over seeds, the interval is over seeds, too
DIFFERENCE = re.compile(
    rf"{NUMBER}(?: ± [\d.]+)? {INTERVAL}(?: p=(\S+))?(?: with seeds {INTERVAL}(?: p=(\S+))?)?"
)
PLACE = re.compile(r"(<!-- (?!end)([\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
NOT_JUDGED = "not judged"


class Comparison(Strict):
    """Two values of ours, and their paired `difference` with the p-values of the study."""

    what: str = ""
    own: str
    other: str
    difference: str = ""
    direction: Direction = ""  # if it differs from the claim's


class ClaimStudy(Strict):
    page: str  # the file below docs/results with the study's report
    n: str  # "1,000 captions"
    seeds: Positive


class PaperClaim(Strict):
    claim: str
    paper: str  # what it prints
    unit: str = ""
    direction: Direction = ""
    compared: list[Comparison] = Field(default_factory=list)
    not_judged: str = ""  # why
    study: ClaimStudy | None = None  # if it differs from the table's

    @model_validator(mode="after")
    def _compared_or_why_not(self) -> Self:
        if bool(self.compared) == bool(self.not_judged):
            raise ValueError("give either `compared` or `not_judged`")
        if any(not (comparison.direction or self.direction) for comparison in self.compared):
            raise ValueError("a comparison has no direction")
        return self


class ClaimTable(Strict):
    study: ClaimStudy
    claims: list[PaperClaim]


def read_claims() -> dict[str, ClaimTable]:
    """Read claims.yaml: its tables by their names."""
    read = read_document(DOCS / "results" / "claims.yaml")
    return TypeAdapter(dict[str, ClaimTable]).validate_python(read.data)


def claims_page() -> str:
    """Return the page with its rule and tables rewritten, each between `<!-- NAME -->` and `<!-- end -->`."""
    blocks = {name: "\n".join(_claims(table)) for name, table in read_claims().items()} | {"rule": RULE}

    def block(place: re.Match[str]) -> str:
        return f"{place[1]}{blocks.pop(place[2])}\n"

    written = PLACE.sub(block, (DOCS / "results" / "claims.md").read_text(encoding="utf-8"))
    if blocks:
        raise ValueError(f"claims.md has no place for {', '.join(blocks)}")
    return written


def _claims(table: ClaimTable) -> Iterator[str]:
    yield "| | claim | verdict | paper | here | n |\n| --: | :-- | :-- | :-- | :-- | :-- |"
    for row, claim in enumerate(table.claims, start=1):
        if claim.not_judged:
            yield f"| {row} | {claim.claim} | {NOT_JUDGED} | {claim.paper} | {claim.not_judged} | – |"
        study = claim.study or table.study
        n = f"{study.n}, {'one seed' if study.seeds == 1 else f'{study.seeds} seeds'}"
        for place, comparison in enumerate(claim.compared):
            first = (str(row), f"{claim.claim}: {comparison.what}".removesuffix(": "), claim.paper)
            start, words, paper = ("", comparison.what, "") if place else first
            verdict, here = judged(comparison, claim, study.seeds)
            yield f"| {start} | {words} | {verdict.outcome} | {paper} | {escaped(here)} | {n} |"


def judged(comparison: Comparison, claim: PaperClaim, seeds: int) -> tuple[Judgement, str]:
    """Return the verdict on a comparison, and its figures: "36.4 → 37.5 BLEU, +1.1 [0.3, 2.0], p = 0.15"."""
    own, other, ps = _ours(comparison.own, seeds), _ours(comparison.other, seeds), ""
    if comparison.difference:
        delta, ps = _delta(comparison.difference)
        own, other = replace(own, row="own", deltas={"other": delta}), replace(other, row="other")
    direction = comparison.direction or claim.direction
    judgement = judge(own, other, direction)
    printed = (comparison.difference or comparison.own).partition(" ")[0]
    column = Column("", "", len(printed.partition(".")[2]))
    values = (words.partition(" [")[0] for words in (comparison.other, comparison.own))
    change = text.number(judgement.difference or 0.0, column)
    change = f"+{change}" if (judgement.difference or 0.0) > 0 else change
    change = f"{change} {text.interval(judgement.low, judgement.high, column)}".rstrip()
    margin = text.number(margin_of(other), replace(column, digits=column.digits + 1))
    shown = [f"{' → '.join(values)} {claim.unit}".strip(), change]
    shown += [f"p = {ps}"] if ps else []
    shown += [f"margin {margin}"] if direction == "alike" else []
    return judgement, ", ".join(shown)


def _ours(words: str, seeds: int) -> OurValue:
    value, deviation, low, high = map(_number, _match(VALUE, words).groups())
    return OurValue(Cell("ok", "", value, low, high, deviation, seeds if deviation is not None else 1))


def _delta(words: str) -> tuple[Delta, str]:
    """Return the paired difference, and its p-values in words: over segments, and over seeds."""
    value, low, high, over_segments, seeds_low, seeds_high, over_seeds = _match(DIFFERENCE, words).groups()
    ps = [p for printed in (over_segments, over_seeds) if printed for p in printed.split("/")]
    over_segments_alone = Delta("ok", value=_number(value), low=_number(low), high=_number(high))
    delta = replace(over_segments_alone, seeds_low=_number(seeds_low), seeds_high=_number(seeds_high))
    significant = delta.excludes_zero and all(float(p.lstrip("<")) < SIGNIFICANT for p in ps)
    return replace(delta, significant=significant), ", ".join(ps)


def _match(pattern: re.Pattern[str], words: str) -> re.Match[str]:
    match = pattern.fullmatch(words)
    if match is None:
        raise ValueError(f"claims.yaml: {words!r} is not a figure as reports print it")
    return match


def _number(printed: str | None) -> float | None:
    return None if printed is None else float(re.sub("[±+,]", "", printed).replace("−", "-"))


PAGES: dict[str, Callable[[], str]] = {
    "reference/study.md": study_page,
    "reference/campaign.md": campaign_page,
    "reference/methods.md": methods_page,
    "reference/measures.md": measures_page,
    "reference/commands.md": commands_page,
    "reference/environment.md": environment_page,
    "steps.md": steps_page,
    "papers.md": papers_page,
    "results/claims.md": claims_page,
}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
