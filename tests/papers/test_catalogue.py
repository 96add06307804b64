"""The papers' tables and figures: all there, as printed, and of studies that have their cells."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from generate import papers_page

from creamtea.errors import InputError
from creamtea.papers.catalogue import (
    Collection,
    Exhibit,
    OfAnalysis,
    Row,
    Status,
    exhibits,
    find_exhibit,
    find_paper,
    number,
    papers,
    status_of,
    status_words,
)
from creamtea.study.loader import load_study

ROOT = Path(__file__).resolve().parents[2]
# of two papers a second one, converted from another source: of entmax from the paper's first version
COPIES = {
    "scones": ("scones.md", "scones-second-copy.txt"),
    "nvs": ("neural-vocabulary-selection.md",),
    "entmax": ("sparse-seq2seq-entmax.md", "sparse-seq2seq-entmax-second-copy.txt"),
}
LISTED = {
    "scones": {"table": range(1, 8), "figure": range(2, 10)},
    "nvs": {"table": range(1, 9), "figure": (1, 3, 4, 5, 6, 7)},
    "entmax": {"table": range(1, 8), "figure": ()},
}
MEMBERS = [
    pytest.param(collection, key, id=member.name)
    for paper in papers().values()
    for collection in paper.collections.values()
    for key, member in collection.members.items()
]


def test_every_table_and_figure_is_there() -> None:
    for name, listed in LISTED.items():
        for kind, numbers in listed.items():
            assert [e.number for e in exhibits(name) if e.kind == kind] == list(numbers), (name, kind)


def test_the_page_has_a_row_for_each() -> None:
    sections = re.split(r"^## ", papers_page(), flags=re.MULTILINE)[1:]
    for (name, listed), section in zip(LISTED.items(), sections, strict=True):
        rows = re.findall(r"^\| (Table|Figure) (\d+) \|.*\| \*\*(.+?)\*\*", section, re.MULTILINE)
        wanted = [(kind.capitalize(), str(n)) for kind, numbers in listed.items() for n in numbers]
        assert [row[:2] for row in rows] == wanted, name
        assert {row[2].rstrip(".").partition(":")[0] for row in rows} <= set(Status)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (1, "run at our size: 2 of 24 cells"),
        (5, "run at our size: 15 of 156 cells"),
        (8, "run at our size: 6 of 64 cells"),
        (3, "specified, not run"),
    ],
)
def test_the_status_has_the_share_of_cells(table: int, words: str) -> None:
    assert status_words(find_paper("nvs"), find_exhibit("nvs", "table", table)) == words


@pytest.mark.parametrize("exhibit", exhibits("nvs"), ids=lambda exhibit: exhibit.key)
def test_idiom_recall_is_the_papers_own(exhibit: Exhibit) -> None:
    """By the idiom's words and its translation in the metadata, not by what an aligner finds in context."""
    names = [entry.names for entry in (*exhibit.rows, *exhibit.columns)]
    measures = {value for each in names for key, value in each.items() if key in ("recall", "measure")}
    measures |= {source.cell.measure for source in exhibit.sources if isinstance(source.cell, OfAnalysis)}
    settings = {value for each in names for key, value in each.items() if key in ("scope", "setting")}
    assert not measures & {"recall_idiom", "recall_macro", "all_selected"}
    assert not any("in context" in value for value in settings if "idioms" in value)


def test_search_errors_are_counted_against_the_best_translation_known() -> None:
    """Where the best is not proved, the best found stands for it (SCONES, appendix A)."""
    sources = find_exhibit("scones", "figure", 7).sources
    measures = {source.cell.measure for source in sources if isinstance(source.cell, OfAnalysis)}
    assert measures == {"search_errors_at_least"}


@pytest.mark.parametrize(("collection", "key"), MEMBERS)
def test_a_study_is_in_its_file_by_its_name(collection: Collection, key: str) -> None:
    member = collection.members[key]
    assert load_study(ROOT / collection.file, member.overrides).study.name == member.name
    assert not collection.ran or (ROOT / "docs" / collection.ran).is_file()


def test_what_is_named_is_used_and_without_a_study_it_says_what_is_missing() -> None:
    for name, paper in papers().items():
        used = {source.collection for exhibit in exhibits(name) for source in exhibit.sources}
        used |= {drawing.collection for exhibit in exhibits(name) for drawing in exhibit.drawings}
        assert used == set(paper.collections), name
        for exhibit in exhibits(name):
            assert exhibit.missing or status_of(paper, exhibit) != Status.NOT_SPECIFIED, exhibit.key


def test_the_number_of_a_printed_value() -> None:
    values = {"27.72 ± 0.11": 27.72, "+2.7 ‡": 2.7, "-0.498": -0.498, "−0.5": -0.5, "121M": 121.0}
    values |= {"6,590,600": 6590600.0, "12.6%": 12.6}
    assert {printed: number(printed) for printed in values} == values
    assert [number(printed) for printed in ("plot: stable beyond 100", "", "-", None)] == [None] * 4


