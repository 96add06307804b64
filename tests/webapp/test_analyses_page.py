"""The analyses of a study, and a score over a parameter, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from rating_board import wait_for_size, wait_for_width
from watched import at_rest, press

pytestmark = pytest.mark.browser

TITLES = [
    "Beam sizes",
    "Search errors",
    "Empty string",
    "Short hypotheses",
    "Density of the support",
    "Calibration",
    "Recall at equal size",
    "NVS without context",
]


@pytest.fixture(scope="module")
def reader(site, analysed, quiet_page) -> Any:
    """One page for all tests here."""
    page = quiet_page
    page.goto(site.new_link("reader"))
    page.get_by_role("link", name=analysed).click()
    page.get_by_text("Versions, seeds, hardware").wait_for()
    at_rest(page)
    return page


def test_every_analysis_has_its_section(reader) -> None:
    heads = reader.locator("h3 a.own").all_text_contents()
    assert [head for head in heads if head in TITLES] == TITLES
    shown = reader.locator(".ct")
    expect(shown.filter(has_text="the first 20 sentences of narwhal")).to_have_count(1)
    expect(shown.filter(has_text="SCONES, Figures 3 and 4")).to_have_count(1)


def test_a_table_has_values_intervals_and_deviations(reader) -> None:
    table = reader.locator(".table table").filter(has_text="Variant, beam").first
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(8)
    seeds = rows.nth(4).locator("td").first  # dugong, beam 1
    expect(seeds.locator(".value")).to_have_text("30.1")
    expect(seeds.locator("small")).to_have_text(["± 0.1", "[28.9, 31.4]"])
    table.get_by_role("button", name="BLEU").click()
    expect(rows.first.locator(".name")).to_contain_text("dugong")


def test_long_tables_are_folded(reader) -> None:
    folded = reader.locator("[data-testid=stExpander]").filter(has_text="Variant, threshold").last
    table = folded.locator(".table table")
    expect(table).to_be_hidden()
    press(folded.get_by_text("Table: "))
    expect(table).to_be_visible()


def test_all_plots_are_drawn(reader) -> None:
    drawn = reader.locator("[data-testid=stVegaLiteChart]").locator("canvas, svg")
    # the systems; quality, recall, over a parameter, learning (the losses of two objectives);
    # two of beams and of buckets, three of recall at size, five of errors, one of others
    count = 1 + 5 + 2 + 5 + 1 + 1 + 1 + 1 + 3 + 1 + 2
    expect(drawn).to_have_count(count)
    for number in range(count):
        wait_for_size(drawn.nth(number), width=200, height=100)  # those with a row a variant are low


def test_a_score_is_drawn_over_a_chosen_parameter(reader) -> None:
    field = reader.get_by_label("Value", exact=True)
    field.scroll_into_view_if_needed()
    field.fill("idiom recall")
    field.press("Enter")
    expect(field).to_have_value("idiom recall")
    at_rest(reader)
    expect(reader.locator("[data-testid=stVegaLiteChart]").locator("canvas, svg").nth(2)).to_be_visible()


def test_latency_is_given_of_both_baselines(reader) -> None:
    lexicon = reader.locator(".table").first.locator("tbody tr").filter(has_text="65 %").first
    percents = [line for line in lexicon.inner_text().splitlines() if "%" in line]
    assert percents == 3 * ["65 %", "68 %"]  # of p50, p90 and p99, over too few repetitions for an interval
    expect(reader.locator("body")).to_contain_text("% of tapir-greedy / dugong-greedy")


def test_the_page_fits_a_phone(reader) -> None:
    reader.set_viewport_size({"width": 390, "height": 844})
    wait_for_width(reader, 390)


def test_nothing_went_wrong_in_the_browser(reader) -> None:
    assert reader.troubles == []
