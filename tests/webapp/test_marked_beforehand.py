"""Errors that were marked before a rater begins, and practice items that say which were expected."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api")

from marked_text import (
    click_on,
    drag_over,
    errors_are,
    payloads,
    span,
)
from playwright.sync_api import expect
from rating_board import (
    draft_on,
    item_on,
    own_campaign,
    press_at,
    save,
    slow_clock,
    wait_for_scores,
)

pytestmark = pytest.mark.browser


def test_errors_marked_beforehand_are_kept_changed_deleted_and_added(site, open_page) -> None:
    text = "die rote Tasse und der Topf"
    proposed = [span(text, "rote", "minor"), span(text, "Topf", "major"), {"severity": "minor"}]
    own_campaign(
        site.database,
        "pangolin-proposed",
        [("again", [text]), ("more", [text])],
        protocol="esa",
        item_proposals={"0": proposed},
    )
    link, rater_id = site.rater_link("pangolin-proposed", "checks")
    page = open_page(link, before=slow_clock)
    item_on(page, 1, 2)
    source = page.locator(".board .source > .text").text_content()
    errors_are(page, ["rote: minor", "Topf: major", "[missing]: minor"])
    page.locator(".board .track").click(force=True)  # nobody has looked at them yet
    wait_for_scores(page, ["–"])
    page.get_by_role("button", name="No more errors").click()
    page.keyboard.type("90")
    page.keyboard.press("Enter")
    item_on(page, 2, 2)
    kept = [{**one, "proposed": number} for number, one in enumerate(proposed)]
    assert payloads(site.database, rater_id, source) == {text: {"score": 90, "spans": kept}}
    (source,) = {"again", "more"} - {source}
    page.locator(".board .error .minor").nth(1).click()
    page.get_by_role("button", name="Delete the error “rote”", exact=True).click()
    click_on(page, "Tasse", "Tasse")
    page.keyboard.press("2")
    draft_on(page, "saved")
    page.reload()
    item_on(page, 2, 2)
    errors_are(page, ["Tasse: major", "Topf: minor", "[missing]: minor"])
    press_at(page, 0, 50, steps=101)
    save(page)
    expect(page.get_by_role("heading", name="All done")).to_have_count(1)
    spans = payloads(site.database, rater_id, source)[text]["spans"]
    assert spans == [span(text, "Tasse", "major"), {**kept[1], "severity": "minor"}, kept[2]]


def test_a_practice_item_says_which_errors_were_expected(site, open_page) -> None:
    text = "Good mourning, dear"
    expected = [{"start": [5, 5], "end": [11, 12], "severity": "major"}, {"severity": "minor"}]
    guidance = {"steps": {"0": [0, 60]}, "spans": {"0": expected}, "explanation": "It mourns."}
    own_campaign(
        site.database,
        "pangolin-practice",
        [("Guten Morgen, mein Lieber", [text])],
        protocol="esa",
        item_kind="tutorial",
        item_guidance=guidance,
    )
    link, _ = site.rater_link("pangolin-practice", "learns")
    page = open_page(link)
    item_on(page, 1, 1)
    click_on(page, "mourning", "mourning")
    page.keyboard.press("2")
    press_at(page, 0, 90, steps=101)
    save(page)
    expect(page.get_by_role("heading", name="Not quite as expected")).to_have_count(1)
    rows = page.get_by_role("list", name="Expected errors").get_by_role("listitem")
    expect(rows).to_have_text(["✓ “mourning”, major", "✗ [missing], minor"])
    expect(page.locator(".board .verdict:visible")).to_have_text("✗ expected 0 to 60")
    expect(page.get_by_text("It mourns.")).to_be_visible()
    drag_over(page, "Good", "Good")
    errors_are(page, ["mourning: major"])  # what is saved stays
