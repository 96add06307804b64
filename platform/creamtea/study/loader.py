"""Load a study file: return a checked study, or raise every mistake in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from creamtea.document.document import YamlDocument, apply_override, read_document
from creamtea.document.mistakes import (
    KeyPath,
    Mistake,
    Place,
    RawStudy,
    StudyErrors,
    dotted,
    mistakes_of_pydantic,
)
from creamtea.document.values import digest
from creamtea.study.checks import check
from creamtea.study.grid import Expansion, expand
from creamtea.study.spec import Study


@dataclass(frozen=True)
class LoadedStudy:
    study: Study
    spec: dict[str, Any]  # the study as plain JSON values: grids expanded, defaults filled in
    path: Path
    config_hash: str  # sha256 of the canonical spec
    document: YamlDocument
    expansion: Expansion

    def errors(self, mistakes: Sequence[Mistake]) -> StudyErrors:
        """Return an error for mistakes found later (such as missing files), with their places in the file."""
        return _errors(self.document, _as_written(self.expansion, mistakes))

    def place_of(self, path: KeyPath) -> str:
        """Return the place in the file of a value of the expanded study, as messages write it."""
        written = self.expansion.origin(path)
        return f"{self.document.place(written).text}: {dotted(written)}"


def load_study(path: Path, overrides: Sequence[str] = (), name: str = "") -> LoadedStudy:
    """Read, override (`key=value` each), expand the grids, validate.

    `name`: the file's name in messages, instead of its path. Raises StudyErrors with every mistake, or
    InputError if the file cannot be read at all.
    """
    document = read_document(path, name=name)
    for order, text in enumerate(overrides):
        apply_override(document, text, order)
    expansion = expand(document.data)
    mistakes = [*document.mistakes, *expansion.mistakes]
    later = check(RawStudy(expansion.data, expansion.groups))
    study = None
    try:
        study = Study.model_validate(expansion.data)
    except ValidationError as error:
        later += mistakes_of_pydantic(error.errors(include_url=False), Study, expansion.data)
    later = _as_written(expansion, later)
    later += document.misnamed(later)
    settled = {mistake.path for mistake in (*mistakes, *later) if mistake.settled}
    for mistake in later:
        repeats = any(mistake.path[:length] in settled for length in range(len(mistake.path) + 1))
        if mistake.settled or not repeats:
            mistakes.append(mistake)
    if study is None or mistakes:
        raise _errors(document, mistakes)
    spec = study.model_dump(mode="json")
    return LoadedStudy(study, spec, path, digest(spec), document, expansion)


def _as_written(expansion: Expansion, mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Replace mistakes' paths in the expanded study by their paths in the file."""
    return [replace(mistake, path=expansion.origin(mistake.path)) for mistake in mistakes]


def _errors(document: YamlDocument, mistakes: Sequence[Mistake]) -> StudyErrors:
    """Order mistakes as in the file; list a mistake that all members of a grid share once."""

    def place(mistake: Mistake) -> Place:
        return mistake.place or document.place(mistake.path)

    lines: dict[object, str] = {}  # mistakes in a value that YAML aliases repeat are listed once
    for mistake in sorted(mistakes, key=place):
        where = place(mistake)
        line: str = mistake.line(where)
        content = (mistake.path[-1:], mistake.found, mistake.allowed)
        lines.setdefault(line if where.column is None else (where, where.column, *content), line)
    return StudyErrors(list(lines.values()), document.name)