def test_an_unknown_name_lists_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"no paper 'tea'; the papers are scones, nvs, entmax"):
        find_paper("tea")
    with pytest.raises(InputError, match=r"no figure 2 with results; it has Figure 1, Figure 3, "):
        find_exhibit("nvs", "figure", 2)
    with pytest.raises(InputError, match=r"no figure 1 with results; it has Table 1, Table 2, "):
        find_exhibit("entmax", "figure", 1)
    assert find_exhibit("nvs", "table", 5).rows[0].values[0] == "34.4 ± 0.2"


# ---------------------------------------------------------------- as printed


@cache
def copies_of(name: str) -> list[str]:
    """The text of each copy of the paper without LaTeX's and Markdown's marks."""
    folder = next((f / "shared" / "papers" for f in ROOT.parents if (f / "shared" / "papers").is_dir()), None)
    if folder is None:
        pytest.skip("the copies of the papers are not beside this tree")
    return [plain((folder / copy).read_text(encoding="utf-8")) for copy in COPIES[name]]


def plain(text: str) -> str:
    text = re.sub(r"\\(textbf|pmb|mathbf) *\{([^{}]*)\}", r"\2", text.replace("±plus-or-minus\\pm", "±"))
    for mark, words in ((r"\pm", "±"), (r"\lambda", "λ"), (r"\alpha", "α"), ("<sup>", " "), ("</sup>", "")):
        text = text.replace(mark, words)
    text = re.sub(r"[ \t]+", " ", re.sub(r"[$*|&\\]", " ", text))
    return tight(re.sub(r" ([†‡])", r"\1", text))


def tight(value: str) -> str:
    return re.sub(r" *± *", "±", value).replace(" †", "†").replace(" ‡", "‡")


def places(value: str, text: str) -> list[int]:
    return [found.start() for found in re.finditer(rf"(?<![\d.]){re.escape(value)}(?![\d]|\.\d)", text)]


def numbers_of(row: Row) -> list[str]:
    return [tight(value) for value in row.values if value is not None and number(value) is not None]


def rows_of(text: str, values: Sequence[str]) -> list[str]:
    """The lines with all of these values in this order."""
    line = r".*?(?<![\d.])".join(re.escape(value) for value in values)
    return re.findall(rf"^.*(?<![\d.]){line}(?![\d]|\.\d).*$", text, re.MULTILINE)


# cells that a copy does not print, by paper, copy, and exhibit: all of a row, of a column, or of the exhibit
NOT_PRINTED = {
    ("entmax", 0, "table-3"): {
        (row, column)
        for row in ("α = 1, ε = 0", "α = 1.5, ε > 0")
        for column in ("DE→EN", "EN→DE", "JA→EN", "EN→JA", "EN→RO")
    },
    **{("entmax", 1, key): {("", "WMT14")} for key in ("table-3", "table-4", "table-6", "table-7")},
    ("entmax", 1, "table-5"): {("", "")},
}


def is_printed(name: str, copy: int, exhibit: Exhibit, row: str, column: str) -> bool:
    missing = NOT_PRINTED.get((name, copy, exhibit.key), set())
    return not missing & {(row, column), ("", column), ("", "")}


def rows_of_exhibits(name: str) -> list[tuple[Exhibit, Row]]:
    return [(exhibit, row) for exhibit in exhibits(name) for row in exhibit.rows]


@pytest.mark.parametrize("name", COPIES)
def test_every_cell_is_as_all_copies_print_it(name: str) -> None:
    """A value stands in every copy but those listed, and a row of a table is a line of one copy at least."""
    copies = copies_of(name)
    for exhibit, row in rows_of_exhibits(name):
        place = exhibit.key, row.title
        for column, value in zip(exhibit.columns, row.values, strict=True):
            if value is None or number(value) is None:
                continue
            found = [bool(places(tight(value), text)) for text in copies]
            wanted = [is_printed(name, copy, exhibit, row.title, column.title) for copy in range(len(copies))]
            assert any(wanted), (*place, column.title)
            assert all(f or not w for f, w in zip(found, wanted, strict=True)), (*place, column.title, value)
        if exhibit.kind == "table":
            assert any(rows_of(text, numbers_of(row)) for text in copies), place


@pytest.mark.parametrize("name", COPIES)
def test_what_is_called_lost_is_in_no_copy(name: str) -> None:
    """The line of a copy that has a row's values has no others."""
    copies = copies_of(name)
    for exhibit, row in rows_of_exhibits(name):
        lost = [c.title for c, value in zip(exhibit.columns, row.values, strict=True) if value is None]
        assert not lost or (name, exhibit.key) == ("entmax", "table-3")
        for text in copies if lost else ():
            for line in rows_of(text, numbers_of(row)):
                assert len(re.findall(r"\d\.\d\d±", line)) == len(row.values) - len(lost), (row.title, line)


@pytest.mark.parametrize("name", COPIES)
def test_every_row_of_a_copys_tables_is_stored_whole(name: str) -> None:
    """A line with at least two values with ± is a row of a table: of these each is stored, side by side."""
    stored = [
        numbers_of(row) for exhibit in exhibits(name) if exhibit.kind == "table" for row in exhibit.rows
    ]
    for text in copies_of(name):
        for line in text.splitlines():
            printed = re.findall(r"\d[\d,]*(?:\.\d+)?±\d+(?:\.\d+)?", line)
            if len(printed) > 1 and line.count("{array}") == 0:
                own = [[value for value in row if value in printed] for row in stored]
                assert printed in own, line
