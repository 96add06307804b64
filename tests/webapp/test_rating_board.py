"""The boards of the protocols in a real browser: by keyboard, by touch, texts as they are."""

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from marked_text import click_on, errors_are
from playwright.sync_api import expect
from rating_board import (
    FOUR,
    all_done,
    at_rest,
    draft_on,
    item_on,
    item_or_end,
    own_campaign,
    press_all,
    press_at,
    save,
    serious,
    shown_source,
    shown_texts,
    stored,
    tap_at,
    wait_for_scores,
    wait_for_width,
)
from sqlalchemy import select
from table_rows import all_of

from creamtea.store.tables import Assignment, Item, Rating

pytestmark = pytest.mark.browser

THREE = [(f"source {number}", [f"{text} {number}" for text in FOUR]) for number in range(3)]
LONG = "Donaudampfschifffahrtsgesellschaft " * 28 + "x" * 20  # 1,000 characters
HOSTILE = [
    ("<script>document.title='owned'</script>", ["<b>fett</b>", "&lt;b&gt;", "<img src=x onerror=x>", "<"]),
    ("$x^2$ and *a* :material/home:", ["$x$ kostet $5$", "*a* **b**", "# kein Titel", "[a](http://b)"]),
    ("مرحبا بالعالم", ["مرحبا", "שלום עולם", "abc مرحبا 123", "(empty)"]),
    ("你好，世界", ["你好", "世界", "", LONG]),
]  # fmt: skip


def test_items_by_keyboard_only(site, open_page) -> None:
    own_campaign(site.database, "pangolin-keys", THREE)
    link, rater_id = site.rater_link("pangolin-keys", "keyboard")
    page = open_page(link, slow_clock=True)
    ways = [  # keys of a whole item, and what they score; Enter goes to the next output and at the end saves
        ("4 Enter 3 . 2 Enter ArrowRight Enter End PageDown Enter", [15, 11, 0, 20]),
        ("Tab Tab 6 Shift+Digit4 5 Shift+Digit2 2 Shift+Digit3 1 Control+Enter", [25, 5, 0, 20]),
        ("Tab Tab Home Enter End Enter ArrowLeft Enter 2 PageUp ArrowUp Enter", [0, 25, 25, 11]),
    ]
    for number, (keys, steps) in enumerate(ways):
        item_on(page, number + 1, 3)
        source, texts = shown_source(page), shown_texts(page)
        wait_for_scores(page, ["–"] * 4)
        for key in keys.split():
            page.keyboard.press(key)
        item_or_end(page, number + 2, 3)
        assert stored(site.database, rater_id, source) == dict(zip(texts, steps, strict=True))


def test_items_by_touch_on_a_phone(site, open_page) -> None:
    own_campaign(site.database, "pangolin-touch", THREE[:2])
    link, rater_id = site.rater_link("pangolin-touch", "phone")
    page = open_page(link, phone=True)
    for number in range(2):
        item_on(page, number + 1, 2)
        source, texts = shown_source(page), shown_texts(page)
        if number:
            expect(page.locator(".board .count")).to_be_in_viewport()  # a new item begins at its top
        steps = [(number + 7 * row) % 26 for row in range(4)]
        for row, step in enumerate(steps):
            tap_at(page, row, step)
        page.locator(".board .less").nth(3).tap()
        steps[3] = max(0, steps[3] - 1)
        if number == 0:
            wait_for_width(page, 390)
        page.get_by_role("button", name="Save").tap()
        item_or_end(page, number + 2, 2)
        assert stored(site.database, rater_id, source) == dict(zip(texts, steps, strict=True))


def test_a_finger_that_scrolls_sets_nothing_and_targets_are_large(site, open_page) -> None:
    own_campaign(site.database, "pangolin-scroll", THREE[:1])
    link, _ = site.rater_link("pangolin-scroll", "scroll")
    page = open_page(link, phone=True)
    item_on(page, 1)
    track = page.locator(".board .track").nth(1)
    track.tap(trial=True)  # waits until it is where it stays
    box = track.bounding_box()
    touch = page.context.new_cdp_session(page)
    x, y = box["x"] + box["width"] / 2, box["y"] + 17
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for way in range(20, 220, 20):
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - way}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    wait_for_scores(page, ["–"] * 4)
    sizes = page.locator(".board button:visible, .board .track:visible, .board summary:visible").evaluate_all(
        "all => all.map((one) => [one.textContent, one.getBoundingClientRect().height])"
    )
    assert len(sizes) > 12
    assert [one for one in sizes if one[1] < 44] == []


