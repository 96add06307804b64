"""Errors marked in a browser by mouse, touch and keyboard, in scripts of several kinds; nothing is lost."""

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from limits import wait_until
from marked_text import click_on, drag_over, errors_are, passage, payloads, point_of, span, tap_on
from playwright.sync_api import expect
from rating_board import (
    all_done,
    draft_on,
    item_on,
    own_campaign,
    press_at,
    save,
    stored,
    tap_at,
    wait_for_scores,
    wait_for_width,
)
from watched import at_rest

from creamtea.human.protocols.taxonomy import ESA

pytestmark = pytest.mark.browser

# The emoji has five UTF-16 units and three code points.
# words: the units of the text; what a key goes over, by default words, in Japanese characters
TEXTS = {
    "ar": ("البيت 👩‍🔧 الكبير جميل جدا.", ["البيت", "👩\u200d🔧", "الكبير", "جميل", "جدا", "."]),
    "ja": ("昨日👩‍🔧は雨が降りました。", [*"昨日", "👩‍🔧", *"は雨が降りました。"]),
}
MARKED = {"ar": ("الكبير", "جميل", "جدا"), "ja": ("雨", "が", "昨")}
SOURCES = ["by mouse", "by keyboard"]
FAULT = "instructions fault"
WITH_SPECIAL_MARK = {"taxonomy": ESA.model_copy(update={"special_marks": [FAULT]}).model_dump(mode="json")}


def esa_campaign(site: Any, language: str) -> str:
    name = f"pangolin-esa-{language}"
    text, _ = TEXTS[language]
    items = [(source, [text]) for source in SOURCES]
    own_campaign(site.database, name, items, protocol="esa", languages=("en", language))
    return name


def wanted(language: str, score: int, *more: dict[str, Any]) -> dict[str, Any]:
    """A major error over two words, a minor one on a third, in their order in the text."""
    text, _ = TEXTS[language]
    first, last, single = MARKED[language]
    two = text[text.index(first) : text.index(last) + len(last)]
    spans = [span(text, two, "major"), span(text, single, "minor")]
    return {"score": score, "spans": [*sorted(spans, key=lambda one: one["start"]), *more]}


@pytest.mark.parametrize("language", list(TEXTS))
def test_esa_by_mouse_and_by_keyboard(site, open_page, language: str) -> None:
    name = esa_campaign(site, language)
    link, rater_id = site.rater_link(name, "desk")
    page = open_page(link, slow_clock=True)
    text, units = TEXTS[language]
    first, last, single = MARKED[language]
    item_on(page, 1, 2)
    direction = passage(page).evaluate("one => getComputedStyle(one).direction")
    assert direction == ("rtl" if language == "ar" else "ltr")
    sources = [page.locator(".board .source > .text").text_content()]
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
    assert payloads(site.database, rater_id, sources[0]) == {text: wanted(language, 67)}

    forward = "ArrowLeft" if language == "ar" else "ArrowRight"
    sources.append(page.locator(".board .source > .text").text_content())
    reached = -1

    def go_to(word: str) -> None:
        nonlocal reached
        at = units.index(word)
        way = forward if at > reached else {"ArrowLeft": "ArrowRight", "ArrowRight": "ArrowLeft"}[forward]
        for _ in range(abs(at - reached)):
            page.keyboard.press(way)
        reached = at

    go_to(first)
    page.keyboard.press("Space")
    go_to(last)
    page.keyboard.press("Space")
    page.keyboard.press("2")
    go_to(single)
    page.keyboard.press("Space")
    page.keyboard.press("1")  # ends it, too
    page.keyboard.press("End")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Choose how severe the error is.")).to_be_visible()
    page.keyboard.press("2")
    page.keyboard.press("Enter")  # on to the score
    page.keyboard.type("33")
    wait_for_scores(page, ["33"])
    page.keyboard.press("Enter")
    all_done(page)
    assert payloads(site.database, rater_id, sources[1]) == {
        text: wanted(language, 33, {"severity": "major"})
    }


def test_esa_by_touch(site, open_page) -> None:
    language, name = "ar", "pangolin-esa-touch"
    text, _ = TEXTS[language]
    own_campaign(
        site.database,
        name,
        [("tap", [text])],
        protocol="esa",
        languages=("en", language),
        settings=WITH_SPECIAL_MARK,
    )
    link, rater_id = site.rater_link(name, "phone")
    page = open_page(link, phone=True)
    item_on(page, 1, 1)
    first, last, single = MARKED[language]
    tap_on(page, last, first)  # the end may come first
    page.locator(".board .error .major").tap()
    tap_on(page, single, single)
    page.locator(".board .error.current .minor").tap()
    for name, severity in ((f"[{FAULT}]", ".minor"), ("[missing]", ".major")):
        page.get_by_role("button", name=name, exact=True).first.tap()
        page.locator(f".board .error.current {severity}").tap()
    tap_at(page, 0, 20, steps=101)
    expect(page.get_by_role("button", name="Save")).to_be_enabled()
    wait_for_width(page, 390)
    small = page.locator(".board button:visible, .board summary:visible").evaluate_all(
        "all => all.filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.textContent)"
    )
    assert small == []
    score = int(page.locator(".board output.value").text_content())
    page.get_by_role("button", name="Save").tap()
    all_done(page)
    stored_now = payloads(site.database, rater_id, "tap")
    behind: list[dict[str, Any]] = [{"severity": "major"}, {"severity": "minor", "special_mark": FAULT}]
    assert stored_now == {text: wanted(language, score, *behind)}


