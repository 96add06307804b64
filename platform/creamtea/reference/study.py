"""docs/reference/study.md: every block of a study file with its keys."""

from __future__ import annotations

from creamtea.document.values import Strict
from creamtea.reference.fields import fields_table, parts_of
from creamtea.reference.markup import GENERATED, paragraphs
from creamtea.reference.methods import anchor
from creamtea.study.grid import GRID_KEYS
from creamtea.study.spec import Study

INTRODUCTION = f"""\
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


def markdown() -> str:
    blocks = _blocks()
    links = {model.__name__: f"#{places[0][0]}" for model, places in blocks.items()}
    for part in parts_of(Study):
        if part.family is not None:
            links[part.model.__name__] = f"methods.md#{anchor(part.family)}"
    introduction = INTRODUCTION
    for word, section in (("VARIANT_KEYS", "variants"), ("SYSTEM_KEYS", "systems")):
        introduction = introduction.replace(word, ", ".join(f"`{key}`" for key in GRID_KEYS[section]))
    lines = [introduction, "", "## The whole file", "", *paragraphs(Study.__doc__)]
    lines += fields_table(Study, links)
    for model, places in blocks.items():
        lines += [f"## {places[0][0]}", "", "At " + ", ".join(f"`{place}`" for _, place in places) + "."]
        lines += ["", *paragraphs(model.__doc__), *fields_table(model, links)]
    return "\n".join(lines).rstrip() + "\n"


def _blocks() -> dict[type[Strict], list[tuple[str, str]]]:
    """(key, place) of each block, in the study's order."""
    result: dict[type[Strict], list[tuple[str, str]]] = {}
    for part in parts_of(Study):
        places = result.setdefault(part.model, []) if part.family is None else []
        if (part.key, part.place) not in places:
            places.append((part.key, part.place))
    return result
