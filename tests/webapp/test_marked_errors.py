"""Errors marked in a browser by mouse, touch and keyboard, in scripts of several kinds; nothing is lost."""

from typing import Any

import pytest
from limits import wait_until
from marked_text import click_on, drag_over, errors_are, passage, point_of, span, tap_on
from playwright.sync_api import expect
from rating_board import (
    all_done,
    draft_on,
    item_on,
    press_at,
    press_keys,
    save,
    small_targets,
    swipe_up,
    tap_at,
    wait_for_scores,
    wait_for_width,
)
from watched import at_rest

from creamtea.human.protocols.taxonomy import ESA
from creamtea.store.tables import Rating

pytestmark = pytest.mark.browser

# The emoji has five UTF-16 units and three code points.
# words: the units of the text; what a key goes over, by default words, in Japanese characters
TEXTS = {
    "ar": ("البيت 👩‍🔧 الكبير جميل جدا.", ["البيت", "👩\u200d🔧", "الكبير", "جميل", "جدا", "."]),
    "ja": ("昨日👩‍🔧は雨が降りました。", [*"昨日", "👩‍🔧", *"は雨が降りました。"]),
}
MARKED = {"ar": ("الكبير", "جميل", "جدا"), "ja": ("雨", "が", "昨")}
FAULT = "instructions fault"
WITH_SPECIAL_MARK = {"taxonomy": ESA.model_copy(update={"special_marks": [FAULT]}).model_dump(mode="json")}


def wanted(language: str, score: int, *more: dict[str, Any], text: str = "") -> dict[str, Any]:
    """A major error over two words, a minor one on a third, in their order in the text."""
    text = text or TEXTS[language][0]
    first, last, single = MARKED[language]
    two = text[text.index(first) : text.index(last) + len(last)]
    spans = [span(text, two, "major"), span(text, single, "minor")]
    return {"score": score, "spans": [*sorted(spans, key=lambda one: one["start"]), *more]}


@pytest.mark.parametrize("language", list(TEXTS))
def test_esa_by_mouse_and_by_keyboard(rate, language: str) -> None:
    text, units = TEXTS[language]
    items = [("by mouse", [text]), ("by keyboard", [text])]
    rater, page = rate(items, protocol="esa", languages=("en", language), slow_clock=True)
    first, last, single = MARKED[language]
    direction = passage(page).evaluate("one => getComputedStyle(one).direction")
    assert direction == ("rtl" if language == "ar" else "ltr")
    page.locator(".board .track").click(force=True)  # the score waits for the errors
    wait_for_scores(page, ["–"])
    expect(page.get_by_text("Mark the errors first")).to_be_visible()

    drag_over(page, first, last)
    page.locator(".board .error .major").last.click()
    click_on(page, single, single)  # one click begins, the other ends
    page.locator(".board .error.current .minor").click()
    press_at(page, 0, 67, steps=101)
    wait_for_scores(page, ["67"])
    assert passage(page).text_content() == text
    save(page)
    item_on(page, 2, 2)
    assert rater.payloads("by mouse") == {text: wanted(language, 67)}

    forward = "ArrowLeft" if language == "ar" else "ArrowRight"
    back = {"ArrowLeft": "ArrowRight", "ArrowRight": "ArrowLeft"}[forward]
    reached = -1
    for word, then in ((first, "Space"), (last, "Space 2"), (single, "Space 1")):  # a severity ends it, too
        way = units.index(word) - reached
        press_keys(page, f"{forward if way > 0 else back} " * abs(way) + then)
        reached += way
    press_keys(page, "End Space Enter")
    expect(page.get_by_text("Choose how severe the error is.")).to_be_visible()
    press_keys(page, "2 Enter 3 3")  # on to the score
    wait_for_scores(page, ["33"])
    page.keyboard.press("Enter")
    all_done(page)
    assert rater.payloads("by keyboard") == {text: wanted(language, 33, {"severity": "major"})}


