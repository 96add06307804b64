"""The JSON Schema of a study file, for editors: completion, descriptions and errors while typing.

It is made from the models of the spec: their docstrings and the comments beside their fields are its
descriptions. It describes the file as written: with lists where grids may have them, and blocks that leave
their kind to a default. `creamtea validate` checks what must hold between parts.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from creamtea.document.values import Strict, descriptions
from creamtea.methods.architectures import ARCHITECTURES
from creamtea.study.grid import GRID_KEYS
from creamtea.study.spec import Study

Schema = dict[str, Any]
SECTIONS = {"variants": "Variant", "systems": "System"}  # the models of what may have grids
REFERENCE = "#/$defs/"


def study_schema() -> Schema:
    """Return the JSON Schema of a study file, grids included."""
    schema = schema_of(Study, "creamtea study")
    _allow_grids(schema["$defs"])
    return schema


def schema_of(model: type[BaseModel], title: str) -> Schema:
    """Return a document's schema in JSON Schema's draft of 2020-12."""
    schema = model.model_json_schema()
    models = {model.__name__: model for model in _subclasses(Strict)}
    for name, definition in [(model.__name__, schema), *schema["$defs"].items()]:
        if name in models:
            if description := definition.get("description"):
                definition["description"] = inspect.cleandoc(description)
            for field, meaning in descriptions(models[name]).items():
                if field in definition.get("properties", {}):
                    definition["properties"][field]["description"] = str(meaning)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_rewritten(schema), "title": title}


def _subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for subclass in model.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


# ---------------------------------------------------------------- shape


def _rewritten(value: Any) -> Any:
    """Rewrite pydantic's schema for editors.

    A union told apart by `kind` becomes conditions, so that an editor can name the one that fails. Names are
    held to their pattern. Titles that only repeat a key are removed.
    """
    if isinstance(value, list):
        return [_rewritten(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {
        key: {name: _rewritten(item) for name, item in inner.items()}
        if key in ("properties", "$defs", "patternProperties")
        else _rewritten(inner)
        for key, inner in value.items()
        if key not in ("title", "default", "discriminator", "oneOf")
    }
    if "default" in value:
        result["default"] = value["default"]
    if "patternProperties" in value:
        result["additionalProperties"] = False
    if "discriminator" in value:
        result |= _by_kind(value["discriminator"]["mapping"])
    return result


def _by_kind(mapping: dict[str, str]) -> Schema:
    # architectures are the one family whose kind a study may leave out
    default = ARCHITECTURES.default if set(mapping) == set(ARCHITECTURES.kinds) else None
    conditions = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": {"$ref": reference}}
        for kind, reference in mapping.items()
    ]
    if default is None:
        required: Schema = {"required": ["kind"]}
    else:
        required = {}
        conditions.append(
            {"if": {"not": {"required": ["kind"]}}, "then": {"$ref": mapping[default]}},
        )
    kinds: Schema = {"kind": {"enum": list(mapping)}}
    return {"type": "object", "properties": kinds, **required, "allOf": conditions}


# ---------------------------------------------------------------- grids


def _allow_grids(definitions: dict[str, Schema]) -> None:
    """Allow lists for single values in the blocks that `creamtea.study.grid` expands.

    The same blocks keep their shape in other places.
    """
    copies: dict[str, Schema] = {}
    for section, keys in GRID_KEYS.items():
        properties = definitions[SECTIONS[section]]["properties"]
        for key in keys:
            properties[key] = _listable(properties[key], definitions, copies)
    definitions |= copies


def _listable(schema: Schema, definitions: dict[str, Schema], copies: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        copy = f"{name}Grid"
        if copy not in copies:
            copies[copy] = {}
            copies[copy] |= _listable(definitions[name], definitions, copies)
        return {**schema, "$ref": f"{REFERENCE}{copy}"}
    if "properties" in schema:
        result = dict(schema)
        result["properties"] = {
            key: _listable(value, definitions, copies) for key, value in schema["properties"].items()
        }
        if "allOf" in schema:
            result["allOf"] = [
                {**condition, "then": _listable(condition["then"], definitions, copies)}
                for condition in schema["allOf"]
            ]
        return result
    if any("$ref" in choice for choice in schema.get("anyOf", ())):
        return {**schema, "anyOf": [_listable(choice, definitions, copies) for choice in schema["anyOf"]]}
    if schema == {"type": "null"}:
        return schema
    about: Schema = {key: schema[key] for key in ("description", "default") if key in schema}
    single = {key: value for key, value in schema.items() if key not in about}
    grid = {"type": "array", "items": single, "minItems": 1, "uniqueItems": True}
    return {**about, "anyOf": [single, grid]}
