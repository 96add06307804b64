"""What the keys of a block mean: the comments above and beside the fields of its model.

A comment may begin with a unit: `[updates] between checkpoints`. JSON Schema and the reference show both.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from functools import cache
from typing import NamedTuple

from pydantic import BaseModel

from creamtea.document.values import Strict

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
            result |= _own(owner)
    keys = {name: field.alias for name, field in model.model_fields.items() if field.alias}
    return {keys.get(name, name): words for name, words in result.items()}


@cache
def _own(model: type) -> dict[str, Description]:
    """Of the class itself; empty where its source is not there."""
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
            found = [
                comments[line] for line in range(first, (node.end_lineno or first) + 1) if line in comments
            ]
            if found:
                fields[node.target.id] = _parsed(" ".join(found))
    return fields


def _parsed(comment: str) -> Description:
    unit = UNIT.fullmatch(comment)
    return Description(unit[2], unit[1]) if unit else Description(comment)
