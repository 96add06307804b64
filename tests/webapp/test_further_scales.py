"""Further scales on the board: by keys and by touch, on both widths, saved, shown again and compared."""

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from rating_board import all_done, draft_is, item_on, own_campaign, save, serious, tap_at, wait_for_scores
from sqlalchemy import select
from table_rows import all_of

from creamtea.store.tables import Assignment, Rating

pytestmark = pytest.mark.browser
SCALES = ["Fluency", "Style"]


def payloads(site: Any, rater_id: int) -> list[Any]:
    rows = select(Rating.payload).join(Assignment).where(Assignment.rater_id == rater_id)
    return sorted(all_of(site.database, rows), key=lambda payload: payload["score"])


def test_each_output_is_rated_on_every_scale_by_keys(site, open_page) -> None:
    texts = [("A cup of tea.", ["Eine Tasse Tee.", "Ein Tasse Tee."])]
    own_campaign(site.database, "scales-keys", texts, settings={"scales": SCALES})
    link, rater = site.rater_link("scales-keys", "anna")
    page = open_page(link)
    item_on(page, 1)
    names = page.locator(".board .track").evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert [name.removesuffix(" of translation A") for name in names[:3]] == ["Overall", *SCALES]
    assert serious(page) == []
    for value in ("4", "3", "2"):  # Enter goes on to the next scale, and then to the next output
        page.keyboard.press(value)
        page.keyboard.press("Enter")
    expect(page.get_by_role("slider", name="Overall of translation B")).to_be_focused()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.keyboard.press("5")
    page.keyboard.press("Enter")
    begun = {"score": 20, "scales": {}}
    draft_is(
        site.database, rater, page, {"answers": [{"score": 15, "scales": {"Fluency": 10, "Style": 5}}, begun]}
    )
    page.reload()
    item_on(page, 1)
    wait_for_scores(page, ["4.0", "3.0", "2.0", "5.0", "–", "–"])
    for slider, value in (("Fluency", "6"), ("Style", "1")):
        page.get_by_role("slider", name=f"{slider} of translation B").press(value)
    save(page)
    all_done(page)
    assert payloads(site, rater) == [
        {"score": 15, "scales": {"Fluency": 10, "Style": 5}},
        {"score": 20, "scales": {"Fluency": 25, "Style": 0}},
    ]


def test_on_a_phone(site, open_page) -> None:
    own_campaign(
        site.database, "scales-phone", [("Tea.", ["Tee."])], protocol="da", settings={"scales": SCALES}
    )
    link, rater = site.rater_link("scales-phone", "ben")
    page = open_page(link, phone=True)
    item_on(page, 1)
    for row, step in enumerate((75, 80, 60)):
        tap_at(page, row, step, 101)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    save(page)
    all_done(page)
    (payload,) = payloads(site, rater)
    given = [payload["score"], *(payload["scales"][name] for name in SCALES)]
    assert given == pytest.approx([75, 80, 60], abs=1)
    page.get_by_role("button", name="Earlier items").click()
    expect(page.get_by_text(f"{given[0]} (Fluency {given[1]}, Style {given[2]})")).to_be_visible()
