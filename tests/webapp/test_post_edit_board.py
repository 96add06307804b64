"""Post-editing in a browser: by mouse and by keyboard, right to left, drafts and revisions."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from rating_board import draft_on, item_on, own_campaign, save, serious
from sqlalchemy import select

from creamtea.store.tables import Assignment, Item, Rating

pytestmark = pytest.mark.browser

TWO = [("He gave up.", ["Er gab es auf."]), ("He lost his temper.", ["Er verlor seine Geduld."])]


def field(page: Any) -> Any:
    return page.get_by_role("textbox", name="Corrected translation")


def texts(site: Any, rater_id: int) -> dict[str, tuple[str, int]]:
    """Source: corrected text and step, of the last revision."""
    with site.database.session() as session:
        rows = session.execute(
            select(Item.source, Rating.payload, Rating.step)
            .join(Assignment, Assignment.item_id == Item.id)
            .join(Rating, Rating.assignment_id == Assignment.id)
            .where(Assignment.rater_id == rater_id)
            .order_by(Rating.revision)
        )
        return {source: (payload["text"], step) for source, payload, step in rows}


def test_escape_leaves_the_field_so_that_letters_are_keys(site, open_page) -> None:
    own_campaign(site.database, "wombat-edit", TWO, protocol="post-edit")
    link, _ = site.rater_link("wombat-edit", "editor")
    page = open_page(link)
    item_on(page, 1, 2)
    page.keyboard.press("e")
    expect(field(page)).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.type("!")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    comment = page.get_by_role("textbox", name="Comment")
    expect(comment).to_be_focused()
    page.keyboard.type("odd")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    expect(field(page)).to_be_focused()
    expect(field(page)).to_have_value("Er gab es auf.!")
    expect(comment).to_have_value("odd")


def test_by_mouse_with_a_reload_between(site, open_page) -> None:
    own_campaign(site.database, "pangolin-edit", TWO, protocol="post-edit")
    link, rater_id = site.rater_link("pangolin-edit", "editor")
    page = open_page(link)
    item_on(page, 1, 2)
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    field(page).fill("Er gab auf.")
    draft_on(page, "saved")
    page.reload()
    item_on(page, 1, 2)
    expect(field(page)).to_have_value("Er gab auf.")
    assert serious(page) == []
    page.get_by_role("button", name="Undo all changes").click()
    expect(field(page)).to_have_value("Er gab es auf.")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    field(page).fill("Er gab <b>auf</b>.")
    save(page)
    item_on(page, 2, 2)
    page.get_by_role("button", name="Nothing to change").click()
    save(page)
    expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert texts(site, rater_id) == {
        "He gave up.": ("Er gab <b>auf</b>.", 333),  # two edits, three words
        "He lost his temper.": ("Er verlor seine Geduld.", 1000),
    }


def test_by_keyboard_alone_from_right_to_left(site, open_page) -> None:
    items = [("Good morning", ["صباح خير"])]
    own_campaign(site.database, "pangolin-edit-ar", items, protocol="post-edit", languages=("en", "ar"))
    link, rater_id = site.rater_link("pangolin-edit-ar", "editor")
    page = open_page(link)
    item_on(page, 1, 1)
    page.keyboard.press("e")
    expect(field(page)).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("صباح الخير")
    assert field(page).evaluate("(area) => getComputedStyle(area).direction") == "rtl"
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert texts(site, rater_id) == {"Good morning": ("صباح الخير", 500)}
