"""Further scales on the board: by keys and by touch, on both widths, saved and shown again."""

import pytest
from playwright.sync_api import expect
from rating_board import all_done, begin_rating, item_on, save, serious, tap_at, wait_for_scores

pytestmark = pytest.mark.browser
SCALES = ["Fluency", "Style"]


def test_each_output_is_rated_on_every_scale_by_keys(site, open_page) -> None:
    texts = [("A cup of tea.", ["Eine Tasse Tee.", "Ein Tasse Tee."])]
    rater = begin_rating(site, open_page, texts, settings={"scales": SCALES})
    page = rater.page
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
    first, begun = {"score": 15, "scales": {"Fluency": 10, "Style": 5}}, {"score": 20, "scales": {}}
    rater.draft_is({"answers": [first, begun]})
    page.reload()
    item_on(page, 1)
    wait_for_scores(page, ["4.0", "3.0", "2.0", "5.0", "–", "–"])
    for slider, value in (("Fluency", "6"), ("Style", "1")):
        page.get_by_role("slider", name=f"{slider} of translation B").press(value)
    save(page)
    all_done(page)
    stored = rater.payloads("A cup of tea.").values()
    second = {"score": 20, "scales": {"Fluency": 25, "Style": 0}}
    assert sorted(stored, key=lambda payload: payload["score"]) == [first, second]


def test_on_a_phone(site, open_page) -> None:
    settings = {"scales": SCALES}
    rater = begin_rating(site, open_page, [("Tea.", ["Tee."])], phone=True, protocol="da", settings=settings)
    page = rater.page
    for row, step in enumerate((75, 80, 60)):
        tap_at(page, row, step, 101)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    save(page)
    all_done(page)
    (payload,) = rater.payloads("Tea.").values()
    given = [payload["score"], *(payload["scales"][name] for name in SCALES)]
    assert given == pytest.approx([75, 80, 60], abs=1)
    page.get_by_role("button", name="Earlier items").click()
    expect(page.get_by_text(f"{given[0]} (Fluency {given[1]}, Style {given[2]})")).to_be_visible()