def test_esa_by_touch(rate) -> None:
    text = TEXTS["ar"][0] + " كلمات" * 100
    fields = {"protocol": "esa", "languages": ("en", "ar"), "settings": WITH_SPECIAL_MARK}
    rater, page = rate([("tap", [text])], phone=True, **fields)
    x, y = point_of(page, "جميل")
    swipe_up(page, x, y)
    wait_until(lambda: point_of(page, "جميل")[1] < y - 50, what=lambda: "for the page to scroll")
    at_rest(page)
    expect(page.locator(".board .passage mark")).to_have_count(0)  # a finger that scrolls marks nothing
    first, last, single = MARKED["ar"]
    tap_on(page, last)
    expect(page.locator(".board .passage mark.begun")).to_have_count(1)
    tap_on(page, first)  # the end may come first
    page.locator(".board .error .major").tap()
    tap_on(page, single, single)
    page.locator(".board .error.current .minor").tap()
    for name, severity in ((f"[{FAULT}]", ".minor"), ("[missing]", ".major")):
        page.get_by_role("button", name=name, exact=True).first.tap()
        page.locator(f".board .error.current {severity}").tap()
    tap_at(page, 0, 20, steps=101)
    expect(page.get_by_role("button", name="Save")).to_be_enabled()
    wait_for_width(page, 390)
    assert small_targets(page) == []
    score = int(page.locator(".board output.value").text_content())
    page.get_by_role("button", name="Save").tap()
    all_done(page)
    behind: list[dict[str, Any]] = [{"severity": "major"}, {"severity": "minor", "special_mark": FAULT}]
    assert rater.payloads("tap") == {text: wanted("ar", score, *behind, text=text)}


def test_contrastive_esa_of_two_outputs(rate) -> None:
    one, other = "ein roter Becher", "die rote Tasse"
    rater, page = rate([("cup", [one, other, one])], protocol="cesa", slow_clock=True)
    at = page.locator(".board .passage .text").all_text_contents().index(one)
    expect(page.get_by_text("2 translations left to rate")).to_be_visible()
    page.keyboard.press("d")  # differences and marks go together
    drag_over(page, "roter", "Becher", row=at)
    press_keys(page, "1 Enter 6 0 Enter")  # to the other one
    expect(page.locator(".board .outputs > li").nth(1 - at)).to_have_class("chosen")
    press_keys(page, "e 1 0 0")
    wait_for_scores(page, ["60", "100"] if at == 0 else ["100", "60"])
    page.keyboard.press("Enter")
    all_done(page)
    assert rater.payloads("cup") == {
        one: {"score": 60, "spans": [span(one, "roter Becher", "minor")]},
        other: {"score": 100, "spans": []},
    }


def test_mqm_has_categories_and_overlapping_errors(rate) -> None:
    text = "Es regnete Katzen und Hunde, also blieben wir."
    rater, page = rate([("first", [text]), ("second", [text])], protocol="mqm")
    expect(page.get_by_role("slider")).to_have_count(0)
    drag_over(page, "Katzen", "Hunde")
    page.keyboard.press("2")
    expect(page.get_by_label("Category of the error “Katzen und Hunde”")).to_be_focused()
    # by arrows: letters typed into a list count as one word only while they come quickly
    place = "select => [...select.options].findIndex((option) => option.label === 'Mistranslation')"
    for _ in range(page.locator(".board .error.current select").evaluate(place)):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".board .passage")).to_be_focused()
    drag_over(page, "Hunde", "also")
    page.locator(".board .error.current .minor").click()
    page.locator(".board .error.current select").select_option(label="Grammar")
    expect(page.get_by_role("button", name="Save")).to_be_enabled()
    for word in ("Es", "regnete", "blieben"):
        click_on(page, word, word)
    expect(page.get_by_role("button", name="Save")).to_be_disabled()  # three have no severity
    errors_are(page, ["Es: ?", "regnete: ?", "Katzen und Hunde: major", "Hunde, also: minor", "blieben: ?"])
    click_on(page, "wir", "wir")
    expect(page.get_by_text("At most 5 errors can be marked.")).to_be_visible()
    for word in ("Es", "regnete", "blieben"):
        page.get_by_role("button", name=f"Delete the error “{word}”", exact=True).click()
    save(page)
    item_on(page, 2, 2)
    both = [
        span(text, "Katzen und Hunde", "major", category=["Accuracy", "Mistranslation"]),
        span(text, "Hunde, also", "minor", category=["Fluency", "Grammar"]),
    ]
    assert rater.payloads("first") == {text: {"spans": both}}
    page.keyboard.press("e")  # no errors
    save(page)
    all_done(page)
    assert rater.given(Rating.step) == [(0, 10_000 - 60), (1, 10_000)]


