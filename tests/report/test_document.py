"""One document, several printers: each shows every block, and a column's numbers look alike everywhere."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import analysis_rows
import pytest
from blocks import entries, figures, in_terminal, systems, tables
from human_rows import add_campaign, add_segment_scores
from parsed_page import Page
from teatime_study import SPEC, Build, Spec, fill_study

from creamtea.contract.step import Column
from creamtea.methods.analysis import ANALYSES
from creamtea.report import text
from creamtea.report.build import build_report
from creamtea.report.export import to_values
from creamtea.report.html import to_html
from creamtea.report.human.build import build_human
from creamtea.report.markdown import to_markdown
from creamtea.report.model import (
    Block,
    Choice,
    Document,
    Facts,
    Figure,
    Notes,
    Section,
    Table,
    Texts,
    Warnings,
    column_meanings,
)
from creamtea.report.vega import vega_lite
from creamtea.store.database import Database

FAILED = {"state": "failed", "error_kind": "deterministic", "error": "the loss is NaN at update 12"}
UPSTREAM = {"state": "failed", "error_kind": "upstream", "error": "did not run, because train/… failed"}


@pytest.fixture(scope="module")
def everything(new_database: Callable[[], Database]) -> Database:
    """With everything that a report can have: analyses, a parameter, a campaign, failures."""
    spec = deepcopy(SPEC)
    spec["analyses"] = analysis_rows.analyses("test")
    spec["systems"]["softmax-lexicon2"] = {"variant": "softmax", "selection": {"kind": "lexicon", "k": 2}}
    changes: dict[str, Any] = {"train/scones/2": FAILED, "decode/scones-greedy/2": UPSTREAM}
    changes |= {
        f"{kind}/softmax-lexicon2": {"metrics": []} for kind in ("recall", "compare", "score", "decode")
    }
    database = new_database()
    study = fill_study(database, spec, changes, state="failed")
    add_campaign(database, study, items=30)
    add_segment_scores(database, study, items=30)
    return database


@pytest.fixture(scope="module")
def full(everything: Database) -> Document:
    return build_report(everything, "teatime")


def in_wide_terminal(report: Document) -> str:
    return in_terminal(report, 2000)


def in_markdown(report: Document) -> str:
    return re.sub(r"\\([\\`*_|<>\[\]#])", r"\1", to_markdown(report))


def in_html(report: Document) -> str:
    page = Page(to_html(report))
    labels = [str(attributes["aria-label"]) for _, attributes in page.elements if "aria-label" in attributes]
    return "\n".join([*page.words, *labels])


def in_json(report: Document) -> str:
    """The words of the values; numbers are compared elsewhere."""
    return "\n".join(_strings(json.loads(json.dumps(to_values(report)))))


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for item in value.values() for word in _strings(item)]
    if isinstance(value, list):
        return [word for item in value for word in _strings(item)]
    return [value] if isinstance(value, str) else []


def words_of(block: Block) -> list[str]:
    """What a printer has to say of a block, wherever its lines break."""
    match block:
        case Section():
            return [block.title, block.about, *block.facts]
        case Table():
            names = [word for row in block.rows for word in (row.name, row.setting, row.description)]
            return [block.title, block.about, block.heading, *names, *_notes(block)]
        case Figure():
            return list(block.choice) if block.choice else [block.title, *block.missing, block.about]
        case Choice():
            return [block.title] if block.figures else [block.title, block.absent]
        case Texts():
            passages = [one.text for entry in block.entries for one in entry.passages]
            return [block.title, block.about, *(entry.name for entry in block.entries), *passages]
        case Notes():
            return list(block.paragraphs)
        case Warnings():
            return [warning.found for warning in block.warnings]
        case Facts():
            return [fact.label for fact in block.facts] + [
                fact.value for fact in block.facts if isinstance(fact.value, str)
            ]


def _notes(table: Table) -> list[str]:
    cells = [text.shown(row.cells[column.key], column) for row in table.rows for column in table.columns]
    return [note for cell in cells for note in (cell.note, cell.change_note)]


def squeezed(words: str) -> str:
    """Without white space, and without the capital that begins a title."""
    return "".join(words.split()).lower()


PRINTERS = (in_wide_terminal, in_markdown, in_html, in_json)


@pytest.fixture(scope="module")
def pages(full: Document) -> dict[str, str]:
    return {printer.__name__: printer(full) for printer in PRINTERS}


@pytest.mark.slow
def test_every_printer_shows_every_block(pages: dict[str, str], full: Document) -> None:
    types = {type(block) for _, block in full.walk()}
    assert types == {Section, Table, Figure, Choice, Texts, Notes, Warnings, Facts}
    for printer, page in pages.items():
        shown = squeezed(page)
        for path, block in full.walk():
            for words in words_of(block):
                assert squeezed(words) in shown, (printer, path, words)


@pytest.mark.slow
@pytest.mark.parametrize("printer", ["in_wide_terminal", "in_markdown", "in_html"])
def test_every_printer_shows_every_number_as_its_column_says(
    printer: str, pages: dict[str, str], full: Document
) -> None:
    page = pages[printer]
    seen = 0
    for table in tables(full):
        for row in table.rows:
            for column in table.columns:
                cell = text.shown(row.cells[column.key], column)
                for word in (cell.value, *cell.details, *cell.change):
                    assert word in page, (table.key, row.name, column.key)
                    seen += 1
    assert seen > 500
    listed = [entry for key in ("disagreements", "disputes") for entry in entries(full, key)]
    assert len(listed) > 20
    for entry in listed:
        assert squeezed(text.entry_name(entry)) in squeezed(page)


@pytest.mark.parametrize("width", [60, 100])
def test_no_line_of_a_terminal_is_too_long(width: int, full: Document) -> None:
    shown = in_terminal(full, width)
    assert max(map(len, shown.splitlines())) <= width
    together = " ".join(shown.split())
    for _, block in full.walk():
        if isinstance(block, Section):
            assert all(" ".join(words.split()) in together for words in (block.title, block.about))


def test_digits_are_one_fact_of_a_column(full: Document) -> None:
    """A metric, and whatever is measured under one title, has as many digits in every table."""
    digits: dict[str, set[tuple[int, float]]] = {}
    for table in tables(full):
        for column in table.columns:
            digits.setdefault(column.title, set()).add((column.digits, column.scale))
    assert {title: found for title, found in digits.items() if len(found) > 1} == {}
    assert digits["COMET"] == {(4, 1.0)}
    # and in what points of figures show
    for path, figure in figures(full).items():
        if "quality/comet" in path or "metrics/comet" in path:
            formats = {
                field["title"]: field.get("format")
                for layer in figure.spec["layer"]
                for field in layer["encoding"].get("tooltip", [])
            }
            assert formats["COMET"] == ",.4f", path


@pytest.mark.slow
def test_figures_are_valid_vega_lite_of_their_own_data(full: Document) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    altair = pytest.importorskip("altair")  # comes with Streamlit, and brings the schema
    (path,) = Path(altair.__file__).parent.rglob("vega-lite-schema.json")
    validator = jsonschema.Draft7Validator(json.loads(path.read_text()))
    drawn = [one for one in figures(full).values() if one.rows]
    assert len(drawn) > len(ANALYSES.kinds) + 10
    for one in drawn:
        spec = vega_lite(replace(one, rows=one.rows[:3]))  # each row would be looked at in many ways
        assert [error.message for error in validator.iter_errors(spec)] == []
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert spec["width"] == "container"
        fields = {field for row in one.rows for field in row}
        for layer in spec["layer"]:
            for channel in layer["encoding"].values():
                for definition in channel if isinstance(channel, list) else [channel]:
                    assert definition.get("field") in {None, *fields}


def test_paths_are_unique_and_find_their_blocks(full: Document) -> None:
    paths = [path for path, _ in full.walk()]
    assert len(paths) == len(set(paths))
    assert full.table("systems/test/systems") is systems(full)
    assert full.table("means").title == "Systems"
    with pytest.raises(KeyError):
        full.table("no-such-table")


def test_a_campaigns_own_report_is_such_a_document(everything: Database, full: Document) -> None:
    alone = build_human(everything, "tasting")
    assert alone.section("human/tasting") == full.section("human/tasting")


def test_nothing_of_another_test_set_is_left(build: Build, spec: Spec) -> None:
    spec["test_sets"]["other"] = spec["test_sets"]["test"] | {"seed": 9}
    report = build()
    only = report.only("other")
    assert [block.test_set for _, block in only.walk() if isinstance(block, Section) and block.test_set] == [
        "other",  # in the answer, the tables and the figures
        "other",
        "other",
    ]
    assert only.test_sets == ("other",)
    kept = report.only("other", keep=lambda section: section.key == "figures")
    assert kept.section("figures") == report.section("figures")


@pytest.mark.parametrize("changes", [{"": {"state": "pending"}}, {"": {"metrics": []}}, {"": FAILED}])
def test_a_study_without_numbers_is_shown_by_all(build: Build, changes: dict[str, Any], spec: Spec) -> None:
    spec["analyses"] = analysis_rows.analyses("test")
    report = build(changes, state="queued")
    for shown in PRINTERS:
        page = squeezed(shown(report))
        for path, block in report.walk():
            if not isinstance(block, Table | Texts):  # their long messages are shortened
                assert all(squeezed(words) in page for words in words_of(block)), (shown, path)


def test_columns_of_one_title_are_explained_each() -> None:
    (block,) = column_meanings(
        [
            Column("outputs", "outputs", 0, note="with two ratings or more"),
            Column("items", "items", 0),
            Column("outputs", "outputs", 0, note="with both scores"),
            Column("outputs", "outputs", 0, note="with both scores"),
        ]
    )
    assert [(fact.label, fact.value) for fact in block.facts] == [
        ("outputs", "with two ratings or more; with both scores")
    ]