def test_texts_are_shown_as_they_are(site, open_page) -> None:
    own_campaign(site.database, "pangolin-texts", HOSTILE, languages=("ar", "zh_Hans"))
    link, _ = site.rater_link("pangolin-texts", "texts")
    page = open_page(link)
    for number, (source, outputs) in enumerate(HOSTILE):
        item_on(page, number + 1)
        assert shown_source(page) == source
        assert sorted(shown_texts(page)) == sorted(outputs)
        assert page.locator(".board .text *").count() == 0
        assert page.locator(".board .source > .text").get_attribute("lang") == "ar"
        assert page.locator(".board .outputs .text").first.get_attribute("lang") == "zh-Hans"
        page.keyboard.press("d")
        assert sorted(shown_texts(page)) == sorted(outputs)
        assert page.locator(".board .text :not(mark)").count() == 0
        page.keyboard.press("d")
        assert page.locator(".board .text mark").count() == 0
        if source.startswith("مرحبا"):
            assert page.locator(".board .source > .text").evaluate(DIRECTION) == "rtl"
            assert page.get_by_text("שלום עולם", exact=True).evaluate(DIRECTION) == "rtl"
            assert page.locator(".board .nothing:visible").count() == 0
        if "" in outputs:
            expect(page.locator(".board .nothing:visible")).to_have_text(["(empty)"])
            empty = page.locator(".board li", has=page.locator(".nothing:visible"))
            assert empty.locator(".text").text_content() == ""
            assert page.get_by_text(LONG, exact=True).evaluate("one => one.scrollWidth <= one.clientWidth")
            wait_for_width(page, 1280)
        press_all(page, [5] * 4)
        save(page)
    all_done(page)
    assert page.title() == "Rating"


DIRECTION = "one => getComputedStyle(one).direction"


def test_differences_are_marked_the_same_way_for_every_text(site, open_page) -> None:
    items = [("words", ["der rote Becher", "der blaue Becher", "der blaue Topf", " "])]
    own_campaign(site.database, "pangolin-words", items)
    own_campaign(
        site.database, "pangolin-signs", [("signs", ["你好世界", "你们世界"])], languages=("en", "zh")
    )
    page = open_page(site.rater_link("pangolin-words", "words")[0])
    item_on(page, 1)
    page.get_by_role("button", name="Show differences").click()
    assert marks(page) == {
        "der rote Becher": ["only rote", "some Becher"],
        "der blaue Becher": ["some blaue Becher"],
        "der blaue Topf": ["some blaue", "only Topf"],
        " ": [],
    }
    page = open_page(site.rater_link("pangolin-signs", "signs")[0])
    item_on(page, 1)
    page.keyboard.press("d")
    assert marks(page) == {"你好世界": ["only 好"], "你们世界": ["only 们"]}


def marks(page: Any) -> dict[str, list[str]]:
    return {
        text.text_content(): text.locator("mark").evaluate_all(
            "all => all.map((mark) => `${mark.className} ${mark.textContent}`)"
        )
        for text in page.locator(".board .outputs .text").all()
    }


