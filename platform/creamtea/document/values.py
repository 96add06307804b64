"""The base class of the spec's models, shared types of values, descriptions of keys, and strict JSON.

The comments above and beside a field describe its key; JSON Schema and the reference show them. A comment may
begin with a unit: `[updates] between checkpoints`.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import json
import re
import textwrap
import tokenize
from functools import cache
from typing import Annotated, Any, NamedTuple, NoReturn

from pydantic import BaseModel, ConfigDict, Field

from creamtea.errors import InputError

NAME_CHARACTERS = "A-Za-z0-9._=,+-"
Name = Annotated[str, Field(pattern=rf"^[A-Za-z0-9][{NAME_CHARACTERS}]*$", max_length=120)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
BelowOne = Annotated[float, Field(ge=0.0, lt=1.0)]
# Every number has bounds, so that sums and products of numbers stay finite.
Above0 = Annotated[float, Field(gt=0.0, le=10.0**9)]
# A factor, divisor or limit for a model's numbers in single precision (10^-38 to 10^38). Within these bounds
# neither the factor nor its reciprocal overflows or vanishes.
Factor = Annotated[float, Field(ge=10.0**-6, le=10.0**9)]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Copies = Annotated[int, Field(ge=1, le=10**4)]  # repetitions of a text; each copy is written
MadeUp = Annotated[int, Field(ge=1, le=10**6)]  # segments to make in memory
Count = Annotated[int, Field(ge=1, le=4096)]  # layers, heads, threads, processors
Width = Annotated[int, Field(ge=1, le=65536)]  # width of a layer
Seed = Annotated[int, Field(ge=0, lt=2**32)]
FILE = "file"  # in JSON Schema, the format of a text that names a file


class Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, protected_namespaces=(), allow_inf_nan=False
    )


def unstated(default: Any) -> Any:
    """Declare a field that keys and files omit while it has its default, so that old keys stay the same."""
    return Field(default=default, exclude_if=lambda value: value == default)


# ---------------------------------------------------------------- descriptions of keys

UNIT = re.compile(r"\[([^\]]+)\]\s*(.*)", re.DOTALL)


class Description(NamedTuple):
    text: str
    unit: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.unit, self.text) if part)


def descriptions(model: type[BaseModel]) -> dict[str, Description]:
    """Return the description of each key that has one; a subclass overrides its base."""
    result: dict[str, Description] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, Strict) and owner is not Strict:
            result |= _own_descriptions(owner)
    keys = {name: field.alias for name, field in model.model_fields.items() if field.alias}
    return {keys.get(name, name): words for name, words in result.items()}


@cache
def _own_descriptions(model: type) -> dict[str, Description]:
    """Return the descriptions of the class's own fields; {} if its source is not available."""
    try:
        source = textwrap.dedent(inspect.getsource(model))
    except (OSError, TypeError):
        return {}
    lines = source.splitlines()
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    fields: dict[str, Description] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            first = node.lineno
            while first - 1 in comments and lines[first - 2].lstrip().startswith("#"):
                first -= 1
            last = node.end_lineno or first
            if comment := " ".join(comments[line] for line in range(first, last + 1) if line in comments):
                unit = UNIT.fullmatch(comment)
                fields[node.target.id] = Description(unit[2], unit[1]) if unit else Description(comment)
    return fields


# ---------------------------------------------------------------- JSON
#
# JSON is read strictly by RFC 8259, and written canonically for digests. Reading refuses NaN, infinity, and
# repeated keys, whose last value would silently win.


def parse_json(text: str | bytes, place: str) -> Any:
    """Parse a text. Raise InputError with `place` if it is not JSON, or if bytes are not UTF-8."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_repeated_keys)
    except RecursionError:
        raise InputError(f"{place}: not JSON: nested too deeply") from None
    except ValueError as error:  # not JSON, or a whole number of more digits than Python converts
        raise InputError(f"{place}: not JSON: {error}") from None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key occurs twice")
    return values


def canonical(value: Any) -> str:
    """Write JSON with sorted keys, no spaces, plain UTF-8 and floats by `repr`.

    Equal content gives equal text on every machine. Raises ValueError for NaN and infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return the sha256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
