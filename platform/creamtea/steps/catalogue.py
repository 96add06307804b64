"""The catalogue of all kinds of steps, including the kinds that methods add."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from itertools import chain
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from creamtea.contract.step import StepKind
from creamtea.methods.analysis import ANALYSES, DIFFERENCES
from creamtea.methods.corpora import CORPORA
from creamtea.methods.plugins import FAMILIES
from creamtea.steps import systems, texts


def _kinds() -> Iterator[StepKind[Any]]:
    """Yield the kinds in the order in which a study runs."""
    yield from texts.KINDS
    for corpus in CORPORA.kinds.values():
        yield from corpus.steps
    yield from systems.KINDS
    for analysis in ANALYSES.kinds.values():
        yield analysis.step
    yield DIFFERENCES
    yield systems.LATENCY


STEP_KINDS: dict[str, StepKind[Any]] = {kind.name: kind for kind in _kinds()}


def is_of_this_version(kind: str, version: int) -> bool:
    """Return True if this creamtea can run steps of this kind and version."""
    known = STEP_KINDS.get(kind)
    return known is not None and known.version == version


# ---------------------------------------------------------------- docs/steps.md

INTRODUCTION = """\
# Steps

The parameters, inputs and results of each kind of step. This page is generated (`make docs`) from the kinds
(`platform/creamtea/steps/` and `platform/creamtea/methods/`), and a test keeps it true.

A step is a pure function of its parameters and of the outputs of its input steps. Its key is the sha256 of
the canonical JSON of {kind, version, parameters, {role: [keys of the input steps]}}, and of the versions of
the plug-ins that its methods come from. The keys of the inputs stand for their content, so that a whole
study's keys are known before anything has run. The digests of a user's files are parameters; their paths on a
machine are not.

Files are plain UTF-8, one sentence per line, `\\n` only; `.jsonl` files hold one JSON object per line."""


def markdown() -> str:
    sections = (line for kind in STEP_KINDS.values() for line in _section(kind))
    return "\n".join([INTRODUCTION, *sections]) + "\n"


def _section(kind: StepKind[Any]) -> Iterator[str]:
    exclusive = " It runs alone on its machine." if kind.exclusive else ""
    yield f"\n## {kind.name}\n\nVersion {kind.version}: {kind.title}.{exclusive}\n"
    yield "| | name | meaning |\n|:--|:--|:--|"
    params = {name: _type(field.annotation) for name, field in kind.params.model_fields.items()}
    yield from _rows("parameter", params)
    yield from _rows("input", kind.inputs)
    yield from _rows("file", kind.files)
    yield from _rows("metric", kind.metrics)
    yield from _rows("points", kind.points)
    bases = [field.annotation for field in kind.params.model_fields.values()]
    methods = (family.built_in for family in FAMILIES if family.base in bases)
    for name, method in chain.from_iterable(built_in.items() for built_in in methods):
        of = f" (`kind: {name}`)"
        yield from _rows("file", method.files, of)
        yield from _rows("metric", method.metrics, of)


def _rows(part: str, entries: Mapping[str, str], of: str = "") -> Iterator[str]:
    for name, words in entries.items():
        yield f"| {part} | `{name}` | {_plain(words)}{of} |"


def _type(annotation: Any) -> str:
    """Write a type without modules and constraints: "list[HeldOut] | None"."""
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(map(_type, get_args(annotation)))
    if annotation is NoneType:
        return "None"
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return re.sub(r"[\w.]+\.(\w+)", r"\1", name)


def _plain(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    ArgumentParser(prog="python -m creamtea.steps.catalogue", description="Print docs/steps.md.").parse_args()
    print(markdown(), end="")