def test_one_output_on_a_scale_to_a_hundred(site, open_page) -> None:
    items = [("eins", ["one"]), ("zwei", ["two", "two"]), ("drei", ["three"])]
    own_campaign(site.database, "pangolin-da-sqm", items, protocol="da-sqm", item_context=["davor"])
    link, rater_id = site.rater_link("pangolin-da-sqm", "da")
    page = open_page(link, slow_clock=True)
    item_on(page, 1, 3)
    expect(page.get_by_role("slider")).to_have_count(1)
    expect(page.locator(".board [aria-valuenow]")).to_have_count(0)
    expect(page.locator(".board .context")).to_have_text("davor")
    expect(page.get_by_role("button", name="Show differences")).to_have_count(0)
    # no point stands out before one is chosen, for who came by keys either
    page.keyboard.press("Shift")
    page.locator(".board .source").focus()
    expect(page.locator(".board .points li").first).to_have_css("box-shadow", "none")
    page.keyboard.type("75")
    wait_for_scores(page, ["75"])
    page.keyboard.press("Enter")
    item_on(page, 2, 3)
    page.get_by_text("67: Most meaning preserved and few grammar mistakes").click()
    wait_for_scores(page, ["67"])
    save(page)
    item_on(page, 3, 3)
    for key in ("1", "0", "0", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    all_done(page)
    kept = [stored_systems(site, rater_id, source) for source, _ in items]
    assert kept == [[75], [67, 67], [99]]


def stored_systems(site: Any, rater_id: int, source: str) -> list[int]:
    return list(
        all_of(
            site.database,
            select(Rating.step)
            .join(Assignment, Assignment.id == Rating.assignment_id)
            .join(Item, Item.id == Assignment.item_id)
            .where(Assignment.rater_id == rater_id, Item.source == source)
            .order_by(Rating.system),
        )
    )


def test_a_preference_by_keys_and_by_buttons(site, open_page) -> None:
    items = [(f"source {number}", [f"links {number}", f"rechts {number}"]) for number in range(4)]
    own_campaign(site.database, "pangolin-two", items, protocol="preference")
    link, rater_id = site.rater_link("pangolin-two", "two")
    page = open_page(link)
    ways = [("ArrowLeft", [2, 0]), ("ArrowDown", [1, 1]), ("ArrowRight", [0, 2]), ("B is better", [0, 2])]
    for number, (way, steps) in enumerate(ways):
        item_on(page, number + 1, 4)
        source, texts = shown_source(page), shown_texts(page)
        expect(page.locator(".board [role=radio][aria-checked=true]")).to_have_count(0)
        expect(page.get_by_role("button", name="Save")).to_be_disabled()
        if way.startswith("Arrow"):
            page.keyboard.press(way)
            page.keyboard.press("Enter")
        else:
            page.get_by_role("radio", name=way).click()
            save(page)
        item_or_end(page, number + 2, 4)
        assert stored(site.database, rater_id, source) == dict(zip(texts, steps, strict=True))


# ---------------------------------------------------------------- what a key means where it is pressed


# a key as a layout with digits behind Shift sends it; Playwright types on an American one
SEND = """([key, code]) => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    const more = { bubbles: true, composed: true, cancelable: true };
    one.dispatchEvent(new KeyboardEvent("keydown", { key, code, shiftKey: true, ...more }));
}"""


def test_digits_after_a_button_of_the_scale_are_a_value(site, open_page) -> None:
    own_campaign(site.database, "quokka-keys", [("s", ["Das Haus ist rot"])], protocol="esa")
    page = open_page(site.rater_link("quokka-keys", "one")[0], slow_clock=True)
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


def test_digits_behind_shift_or_beside_the_instructions_and_keys_that_scroll(site, open_page) -> None:
    items = [("long " * 3000, ["ein Haus"])]
    own_campaign(site.database, "quokka-shift", items, protocol="da", instructions="# Read\n\nTwice.")
    page = open_page(site.rater_link("quokka-shift", "one")[0], slow_clock=True)
    item_on(page, 1, 1)
    for key in ("PageDown", "ArrowDown", "End"):
        page.keyboard.press(key)
    wait_for_scores(page, ["–"])
    for digit in "75":
        page.evaluate(SEND, [digit, f"Digit{digit}"])
    wait_for_scores(page, ["75"])
    page.keyboard.press("ArrowDown")  # a value that is there is changed from anywhere
    wait_for_scores(page, ["74"])
    page.get_by_text("Instructions", exact=True).click()  # which then have the focus
    expect(page.get_by_text("Twice.")).to_be_visible()
    page.keyboard.type("31")
    wait_for_scores(page, ["31"])


def test_the_time_of_an_item_goes_on_after_the_earlier_ones_and_a_reload(site, open_page) -> None:
    items = [(f"source {number}", [f"{text} {number}" for text in FOUR[:2]]) for number in range(3)]
    own_campaign(site.database, "quokka-time", items)
    link, rater = site.rater_link("quokka-time", "one")
    page = open_page(link)
    item_on(page, 1)
    press_all(page, [8] * 2)
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
    assert second.active_ms >= 1500


# ---------------------------------------------------------------- post-editing


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
    own_campaign(site.database, "pangolin-edit", [*TWO, ("Two.", ["Zwei."])], protocol="post-edit")
    link, rater_id = site.rater_link("pangolin-edit", "editor")
    page = open_page(link)
    item_on(page, 1, 3)
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    field(page).fill("Er gab auf.")
    draft_on(page, "saved")
    page.reload()
    item_on(page, 1, 3)
    expect(field(page)).to_have_value("Er gab auf.")
    assert serious(page) == []
    page.get_by_role("button", name="Undo all changes").click()
    expect(field(page)).to_have_value("Er gab es auf.")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    field(page).fill("Er gab <b>auf</b>.")
    save(page)
    item_on(page, 2, 3)
    page.get_by_role("button", name="Nothing to change").click()
    save(page)
    item_on(page, 3, 3)
    page.keyboard.press("=")  # the same by keys
    page.keyboard.press("Enter")
    all_done(page)
    assert texts(site, rater_id) == {
        "He gave up.": ("Er gab <b>auf</b>.", 333),  # two edits, three words
        "He lost his temper.": ("Er verlor seine Geduld.", 1000),
        "Two.": ("Zwei.", 1000),
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
    all_done(page)
    assert texts(site, rater_id) == {"Good morning": ("صباح الخير", 500)}
