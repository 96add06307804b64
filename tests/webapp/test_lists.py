"""Lists in a browser: sorted, filtered, by keyboard and on a phone; drawn anew they keep what was chosen."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from watched import at_rest

pytestmark = pytest.mark.browser


def first_cells(page: Any) -> list[str]:
    return page.locator("#table-steps tbody tr:not([hidden]) td:first-child").all_inner_texts()


def test_a_list_is_sorted_and_filtered(site: Any, open_page: Any) -> None:
    page = open_page(site.new_link("organiser").replace("/enter#", "/enter?study=quagga&step=#"))
    head = page.get_by_role("button", name="step", exact=True)
    expect(head).to_be_visible()
    at_rest(page)
    as_it_was = first_cells(page)
    head.press("Enter")
    column = page.get_by_role("columnheader", name="step")
    expect(column).to_have_attribute("aria-sort", "ascending")
    rising = first_cells(page)
    assert sorted(rising) == sorted(as_it_was)
    assert rising != as_it_was
    head.click()
    expect(column).to_have_attribute("aria-sort", "descending")
    assert first_cells(page) == rising[::-1]
    page.get_by_label("Filter").fill("SUCCEEDED score")
    found = first_cells(page)
    assert 0 < len(found) < len(rising)
    expect(page.get_by_text(f"{len(found)} of {len(rising)}", exact=True)).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("Filter").fill("")
    page.get_by_label("Sort by").select_option("as it was")
    assert first_cells(page) == as_it_was
    page.get_by_label("Sort by").select_option("step")
    assert first_cells(page) == rising
