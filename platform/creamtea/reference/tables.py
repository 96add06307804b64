"""Markdown of the reference: tables, escaped text, and the keys of a pydantic model as a table."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from creamtea.document.mistakes import fields_by_key, number
from creamtea.document.values import FILE, NAME_CHARACTERS, Description, Strict, descriptions
from creamtea.methods.family import Family
from creamtea.methods.plugins import FAMILIES

GENERATED = "This page is generated from the code (`make docs`), and a test keeps it true."


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table between blank lines; nothing if there are no rows."""
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
HEADINGS = ("key", "value", "default", "unit", "meaning")
TYPES = {"integer": "whole number", "number": "number", "boolean": "`true` or `false`", "object": "block"}
REFERENCE = "#/$defs/"


class Part(NamedTuple):
    """A block that has keys of its own, or a method of a family, at a place in a study."""

    place: str  # "variants.NAME.training"
    model: type[Strict]
    family: Family[Any] | None = None

    @property
    def key(self) -> str:
        """The last key of the place that is not a name."""
        return [part for part in self.place.split(".") if part != "NAME"][-1]


def fields_table(model: type[Strict], links: dict[str, str]) -> list[str]:
    """Build a table with a row for each key of a model.

    `links`: where each block and family is described, by the name of its model or of the family's base class.
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
    return table(HEADINGS, rows)


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
    """Say which values a key takes: "whole number, 1 to 4,096"."""
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
    """Yield the blocks and methods below a block, depth first, once for each place where they may stand."""
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
