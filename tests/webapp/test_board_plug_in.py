"""The board with the widget of a plug-in's protocol, in a real browser."""

import pytest
from playwright.sync_api import expect
from rating_board import all_done, draft_on, item_on, save

from creamtea.store.tables import Rating

pytestmark = pytest.mark.browser


def test_an_answer_of_several_parts_is_given_kept_and_saved(rate, plug_in) -> None:
    rater = rate([("Tee", ["tea"]), ("Sahne", ["cream"])], protocol="error-spans")
    page = rater.page
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
    rows = rater.given(Rating.step, Rating.payload)
    assert [(step, payload["fluency"], len(payload["spans"])) for _, step, payload in rows] == [
        (650, 70, 1),
        (1000, 100, 0),
    ]
