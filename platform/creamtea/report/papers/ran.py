"""What the studies of a paper's table are in this database, since their names do not tell.

Whoever runs a study with `--set` may make it smaller, and a study of one's own may have any name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from creamtea.contract.columns import Column
from creamtea.document.warning import StudyWarning
from creamtea.papers.catalogue import settings_of
from creamtea.papers.cells import members_of
from creamtea.papers.model import Exhibit, Size
from creamtea.report import text
from creamtea.report.model import Document, Fact, Facts, Warnings
from creamtea.report.papers.ours import Reports, StudyReport
from creamtea.wording import counted

UNFINISHED = "none has finished"
SHOWN = 3  # settings that a warning names
# of whose entries those that two studies both have are compared: what one lacks, its tables lack
_ENTRIES = ("corpora", "subwords", "variants", "systems", "test_sets", "analyses")


def what_ran(reports: Reports, exhibit: Exhibit, size: Size) -> tuple[Facts | Warnings, ...]:
    """The trainings of each study of this size that is in the database, and warnings of those with other
    settings than the study of that name that we publish; empty where none is here."""
    facts, warnings = [], []
    for name, member in members_of(reports.paper, exhibit):
        collection = reports.paper.collections[name]
        report = reports.read(name, member) if collection.size == size else None
        if not isinstance(report, StudyReport):
            continue
        study = f"{report.spec.name}, number {report.number}"
        facts.append(Fact(f"trained here by {study}", trained(report.document) or UNFINISHED))
        ours = settings_of(collection.file, tuple(collection.members[member].overrides))
        apart = settings_apart(report.spec.model_dump(mode="json"), ours) if ours else []
        if apart:
            more = f" and {counted(len(apart) - SHOWN, 'other')}" if len(apart) > SHOWN else ""
            found = f"it is not as in {collection.file}: {', '.join(apart[:SHOWN])}{more}"
            remedy = f"Its values may be of another size. `{collection.command(member)}` runs ours."
            warnings.append(StudyWarning("other-settings", study, found, remedy))
    told = (Warnings("warnings", tuple(warnings)),) if warnings else ()
    return (*told, Facts("ran", "", tuple(facts))) if facts else ()


def settings_apart(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The settings in which two studies differ, of what both have, in their order:
    "variants.softmax.training.max_updates"."""
    apart = []
    for section in _ENTRIES:
        mine, theirs = own.get(section) or {}, other.get(section) or {}
        for entry in [name for name in theirs if name in mine]:
            values, others = (dict(_leaves(of[entry], f"{section}.{entry}.")) for of in (mine, theirs))
            places = dict.fromkeys((*others, *values))
            apart += [place for place in places if values.get(place) != others.get(place)]
    return apart


def _leaves(values: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def trained(document: Document) -> str:
    """As "30 models, 1,000 to 9,000 updates, 11,213,824 parameters; 54,000 training pairs"; empty while no
    training has finished."""
    updates = list(_values(document, "trainings", "updates"))
    if not updates:
        return ""
    parts = [
        f"{counted(len(updates), 'model')}",
        f"{_range(updates)} updates",
        f"{_range(list(_values(document, 'trainings', 'parameters')))} parameters",
    ]
    pairs = list(_values(document, "corpora", "train_kept"))
    return ", ".join(parts) + (f"; {_range(pairs)} training pairs" if pairs else "")


def _values(document: Document, table: str, column: str) -> Iterator[float]:
    for row in document.table(f"provenance/{table}").rows:
        if (cell := row.cells.get(column)) is not None and cell.value is not None:
            yield cell.value


def _range(values: list[float]) -> str:
    bounds = dict.fromkeys(text.number(bound, Column("n", "n", 0)) for bound in (min(values), max(values)))
    return " to ".join(bounds)
