"""The papers and their tables and figures, read from the files beside this one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from creamtea.document.document import read_document
from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.papers.model import Exhibit, Kind, Paper
from creamtea.study.loader import load_study

HERE = Path(__file__).parent
NAMES = ("scones", "nvs", "entmax")

Model = TypeVar("Model", bound=BaseModel)


@cache
def papers() -> Mapping[str, Paper]:
    return MappingProxyType({name: _read(HERE / name / "paper.yaml", Paper) for name in NAMES})


@cache
def exhibits(name: str) -> tuple[Exhibit, ...]:
    """Of the paper of this name: its tables, then its figures, by their numbers."""
    files = [path for path in (HERE / name).glob("*.yaml") if path.stem != "paper"]
    found = [_exhibit(path) for path in files]
    return tuple(sorted(found, key=lambda exhibit: (exhibit.kind == "figure", exhibit.number)))


def find_paper(name: str) -> Paper:
    """InputError naming the papers."""
    if name not in papers():
        raise InputError(f"no paper {name!r}; the papers are {', '.join(NAMES)}")
    return papers()[name]


def find_exhibit(name: str, kind: Kind, number: int) -> Exhibit:
    """InputError naming the paper's tables or figures."""
    paper = find_paper(name)
    alike = [exhibit for exhibit in exhibits(name) if exhibit.kind == kind]
    for exhibit in alike:
        if exhibit.number == number:
            return exhibit
    listed = ", ".join(exhibit.label for exhibit in alike or exhibits(name))
    raise InputError(f"the {paper.short} paper has no {kind} {number} with results; it has {listed}")


@cache
def settings_of(file: str, overrides: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The spec of a collection's study as this distribution has it; None where its studies are not
    installed."""
    for root in (HERE.parents[2], Path(sys.prefix) / "share" / "creamtea"):  # a checkout, a wheel
        if (root / file).is_file():
            return load_study(root / file, overrides).spec
    return None


def _exhibit(path: Path) -> Exhibit:
    read = _read(path, Exhibit)
    if read.key != path.stem:
        raise ValueError(f"{path} holds {read.key}")
    return read


def _read(path: Path, model: type[Model]) -> Model:
    document = read_document(path)
    if document.mistakes:
        raise StudyErrors([mistake.line() for mistake in document.mistakes], document.name)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise ValueError(f"{path}: {error}") from None
