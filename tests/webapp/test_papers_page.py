"""The list of the papers, and the page of each table and figure, by AppTest."""

import re
from collections.abc import Callable

import pytest
from organiser_app import READER, visits
from organiser_app import shown as html
from paper_rows import OURS, fill

from creamtea.contract.step import Column
from creamtea.papers.catalogue import exhibits, papers
from creamtea.report.html import part
from creamtea.report.model import Cell, Delta, Row, Table
from creamtea.report.papers import Reports, build_exhibit
from creamtea.store.database import Database
from creamtea_webapp.pages import papers as papers_page

ALL = [(name, exhibit) for name in papers() for exhibit in exhibits(name)]

Shown = Callable[..., str]


@pytest.fixture(scope="module")
def store(module_database: Database) -> Database:
    fill(module_database, *OURS)
    return module_database


@pytest.fixture
def shown(store: Database, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """`shown(paper="scones", table="3")`: the HTML of the page of this address."""
    visit = visits(store, monkeypatch, READER)
    return lambda **query: html(visit(**query))


def test_a_heading_of_greek_letters_stays_as_it_is(store: Database) -> None:
    table = build_exhibit(store, "entmax", "table", 4).table("ours/values")
    assert ">α, ε</button>" in part("grid", table, "")


def test_a_value_and_its_difference_have_a_note_each() -> None:
    delta = Delta("pending", "its comparison has not run")
    cell = Cell("partial", "of 1 of 2 seeds", value=30.0, delta=delta)
    column = Column("bleu", "BLEU", 1)
    shown = part("grid", Table("t", "", "system", (column,), (Row("beam", {"bleu": cell}),)), "")
    assert re.findall("<li>(.*?)</li>", shown) == [cell.note, delta.note]


def test_the_list_has_every_table_and_figure_with_its_status(shown: Shown) -> None:
    listed = shown(papers="all")
    links = re.findall(r'href="\?paper=(\w+)&amp;(\w+)=(\d+)"', listed)
    assert links == [(name, exhibit.kind, str(exhibit.number)) for name, exhibit in ALL]
    assert listed.count('class="state"') == len(ALL)


@pytest.mark.slow
def test_every_table_and_figure_opens(shown: Shown, store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {paper.short: Reports(store, paper) for paper in papers().values()}  # each study is read once
    monkeypatch.setattr(papers_page, "Reports", lambda _, paper: shared[paper.short])
    for name, exhibit in ALL:
        page = shown(paper=name, **{exhibit.kind: str(exhibit.number)})
        assert f"<h1>{papers()[name].short}, {exhibit.label}</h1>" in page


@pytest.mark.slow
def test_a_page_leads_to_its_neighbours_and_the_studies_that_are_here(shown: Shown) -> None:
    first, middle, last = (
        re.findall(r'href="\?(\w+=[^"]+)"', shown(paper="scones", **{kind: number}))
        for kind, number in (("table", "1"), ("table", "7"), ("figure", "9"))
    )
    assert first == ["papers=all", *(2 * ["paper=scones&amp;table=2"])]
    around = ["paper=scones&amp;table=6", "paper=scones&amp;figure=2"]
    assert middle == ["papers=all", "study=scones-multi30k", "study=ibm3-temperature", *around, *around]
    assert last == ["papers=all", "study=ibm3-temperature", *(2 * ["paper=scones&amp;figure=8"])]


@pytest.mark.parametrize(
    "query",
    [
        {"paper": "<b>jam</b>", "table": "1"},
        {"paper": "scones", "table": "99"},
        {"paper": "scones", "figure": "two"},
    ],
)
def test_an_unknown_one_is_told_and_leads_to_the_list(shown: Shown, query: dict[str, str]) -> None:
    page = shown(**query)
    assert "No such table or figure" in page
    assert "<b>" not in page
    assert 'href="?papers=all"' in page
