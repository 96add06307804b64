"""The analyses of a study, and a score over a parameter, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

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
def reader(site, analysed, chromium) -> Any:
    """One page for all tests here; what went wrong is in `page.troubles`."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("console", lambda said: page.troubles.append(said.text) if said.type == "error" else None)
    page.goto(site.new_link("reader"))
    page.get_by_role("link", name=analysed).click()
    page.get_by_text("Provenance").wait_for()
    yield page
    context.close()


def test_every_analysis_has_its_section(reader) -> None:
    assert reader.locator(".analysis h3").all_text_contents() == TITLES
    assert "the first 20 sentences of narwhal" in reader.locator(".analysis").nth(1).inner_text()
    assert "SCONES, Figures 3 and 4" in reader.locator(".analysis").first.inner_text()


def test_a_table_has_values_intervals_and_deviations(reader) -> None:
    table = reader.locator(".scroller table").filter(has_text="Variant, beam").first
    rows = table.locator("tbody tr")
    rows.nth(7).wait_for()
    assert rows.count() == 8
    seeds = rows.nth(4).locator("td").first  # dugong, beam 1
    assert seeds.locator(".value").inner_text() == "30.1"
    assert seeds.locator(".small").all_text_contents() == ["± 0.1", "[28.9, 31.4]"]
    table.get_by_role("button", name="BLEU").click()
    assert "dugong" in rows.first.locator(".name").inner_text()


def test_long_tables_are_folded(reader) -> None:
    reader.get_by_text("Table: ").first.click()
    reader.locator(".scroller table").filter(has_text="Variant, threshold").wait_for()


def test_all_plots_are_drawn(reader) -> None:
    drawn = reader.locator("[data-testid=stVegaLiteChart]").locator("canvas, svg")
    drawn.nth(17).wait_for()
    # quality, recall, over a parameter, learning; two of beams and recall at size, five of errors, else one
    assert drawn.count() == 4 + 2 + 5 + 1 + 1 + 1 + 1 + 2 + 1
    for number in range(drawn.count()):
        drawn.nth(number).scroll_into_view_if_needed()
        box = drawn.nth(number).bounding_box()
        assert box["width"] > 200
        assert box["height"] > 100  # those with a row a variant are low


def test_a_score_is_drawn_over_a_chosen_parameter(reader) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    assert reader.get_by_label("Parameter").input_value() == "selection k"
    field = reader.get_by_label("Value", exact=True)
    field.scroll_into_view_if_needed()
    field.fill("idiom recall")
    field.press("Enter")
    expect(field).to_have_value("idiom recall")
    reader.wait_for_timeout(1000)  # it is drawn anew
    expect(reader.locator("[data-testid=stVegaLiteChart]").locator("canvas, svg").nth(2)).to_be_visible()


def test_latency_is_given_of_both_baselines(reader) -> None:
    lexicon = reader.locator(".scroller").first.locator("tbody tr").nth(1)
    percents = [line for line in lexicon.inner_text().splitlines() if "%" in line]
    assert percents == 3 * ["65 % [63, 68]", "68 % [66, 71]"]  # of p50, p90 and p99
    assert "% of tapir-greedy / dugong-greedy" in reader.locator("body").inner_text()


def test_the_page_fits_a_phone(reader) -> None:
    reader.set_viewport_size({"width": 390, "height": 844})
    reader.wait_for_timeout(800)
    main = reader.locator("[data-testid=stMain]")
    assert main.evaluate("element => element.scrollWidth") <= 390


def test_nothing_went_wrong_in_the_browser(reader) -> None:
    assert reader.troubles == []
