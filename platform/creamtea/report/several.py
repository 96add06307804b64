"""Systems of several studies in one table, on a test set that they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.report.cells import Material, absent
from creamtea.report.model import Cell, Row, Table
from creamtea.report.tables import systems_table
from creamtea.store.queries import study_nodes
from creamtea.store.tables import StudyRow
from creamtea.study.spec import Study

COMPARED = ("quality", "recall", "outputs")  # groups of columns; times of different runs cannot be compared
ABOUT = (
    "Only what is the same in all of these studies: the sentences and the references of the test set. "
    "Differences and their tests are in each study's own report, and so is latency, which belongs to one run "
    "on one machine."
)


@dataclass(frozen=True)
class OfStudy:
    """A study, and what it calls the test set."""

    number: int
    name: str  # as rows show it: with its number where two have one name
    test_set: str


def common_test_sets(session: Session, studies: Sequence[StudyRow]) -> dict[str, list[OfStudy]]:
    """The test sets that all of these studies have, by the key of their step: the same text, whatever it is
    called."""
    names = [study.name for study in studies]
    found: dict[str, list[OfStudy]] = {}
    for study in studies:
        shown = study.name if names.count(study.name) == 1 else f"{study.name} #{study.id}"
        for node in study_nodes(session, study.id, "test_set"):
            if "test_set" in node.labels:  # not the first sentences of one, for an analysis
                own = OfStudy(study.id, shown, str(node.labels["test_set"]))
                found.setdefault(node.key, []).append(own)
    every = {study.id for study in studies}
    return {key: own for key, own in found.items() if {one.number for one in own} == every}


def compared_systems(session: Session, studies: Sequence[OfStudy]) -> Table:
    """A row for each system of each study. A metric is one column where its signature is the same."""
    tables = {}
    for study in studies:
        spec = Study.model_validate(session.get_one(StudyRow, study.number).spec)
        tables[study] = systems_table(Material(session, study.number, spec), study.test_set)
    columns: dict[tuple[str, str], Column] = {}
    for table in tables.values():
        for column in (column for column in table.columns if column.group in COMPARED):
            columns.setdefault((column.key, column.signature), column)
    shown = {place: replace(column, key="|".join(filter(None, place))) for place, column in columns.items()}
    rows = []
    for study, table in tables.items():
        own = {(column.key, column.signature) for column in table.columns}
        for row in table.rows:
            cells = {
                column.key: replace(row.cells[place[0]], delta=None) if place in own else _not_there(study)
                for place, column in shown.items()
            }
            rows.append(Row(f"{study.name}: {row.name}", cells, description=row.description))
    return Table("compared", "", "study: system", tuple(shown.values()), tuple(rows), ABOUT)


def _not_there(study: OfStudy) -> Cell:
    return absent(f"study {study.name} does not measure this, or not with these settings")
