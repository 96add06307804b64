"""What the studies of a paper's table trained in this database, since their names do not tell their size."""

from __future__ import annotations

from collections.abc import Iterator

from creamtea.contract.columns import Column
from creamtea.papers.model import Exhibit, Size
from creamtea.report import text
from creamtea.report.model import Document, Fact, Facts
from creamtea.report.papers.ours import Reports, StudyReport, members_of

UNFINISHED = "none has finished"


def what_ran(reports: Reports, exhibit: Exhibit, size: Size) -> tuple[Facts, ...]:
    """The trainings of each study of this size that is in the database; empty where none is.

    Whoever runs a study with `--set` may make it smaller, and it keeps its name.
    """
    facts = []
    for collection, member in members_of(reports.paper, exhibit):
        if reports.paper.collections[collection].size != size:
            continue
        report = reports.read(collection, member)
        if isinstance(report, StudyReport):
            label = f"trained here by {report.spec.name}, number {report.number}"
            facts.append(Fact(label, trained(report.document) or UNFINISHED))
    return (Facts("ran", "", tuple(facts)),) if facts else ()


def trained(document: Document) -> str:
    """As "30 models, 1,000 to 9,000 updates, 11,213,824 parameters; 54,000 training pairs"; empty while no
    training has finished."""
    updates = list(_values(document, "trainings", "updates"))
    if not updates:
        return ""
    parts = [
        f"{len(updates)} model{'s' * (len(updates) > 1)}",
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
