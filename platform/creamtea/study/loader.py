"""Load a study file: a checked study, or every mistake in it."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from creamtea.document.document import Document, apply_override, read_document
from creamtea.document.mistakes import (
    KeyPath,
    Mistake,
    Place,
    StudyErrors,
    dotted,
    mistakes_of_pydantic,
    one_of,
    shown,
)
from creamtea.document.raw import RawStudy
from creamtea.document.strict_json import digest
from creamtea.study.checks import check
from creamtea.study.grid import Expansion, expand
from creamtea.study.spec import Study

if TYPE_CHECKING:
    from creamtea.human.making.campaign_file import LoadedCampaign


@dataclass(frozen=True)
class LoadedStudy:
    study: Study
    spec: dict[str, Any]  # the study as plain JSON values: grids expanded, defaults filled in
    path: Path
    config_hash: str  # sha256 of the canonical spec
    document: Document
    expansion: Expansion
    campaigns: dict[str, LoadedCampaign]

    def errors(self, mistakes: Sequence[Mistake]) -> StudyErrors:
        """Return mistakes found later (missing files, say), with their places in the file."""
        return _errors(self.document, _as_written(self.expansion, mistakes))

    def place_of(self, path: KeyPath) -> str:
        """Return the place in the file of a value of the expanded study, as messages write it."""
        written = self.expansion.origin(path)
        return f"{self.document.place(written).text}: {dotted(written)}"


def load_study(path: Path, overrides: Sequence[str] = (), name: str = "") -> LoadedStudy:
    """Read, override (`key=value` each), expand the grids, validate.

    `name`: what messages call the file instead of its path. Raises StudyErrors with every mistake, or
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
    campaigns, lines = _load_campaigns(document, expansion, path.parent, uploads=() if name else None)
    if study is None or mistakes or lines:
        raise _errors(document, mistakes, lines)
    spec = study.model_dump(mode="json")
    return LoadedStudy(study, spec, path, digest(spec), document, expansion, campaigns)


def _load_campaigns(
    document: Document, expansion: Expansion, folder: Path, uploads: Collection[str] | None
) -> tuple[dict[str, LoadedCampaign], list[str]]:
    """Check the study's campaigns as campaign files; return them, and the lines of all mistakes.

    `uploads`: the only files that a campaign may name (None: any, relative to `folder`).
    """
    blocks = expansion.data.get("campaigns")
    if not blocks or not isinstance(blocks, dict):
        return {}, []
    from creamtea.human.making.campaign_file import Folder, check_campaign  # few studies have campaigns

    found: dict[str, LoadedCampaign] = {}
    lines: list[str] = []
    for name, own in blocks.items():
        if not isinstance(own, dict):
            continue  # the study's model says so
        data = {**copy.deepcopy(own), "name": name, "study": expansion.data.get("name")}
        part = document.part(("campaigns", name), data)
        part.mistakes += (
            Mistake((key,), "", "leave it out: it follows from the study")
            for key in ("name", "study", "texts")
            if key in own
        )
        for key, section in (("test_set", "test_sets"), ("systems", "systems")):
            known = expansion.data.get(section)
            names = own.get(key) if isinstance(own.get(key), list) else [own.get(key)]
            for entry in names or ():
                if isinstance(entry, str) and isinstance(known, dict) and entry not in known:
                    allowed = one_of(list(known), entry, what=f"one of {section}")
                    part.mistakes.append(Mistake((key,), shown(entry), allowed))
        try:
            found[name] = check_campaign(part, Folder(folder, uploads))
        except StudyErrors as error:
            lines += error.lines
    return found, lines


def _as_written(expansion: Expansion, mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Replace the paths of the expanded study by those of the file."""
    return [replace(mistake, path=expansion.origin(mistake.path)) for mistake in mistakes]


def _errors(document: Document, mistakes: Sequence[Mistake], more: Sequence[str] = ()) -> StudyErrors:
    """Order mistakes as in the file; list once what the members of a grid share. `more`: lines after them."""

    def place(mistake: Mistake) -> Place:
        return mistake.place or document.place(mistake.path)

    lines: dict[object, str] = {}  # a value that aliases repeat has its mistakes once, where it stands
    for mistake in sorted(mistakes, key=place):
        where = place(mistake)
        line: str = mistake.line(where)
        said = (mistake.path[-1:], mistake.found, mistake.allowed)
        lines.setdefault(line if where.column is None else (where, where.column, *said), line)
    return StudyErrors([*lines.values(), *more], document.name)
