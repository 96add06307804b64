"""The board with the widget of a plug-in's protocol, in a real browser."""

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from rating_board import all_done, draft_on, item_on, own_campaign, save
from sqlalchemy import select

from creamtea.store.tables import Assignment, Rating

pytestmark = pytest.mark.browser

ITEMS = [("Tee", ["tea"]), ("Sahne", ["cream"])]


def test_an_answer_of_several_parts_is_given_kept_and_saved(site, open_page, plug_in) -> None:
    own_campaign(site.database, "pangolin-spans", ITEMS, protocol="error-spans")
    link, rater_id = site.rater_link("pangolin-spans", "plugged")
    page = open_page(link)
    item_on(page, 1, 2)
    button = page.get_by_role("button", name="Save", exact=True)
    expect(page.locator(".board .left")).to_have_text("1 translation left to rate")
    page.get_by_role("button", name="Mark a major error").click()
    expect(page.get_by_text("1 errors")).to_be_visible()
    expect(button).to_be_disabled()  # the fluency is missing
    page.get_by_label("Fluency").fill("70")
    expect(button).to_be_enabled()
    draft_on(page, "saved")
    page.reload()
    item_on(page, 1, 2)
    expect(page.get_by_text("1 errors")).to_be_visible()
    save(page)
    item_on(page, 2, 2)
    expect(page.get_by_text("0 errors")).to_be_visible()
    page.get_by_label("Fluency").fill("100")
    save(page)
    all_done(page)
    with site.database.session() as session:
        query = select(Rating.step, Rating.payload).join(Assignment).where(Assignment.rater_id == rater_id)
        rows = session.execute(query.order_by(Rating.id)).all()
    assert [(step, payload["fluency"], len(payload["spans"])) for step, payload in rows] == [
        (650, 70, 1),
        (1000, 100, 0),
    ]
