"""The papers' tables and figures: all there, as printed, and of studies that have their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from creamtea.errors import InputError
from creamtea.papers.catalogue import exhibits, find_exhibit, find_paper, papers
from creamtea.papers.model import Collection, Exhibit, OfAnalysis, number
from creamtea.papers.page import markdown
from creamtea.papers.status import Status, status_of
from creamtea.study.loader import load_study

ROOT = Path(__file__).resolve().parents[2]
COPIES = {
    "scones": "scones.md",
    "nvs": "neural-vocabulary-selection.md",
    "entmax": "sparse-seq2seq-entmax.md",
}
LISTED = {
    "scones": {"table": range(1, 8), "figure": range(2, 10)},
    "nvs": {"table": range(1, 9), "figure": (1, 3, 4, 5, 6, 7)},
    "entmax": {"table": range(1, 8), "figure": ()},
}
ALL = [(name, exhibit) for name in papers() for exhibit in exhibits(name)]
IDS = [f"{name}-{exhibit.key}" for name, exhibit in ALL]
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


def test_the_page_is_what_the_files_say() -> None:
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == markdown(), "run `make docs`"


def test_the_page_has_a_row_for_each() -> None:
    sections = re.split(r"^## ", markdown(), flags=re.MULTILINE)[1:]
    for (name, listed), section in zip(LISTED.items(), sections, strict=True):
        rows = re.findall(r"^\| (Table|Figure) (\d+) \|.*\| \*\*(.+?)\*\*", section, re.MULTILINE)
        wanted = [(kind.capitalize(), str(n)) for kind, numbers in listed.items() for n in numbers]
        assert [row[:2] for row in rows] == wanted, name
        assert {row[2].rstrip(".") for row in rows} <= set(Status)


@pytest.mark.parametrize("exhibit", exhibits("nvs"), ids=lambda exhibit: exhibit.key)
def test_idiom_recall_is_the_papers_own(exhibit: Exhibit) -> None:
    """By the idiom's words and its translation in the metadata, not by what an aligner finds in context."""
    names = [entry.names for entry in (*exhibit.rows, *exhibit.columns)]
    measures = {value for each in names for key, value in each.items() if key in ("recall", "measure")}
    measures |= {source.cell.measure for source in exhibit.sources if isinstance(source.cell, OfAnalysis)}
    settings = {value for each in names for key, value in each.items() if key in ("scope", "setting")}
    assert not measures & {"recall_idiom", "recall_macro", "all_selected"}
    assert not any("in context" in value for value in settings if "idioms" in value)


@pytest.mark.parametrize(("collection", "key"), MEMBERS)
def test_a_study_is_in_its_file_by_its_name(collection: Collection, key: str) -> None:
    member = collection.members[key]
    assert load_study(ROOT / collection.file, member.overrides).study.name == member.name
    assert not collection.ran or (ROOT / "docs" / collection.ran).is_file()


def test_what_is_named_is_used() -> None:
    for name, paper in papers().items():
        used = {source.collection for exhibit in exhibits(name) for source in exhibit.sources}
        used |= {drawing.collection for exhibit in exhibits(name) for drawing in exhibit.drawings}
        assert used == set(paper.collections), name


def test_without_a_study_it_says_what_is_missing() -> None:
    for name, exhibit in ALL:
        if status_of(papers()[name], exhibit) == Status.NOT_SPECIFIED:
            assert exhibit.missing, exhibit.key


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("27.72 ± 0.11", 27.72),
        ("+2.7 ‡", 2.7),
        ("-0.498", -0.498),
        ("−0.5", -0.5),
        ("121M", 121.0),
        ("6,590,600", 6590600.0),
        ("12.6%", 12.6),
        ("plot: stable beyond 100", None),
        ("", None),
        ("-", None),
        (None, None),
    ],
)
def test_the_number_of_a_printed_value(printed: str | None, value: float | None) -> None:
    assert number(printed) == value


def test_an_unknown_name_lists_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"no paper 'tea'; the papers are scones, nvs, entmax"):
        find_paper("tea")
    with pytest.raises(InputError, match=r"no figure 2 with results; it has Figure 1, Figure 3, "):
        find_exhibit("nvs", "figure", 2)
    with pytest.raises(InputError, match=r"no figure 1 with results; it has Table 1, Table 2, "):
        find_exhibit("entmax", "figure", 1)
    assert find_exhibit("nvs", "table", 5).rows[0].values[0] == "34.4 ± 0.2"


# ---------------------------------------------------------------- as printed


def copy_of(name: str) -> str:
    """The paper's text without LaTeX's and Markdown's marks."""
    found = [folder / "shared" / "papers" / COPIES[name] for folder in ROOT.parents]
    path = next((path for path in found if path.is_file()), None)
    if path is None:
        pytest.skip("the copies of the papers are not beside this tree")
    text = re.sub(r"\\(textbf|pmb|mathbf) *\{([^{}]*)\}", r"\2", path.read_text(encoding="utf-8"))
    for mark, plain in ((r"\pm", "±"), (r"\lambda", "λ"), (r"\alpha", "α"), ("<sup>", " "), ("</sup>", "")):
        text = text.replace(mark, plain)
    return re.sub(r"[ \t]+", " ", re.sub(r"[$*|&\\]", " ", text)).replace(" ±", "±").replace("± ", "±")


def printed_values(exhibit: Exhibit) -> Iterator[tuple[str, list[str]]]:
    for row in exhibit.rows:
        values = [value for value in row.values if number(value) is not None]
        yield row.title, [value.replace(" ±", "±").replace("± ", "±") for value in values if value]


@pytest.mark.parametrize(("name", "exhibit"), ALL, ids=IDS)
def test_values_are_as_printed(name: str, exhibit: Exhibit) -> None:
    text = copy_of(name)
    for title, values in printed_values(exhibit):
        for value in values:
            found = re.search(rf"(?<![\d.]){re.escape(value)}(?![\d]|\.\d)", text)
            assert found, (title, value)
        # a row of a table is a line of our copy, but for one that it has garbled
        if exhibit.kind == "table" and (name, exhibit.number) != ("entmax", 3):
            line = r"[^\n]*?(?<![\d.])".join(re.escape(value) for value in values)
            assert re.search(rf"(?<![\d.]){line}(?![\d]|\.\d)", text), (title, values)
