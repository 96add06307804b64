"""The base of every model of the spec, the scalars that models share, and the descriptions of their keys.

The comments above and beside a field describe its key; JSON Schema and the reference show them. A comment may
begin with a unit: `[updates] between checkpoints`.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from functools import cache
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

NAME_CHARACTERS = "A-Za-z0-9._=,+-"
Name = Annotated[str, Field(pattern=rf"^[A-Za-z0-9][{NAME_CHARACTERS}]*$", max_length=120)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
BelowOne = Annotated[float, Field(ge=0.0, lt=1.0)]
# Every number has bounds: sums and products of what lies within them stay finite.
Above0 = Annotated[float, Field(gt=0.0, le=10.0**9)]
# What models and their losses are multiplied or divided by, or cut at, in single precision: neither it nor
# its reciprocal is lost there, whatever a model's numbers are (10^-38 to 10^38).
Factor = Annotated[float, Field(ge=10.0**-6, le=10.0**9)]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Copies = Annotated[int, Field(ge=1, le=10**4)]  # repetitions of a text, each of which is written
MadeUp = Annotated[int, Field(ge=1, le=10**6)]  # segments that are made in memory
Count = Annotated[int, Field(ge=1, le=4096)]  # layers, heads, threads, processors
Width = Annotated[int, Field(ge=1, le=65536)]  # of a layer
Seed = Annotated[int, Field(ge=0, lt=2**32)]


FILE = "file"  # the format of a text that names a file, in JSON Schema


class Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, protected_namespaces=(), allow_inf_nan=False
    )


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
            result |= _described_in(owner)
    keys = {name: field.alias for name, field in model.model_fields.items() if field.alias}
    return {keys.get(name, name): words for name, words in result.items()}


@cache
def _described_in(model: type) -> dict[str, Description]:
    """Return the descriptions of the class's own fields; empty if its source is not available."""
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