def test_contrastive_esa_of_two_outputs(site, open_page) -> None:
    one, other = "ein roter Becher", "die rote Tasse"
    own_campaign(site.database, "pangolin-cesa", [("cup", [one, other, one])] * 1, protocol="cesa")
    link, rater_id = site.rater_link("pangolin-cesa", "both")
    page = open_page(link, slow_clock=True)
    item_on(page, 1, 1)
    rows = [page.locator(".board .passage .text").nth(row).text_content() for row in range(2)]
    at = rows.index(one)
    expect(page.get_by_text("2 translations left to rate")).to_be_visible()
    page.keyboard.press("d")  # differences and marks go together
    drag_over(page, "roter", "Becher", row=at)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.keyboard.type("60")
    page.keyboard.press("Enter")  # to the other one
    expect(page.locator(".board .outputs > li").nth(1 - at)).to_have_class("chosen")
    page.keyboard.press("e")
    page.keyboard.type("100")
    wait_for_scores(page, ["60", "100"] if at == 0 else ["100", "60"])
    page.keyboard.press("Enter")
    all_done(page)
    assert payloads(site.database, rater_id, "cup") == {
        one: {"score": 60, "spans": [span(one, "roter Becher", "minor")]},
        other: {"score": 100, "spans": []},
    }


def test_mqm_has_categories_and_overlapping_errors(site, open_page) -> None:
    text = "Es regnete Katzen und Hunde, also blieben wir."
    items = [(source, [text]) for source in ("first", "second")]
    own_campaign(site.database, "pangolin-mqm", items, protocol="mqm")
    link, rater_id = site.rater_link("pangolin-mqm", "names")
    page = open_page(link)
    item_on(page, 1, 2)
    source = page.locator(".board .source > .text").text_content()
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
    assert payloads(site.database, rater_id, source) == {text: {"spans": both}}
    assert stored(site.database, rater_id, source) == {text: 10_000 - 60}
    (other,) = {"first", "second"} - {source}
    page.keyboard.press("e")  # no errors
    save(page)
    all_done(page)
    assert stored(site.database, rater_id, other) == {text: 10_000}


def test_errors_side_by_side_by_characters_and_taken_away(site, open_page) -> None:
    text = "Haustür und Tor"
    own_campaign(site.database, "pangolin-parts", [("door", [text])], protocol="esa")
    link, rater_id = site.rater_link("pangolin-parts", "parts")
    page = open_page(link, slow_clock=True)
    item_on(page, 1, 1)
    for key in ("ArrowRight", "Space"):
        page.keyboard.press(key)
    page.mouse.move(*point_of(page, "Tor"))  # what a key has begun follows the mouse, too
    expect(page.locator(".board .passage mark.begun")).to_have_text(["Haustür und ", "Tor"])
    for key in ("Escape", "Home"):
        page.keyboard.press(key)
    for key in ("Shift+ArrowRight", "Space", *["Shift+ArrowRight"] * 3, "Space", "1"):
        page.keyboard.press(key)
    errors_are(page, ["Haus: minor"])
    drag_over(page, "Haustür", "und")
    expect(page.get_by_text("Errors must not overlap")).to_be_visible()
    errors_are(page, ["Haus: minor"])
    page.get_by_role("button", name="Mark characters").click()
    drag_over(page, "t", "r")
    errors_are(page, ["Haus: minor", "tür: ?"])
    page.keyboard.press("2")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Delete")
    errors_are(page, ["tür: major"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Backspace")
    errors_are(page, [])
    page.get_by_role("button", name="No errors").click()
    page.keyboard.type("100")
    page.keyboard.press("Control+Enter")
    all_done(page)
    assert payloads(site.database, rater_id, "door") == {text: {"score": 100, "spans": []}}


def test_a_finger_that_scrolls_marks_nothing(site, open_page) -> None:
    own_campaign(site.database, "pangolin-swipe", [("long", ["viele Worte " * 60])], protocol="esa")
    link, _ = site.rater_link("pangolin-swipe", "swipe")
    page = open_page(link, phone=True)
    item_on(page, 1, 1)
    at_rest(page)
    x, y = point_of(page, "Worte")
    touch = page.context.new_cdp_session(page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for way in range(20, 140, 20):
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - way}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    wait_until(lambda: point_of(page, "Worte")[1] < y - 50, what=lambda: "for the page to scroll")
    at_rest(page)
    expect(page.locator(".board .passage mark")).to_have_count(0)
    tap_on(page, "Worte")
    expect(page.locator(".board .passage mark.begun")).to_have_count(1)


# ---------------------------------------------------------------- errors marked beforehand


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
    page = open_page(link, slow_clock=True)
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
    all_done(page)
    spans = payloads(site.database, rater_id, source)[text]["spans"]
    assert spans == [span(text, "Tasse", "major"), {**kept[1], "severity": "minor"}, kept[2]]


def test_a_practice_item_says_which_errors_were_expected(site, open_page) -> None:
    text = "Good mourning, dear"
    expected = [
        {"start": [5, 5], "end": [11, 12], "severity": "major"},
        {"severity": "minor"},
        {"severity": "minor", "special_mark": FAULT},
    ]
    guidance = {"steps": {"0": [0, 60]}, "spans": {"0": expected}, "explanation": "It mourns."}
    own_campaign(
        site.database,
        "pangolin-practice",
        [("Guten Morgen, mein Lieber", [text])],
        protocol="esa",
        item_kind="tutorial",
        item_guidance=guidance,
        settings=WITH_SPECIAL_MARK,
    )
    link, _ = site.rater_link("pangolin-practice", "learns")
    page = open_page(link)
    item_on(page, 1, 1)
    click_on(page, "mourning", "mourning")
    page.keyboard.press("2")
    for key in ("End", "ArrowRight", "Space", "1"):  # over [missing] to the special mark
        page.keyboard.press(key)
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
