"""What a key means where it is pressed: values, marks, scrolling; and what a rater is told and timed by."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from marked_text import click_on, errors_are
from playwright.sync_api import expect
from rating_board import FOUR, at_rest, draft_is, item_on, own_campaign, press_at, save, wait_for_scores
from sqlalchemy import select

from creamtea.human import rating as assignment
from creamtea.store.tables import Assignment

pytestmark = pytest.mark.browser

# a key as a layout with digits behind Shift sends it; Playwright types on an American one
SEND = """([key, code]) => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    const more = { bubbles: true, composed: true, cancelable: true };
    one.dispatchEvent(new KeyboardEvent("keydown", { key, code, shiftKey: true, ...more }));
}"""


def test_digits_after_a_button_of_the_scale_are_a_value(site, open_page) -> None:
    own_campaign(site.database, "quokka-keys", [("s", ["Das Haus ist rot"])], protocol="esa")
    page = open_page(site.rater_link("quokka-keys", "one")[0])
    item_on(page, 1, 1)
    click_on(page, "Haus", "Haus")
    page.keyboard.press("2")
    errors_are(page, ["Haus: major"])
    page.get_by_role("button", name="33: Some meaning").click()
    wait_for_scores(page, ["33"])
    page.keyboard.type("21")
    wait_for_scores(page, ["21"])
    page.locator(".board .more").click()
    wait_for_scores(page, ["22"])
    page.keyboard.press("Backspace")
    errors_are(page, ["Haus: major"])


def test_digits_behind_shift_and_keys_that_scroll(site, open_page) -> None:
    own_campaign(site.database, "quokka-shift", [("long " * 3000, ["ein Haus"])], protocol="da")
    page = open_page(site.rater_link("quokka-shift", "one")[0])
    item_on(page, 1, 1)
    for key in ("PageDown", "ArrowDown", "End"):
        page.keyboard.press(key)
    wait_for_scores(page, ["–"])
    for digit in "75":
        page.evaluate(SEND, [digit, f"Digit{digit}"])
    wait_for_scores(page, ["75"])
    page.keyboard.press("ArrowDown")  # a value that is there is changed from anywhere
    wait_for_scores(page, ["74"])


def test_nothing_to_change_and_enter_save_the_text_as_it_is(site, open_page) -> None:
    own_campaign(
        site.database, "quokka-edit", [("s", ["Er gab es auf."]), ("t", ["zwei"])], protocol="post-edit"
    )
    page = open_page(site.rater_link("quokka-edit", "one")[0])
    item_on(page, 1, 2)
    page.keyboard.press("=")
    page.keyboard.press("Enter")
    item_on(page, 2, 2)


def test_the_time_of_an_item_goes_on_after_the_earlier_ones_and_a_reload(site, open_page) -> None:
    items = [(f"source {number}", [f"{text} {number}" for text in FOUR[:2]]) for number in range(3)]
    own_campaign(site.database, "quokka-time", items)
    link, rater = site.rater_link("quokka-time", "one")
    page = open_page(link)
    item_on(page, 1)
    for row in range(2):
        press_at(page, row, 8)
    save(page)
    item_on(page, 2)
    press_at(page, 0, 8)
    page.wait_for_timeout(1500)
    press_at(page, 1, 9)
    at_rest(page)
    page.keyboard.press("b")
    expect(page.locator(".earlier li button")).to_be_focused()
    page.keyboard.press("b")
    item_on(page, 2)
    page.reload()
    item_on(page, 2)
    save(page)
    item_on(page, 3)
    with site.database.session() as session:
        own = select(Assignment).where(Assignment.rater_id == rater, Assignment.submitted_at.is_not(None))
        _, second = session.scalars(own.order_by(Assignment.id)).all()
    assert second.active_ms is not None
    assert second.active_ms >= 1500


def test_a_rater_hears_why_an_item_is_replaced(site, open_page) -> None:
    items = [(f"source {number}", [f"{text} {number}" for text in FOUR]) for number in range(2)]
    own_campaign(site.database, "quokka-late", items, ratings_per_item=1)
    link, late = site.rater_link("quokka-late", "late")
    page: Any = open_page(link)
    item_on(page, 1)
    for row in range(3):
        press_at(page, row, 8)
    draft_is(site.database, late, page, {"answers": [8] * 3 + [None]})
    with site.database.transaction() as session:
        (mine,) = session.scalars(select(Assignment).where(Assignment.rater_id == late))
        mine.lease_until = mine.created_at
    _, quick = site.rater_link("quokka-late", "quick")
    assert assignment.next_item(site.database, quick) is not None
    press_at(page, 3, 20)
    # for a moment the page has the board of either item
    notice = page.locator(".board .notice", has_text="given to someone else")
    expect(notice).to_have_count(1)
