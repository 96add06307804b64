"""The cells of a paper's table as a page shows them."""

from creamtea.report import text
from creamtea.report.model import Document, Row, Section, Table


def rows_of(document: Document, size: str = "ours") -> dict[tuple[str, str], Row]:
    return {(row.name, row.setting): row for row in document.table(f"{size}/values").rows}


def cell(document: Document, row: str, setting: str, column: str, size: str = "ours") -> text.ShownCell:
    table = document.table(f"{size}/values")
    found = next(entry for entry in table.columns if entry.title == column)
    return text.shown(rows_of(document, size)[row, setting].cells[found.key], found)


def study_document(section: str, test_set: str, table: Table) -> Document:
    """A study's report with nothing but this table, below `section/test_set`."""
    return Document(
        kind="study",
        name="tea",
        number=1,
        state="succeeded",
        about="",
        facts=(),
        test_sets=(test_set,),
        sections=(Section(section, section.capitalize(), (Section(test_set, test_set, (table,)),)),),
    )