def test_errors_side_by_side_by_characters_and_taken_away(rate) -> None:
    text = "Haustür und Tor"
    rater, page = rate([("door", [text])], protocol="esa", slow_clock=True)
    press_keys(page, "ArrowRight Space")
    page.mouse.move(*point_of(page, "Tor"))  # what a key has begun follows the mouse, too
    expect(page.locator(".board .passage mark.begun")).to_have_text(["Haustür und ", "Tor"])
    press_keys(page, "Escape Home Shift+ArrowRight Space" + " Shift+ArrowRight" * 3 + " Space 1")
    errors_are(page, ["Haus: minor"])
    drag_over(page, "Haustür", "und")
    expect(page.get_by_text("Errors must not overlap")).to_be_visible()
    errors_are(page, ["Haus: minor"])
    page.get_by_role("button", name="Mark characters").click()
    drag_over(page, "t", "r")
    errors_are(page, ["Haus: minor", "tür: ?"])
    press_keys(page, "2 ArrowUp Delete")
    errors_are(page, ["tür: major"])
    # digits after a button of the scale are a value, and nothing there deletes an error
    page.get_by_role("button", name="33: Some meaning").click()
    wait_for_scores(page, ["33"])
    page.keyboard.type("21")
    wait_for_scores(page, ["21"])
    page.locator(".board .more").click()
    wait_for_scores(page, ["22"])
    page.keyboard.press("Backspace")
    errors_are(page, ["tür: major"])
    page.locator(".board .passage").focus()
    press_keys(page, "ArrowDown Backspace")
    errors_are(page, [])
    page.get_by_role("button", name="No errors").click()
    page.keyboard.press("Control+Enter")
    all_done(page)
    assert rater.payloads("door") == {text: {"score": 22, "spans": []}}


# ---------------------------------------------------------------- errors marked beforehand


def test_errors_marked_beforehand_are_kept_changed_deleted_and_added(rate) -> None:
    text = "die rote Tasse und der Topf"
    proposed = [span(text, "rote", "minor"), span(text, "Topf", "major"), {"severity": "minor"}]
    items = [("again", [text]), ("more", [text])]
    rater, page = rate(items, protocol="esa", item_proposals={"0": proposed}, slow_clock=True)
    errors_are(page, ["rote: minor", "Topf: major", "[missing]: minor"])
    page.locator(".board .track").click(force=True)  # nobody has looked at them yet
    wait_for_scores(page, ["–"])
    page.get_by_role("button", name="No more errors").click()
    press_keys(page, "9 0 Enter")
    item_on(page, 2, 2)
    kept = [{**one, "proposed": number} for number, one in enumerate(proposed)]
    assert rater.payloads("again") == {text: {"score": 90, "spans": kept}}
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
    all_done(page)
    spans = rater.payloads("more")[text]["spans"]
    assert spans == [span(text, "Tasse", "major"), {**kept[1], "severity": "minor"}, kept[2]]


def test_a_practice_item_says_which_errors_were_expected(rate) -> None:
    text = "Good mourning, dear"
    expected = [
        {"start": [5, 5], "end": [11, 12], "severity": "major"},
        {"severity": "minor"},
        {"severity": "minor", "special_mark": FAULT},
    ]
    guidance = {"steps": {"0": [0, 60]}, "spans": {"0": expected}, "explanation": "It mourns."}
    fields = {"item_kind": "tutorial", "item_guidance": guidance, "settings": WITH_SPECIAL_MARK}
    _, page = rate([("Guten Morgen, mein Lieber", [text])], protocol="esa", **fields)
    click_on(page, "mourning", "mourning")
    press_keys(page, "2 End ArrowRight Space 1")  # over [missing] to the special mark
    press_at(page, 0, 90, steps=101)
    save(page)
    expect(page.get_by_role("heading", name="Not quite as expected")).to_have_count(1)
    rows = page.get_by_role("list", name="Expected errors").get_by_role("listitem")
    expect(rows).to_have_text(["✓ “mourning”, major", "✗ [missing], minor", f"✓ [{FAULT}], minor"])
    expect(page.locator(".board .verdict:visible")).to_have_text(["✗ expected 0 to 60"])
    expect(page.get_by_text("It mourns.")).to_have_count(1)
    at_rest(page)
    drag_over(page, "Good", "Good")
    errors_are(page, ["mourning: major", f"[{FAULT}]: minor"])  # what is saved stays
