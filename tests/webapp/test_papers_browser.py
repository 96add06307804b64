"""The list of the papers, a table and a figure in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from paper_rows import fill

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from rating_board import wait_for_size, wait_for_width
from watched import press

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def reader(site: Any, quiet_page: Any) -> Any:
    """One page for all tests here: a reader on the list, which is reached from the studies."""
    fill(site.database, "scones-multi30k")
    quiet_page.goto(site.new_link("reader"))
    quiet_page.get_by_role("link", name="Papers").click()
    quiet_page.get_by_role("heading", name="Papers").wait_for()
    return quiet_page


def test_a_table_is_opened_from_the_list_and_left_for_the_next(reader: Any) -> None:
    press(reader.locator("li", has_text="BLEU score gains").get_by_role("link"))
    rows = reader.locator(".table tbody tr")
    kinds = [*(2 * ["published", "ours"]), "verdict against Softmax", "published", "ours"]
    expect(rows.locator(".name")).to_have_text([re.compile(f", {kind}$") for kind in kinds])
    judged = rows.filter(has_text="verdict").locator("td").nth(1)  # greedy, en-de
    expect(judged.locator(".value")).to_have_text(re.compile("^(holds|opposite|undecided): "))
    press(reader.get_by_role("link", name="Table 4").last)
    expect(reader.get_by_role("heading", name="SCONES, Table 4")).to_have_count(1)
    expect(reader).to_have_url(re.compile(r"/\?paper=scones&table=4$"))


def test_a_figure_is_drawn_and_saved_under_the_papers_name(site: Any, reader: Any) -> None:
    reader.goto(f"{site.url}/?paper=scones&figure=2")
    wait_for_size(
        reader.locator("[data-testid=stVegaLiteChart]").locator("canvas, svg"), width=200, height=200
    )
    with reader.expect_download() as download:
        press(reader.get_by_role("button", name="LaTeX", exact=True))
    assert download.value.suggested_filename == "scones-figure-2-ours-values.tex"


@pytest.mark.parametrize("query", ["papers=all", "paper=scones&table=3", "paper=nvs&table=5"])
def test_a_page_fits_a_phone(site: Any, reader: Any, query: str) -> None:
    reader.set_viewport_size({"width": 390, "height": 844})
    reader.goto(f"{site.url}/?{query}")
    reader.locator("h1").wait_for()
    wait_for_width(reader, 390)
    assert reader.troubles == []
