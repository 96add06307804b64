"""The boards of the protocols in a real browser: by keyboard, by touch, texts as they are."""

from typing import Any

import pytest
from playwright.sync_api import expect
from rating_board import (
    FOUR,
    all_done,
    draft_on,
    item_on,
    item_or_end,
    press_all,
    press_keys,
    save,
    serious,
    shown_texts,
    small_targets,
    swipe_up,
    tap_at,
    wait_for_scores,
    wait_for_width,
)

from creamtea.store.tables import Rating

pytestmark = pytest.mark.browser

LONG = "Donaudampfschifffahrtsgesellschaft " * 28 + "x" * 20  # 1,000 characters
HOSTILE = [
    ("<script>document.title='owned'</script>", ["<b>fett</b>", "&lt;b&gt;", "<img src=x onerror=x>", "<"]),
    ("$x^2$ and *a* :material/home:", ["$x$ kostet $5$", "*a* **b**", "# kein Titel", "[a](http://b)"]),
    ("مرحبا بالعالم", ["مرحبا", "שלום עולם", "abc مرحبا 123", "(empty)"]),
    ("你好，世界", ["你好世界", "你们世界", "", LONG]),
]  # fmt: skip
DIRECTION = "one => getComputedStyle(one).direction"


def marks(page: Any) -> dict[str, list[str]]:
    """The marked differences of each output: from all others ("only") or from some."""
    return {
        text.text_content(): text.locator("mark").evaluate_all(
            "all => all.map((mark) => `${mark.className} ${mark.textContent}`)"
        )
        for text in page.locator(".board .outputs .text").all()
    }


def test_items_by_keyboard_only(rate) -> None:
    items = [(f"source {number}", FOUR) for number in range(4)]
    rater, page = rate(items, slow_clock=True)
    page.keyboard.press("d")
    assert marks(page) == {
        "ein roter Becher": ["only ein roter Becher"],
        "die rote Tasse": ["only die", "some rote Tasse"],
        "eine rote Tasse": ["only eine", "some rote Tasse"],
        "rot Tasse": ["only rot", "some Tasse"],
    }
    ways = [  # keys of a whole item, and what they score; Enter goes to the next output and at the end saves
        ("4 Enter 3 . 2 Enter ArrowRight Enter End PageDown Enter", [15, 11, 0, 20]),
        ("Tab Tab 6 Shift+Digit4 5 Shift+Digit2 2 Shift+Digit3 1 Control+Enter", [25, 5, 0, 20]),
        ("Tab Tab Home Enter End Enter ArrowLeft Enter 2 PageUp ArrowUp Enter", [0, 25, 25, 11]),
        ("Enter 4 Enter 3 Enter 2 Enter 1 Enter", [0, 15, 10, 5]),  # what is left out comes at the end
    ]
    for number, (keys, steps) in enumerate(ways):
        item_on(page, number + 1, 4)
        texts = shown_texts(page)
        wait_for_scores(page, ["–"] * 4)
        press_keys(page, keys)
        item_or_end(page, number + 2, 4)
        assert rater.stored(items[number][0]) == dict(zip(texts, steps, strict=True))


# Keeps the element and the data of the board that is shown; `draw` calls its renderer as Streamlit does.
KEEP_BOARD = """{
    const { set } = WeakMap.prototype;
    WeakMap.prototype.set = function (key, value) {
        if (value?.assignment !== undefined) window.kept = [key, value.data];
        return set.call(this, key, value);
    };
    window.draw = async () => {
        const names = performance.getEntriesByType("resource").map(({ name }) => name);
        const scripts = names.filter((name) => /creamtea_board\\w*-\\w+\\.js/.test(name));
        const { default: render } = await import(scripts.at(-1));
        const [parentElement, data] = window.kept;
        return render({ parentElement, data, setStateValue() {}, setTriggerValue() {} });
    };
}"""


@pytest.mark.parametrize(
    "calls",
    [
        "async () => { const leave = await draw(); await draw(); leave(); }",
        "async () => { const leave = await draw(); leave(); await draw(); }",
    ],
    ids=["after", "before"],
)
def test_a_call_that_was_overtaken_leaves_the_board_its_keys(rate, calls: str) -> None:
    """Streamlit cleans up after it, after the newer call or before it: two changes of the theme, say."""
    _, page = rate([("source", FOUR)], before=lambda page: page.add_init_script(KEEP_BOARD))
    page.evaluate(calls)
    press_keys(page, "4")
    expect(page.locator(".board output.value").first).not_to_have_text("–", timeout=5_000)


def test_items_by_touch_on_a_phone(rate) -> None:
    items = [("source", FOUR), ("long " * 400, FOUR)]
    rater, page = rate(items, phone=True)
    track = page.locator(".board .track").nth(1)
    track.tap(trial=True)  # waits until it is where it stays
    box = track.bounding_box()
    swipe_up(page, box["x"] + box["width"] / 2, box["y"] + 17)
    wait_for_scores(page, ["–"] * 4)  # a finger that scrolls sets nothing
    assert small_targets(page) == []
    wait_for_width(page, 390)
    source, skip = page.locator(".board .source"), page.get_by_role("button", name="Skip this item")
    for number in range(2):
        item_on(page, number + 1, 2)
        texts = shown_texts(page)
        if number:
            expect(page.locator(".board .count")).to_be_in_viewport()  # a new item begins at its top
        steps = [(number + 7 * row) % 26 for row in range(4)]
        for row, step in enumerate(steps):
            tap_at(page, row, step)
        page.locator(".board .less").nth(3).tap()
        steps[3] = max(0, steps[3] - 1)
        skip.scroll_into_view_if_needed()
        if number:
            expect(source).not_to_be_in_viewport()  # it would leave the outputs no room
        else:
            expect(source).to_be_in_viewport(ratio=1)
        page.get_by_role("button", name="Save").tap()
        item_or_end(page, number + 2, 2)
        assert rater.stored(items[number][0]) == dict(zip(texts, steps, strict=True))


def test_texts_are_shown_as_they_are(rate) -> None:
    _, page = rate(HOSTILE, languages=("ar", "zh_Hans"))
    for number, (source, outputs) in enumerate(HOSTILE):
        item_on(page, number + 1)
        assert page.locator(".board .source > .text").text_content() == source
        assert sorted(shown_texts(page)) == sorted(outputs)
        assert page.locator(".board .text *").count() == 0
        assert page.locator(".board .source > .text").get_attribute("lang") == "ar"
        assert page.locator(".board .outputs .text").first.get_attribute("lang") == "zh-Hans"
        page.keyboard.press("d")
        assert sorted(shown_texts(page)) == sorted(outputs)
        assert page.locator(".board .text :not(mark)").count() == 0
        if "" in outputs:  # by characters, and an empty text counts for nothing
            marked = marks(page)
            assert marked["你好世界"] == ["some 你", "only 好", "some 世界"]
            assert marked["你们世界"] == ["some 你", "only 们", "some 世界"]
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


# a key as a layout with digits behind Shift sends it; Playwright types on an American one
SEND = """([key, code]) => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    const more = { bubbles: true, composed: true, cancelable: true };
    one.dispatchEvent(new KeyboardEvent("keydown", { key, code, shiftKey: true, ...more }));
}"""


def test_one_output_on_a_scale_to_a_hundred(rate) -> None:
    items = [("long " * 3000, ["one"]), ("zwei", ["two", "two"]), ("drei", ["three"])]
    fields = {"item_context": ["davor"], "instructions": "# Read\n\nTwice."}
    rater, page = rate(items, protocol="da-sqm", slow_clock=True, **fields)
    expect(page.get_by_role("slider")).to_have_count(1)
    expect(page.locator(".board [aria-valuenow]")).to_have_count(0)
    expect(page.locator(".board .context")).to_have_text("davor")
    expect(page.get_by_role("button", name="Show differences")).to_have_count(0)
    # no point stands out before one is chosen, for who came by keys either
    page.keyboard.press("Shift")
    page.locator(".board .source").focus()
    expect(page.locator(".board .points li").first).to_have_css("box-shadow", "none")
    press_keys(page, "PageDown ArrowDown End")  # which scroll
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
    save(page)
    item_on(page, 2, 3)
    page.get_by_text("67: Most meaning preserved and few grammar mistakes").click()
    wait_for_scores(page, ["67"])
    save(page)
    item_on(page, 3, 3)
    press_keys(page, "1 0 0 ArrowDown Enter")
    all_done(page)
    assert rater.given(Rating.step) == [(0, 31), (1, 67), (1, 67), (2, 99)]


def test_a_preference_by_keys_and_by_buttons(rate) -> None:
    items = [(f"source {number}", [f"links {number}", f"rechts {number}"]) for number in range(4)]
    rater, page = rate(items, protocol="preference")
    ways = [("ArrowLeft", [2, 0]), ("ArrowDown", [1, 1]), ("ArrowRight", [0, 2]), ("B is better", [0, 2])]
    for number, (way, steps) in enumerate(ways):
        item_on(page, number + 1, 4)
        texts = shown_texts(page)
        expect(page.locator(".board [role=radio][aria-checked=true]")).to_have_count(0)
        expect(page.get_by_role("button", name="Save")).to_be_disabled()
        if way.startswith("Arrow"):
            press_keys(page, f"{way} Enter")
        else:
            page.get_by_role("radio", name=way).click()
            save(page)
        item_or_end(page, number + 2, 4)
        assert rater.stored(items[number][0]) == dict(zip(texts, steps, strict=True))


def test_a_post_edit_by_mouse_and_by_keyboard_and_from_right_to_left(rate) -> None:
    items = [("He gave up.", ["Er gab es auf."]), ("He lost his temper.", ["Er verlor seine Geduld."])]
    items += [("Good morning", ["صباح خير"]), ("Two.", ["Zwei."])]
    rater, page = rate(items, protocol="post-edit", languages=("en", "ar"))
    field = page.get_by_role("textbox", name="Corrected translation")
    comment, button = page.get_by_role("textbox", name="Comment"), page.get_by_role("button", name="Save")
    expect(button).to_be_disabled()
    page.keyboard.press("e")
    expect(field).to_be_focused()
    press_keys(page, "End ! Escape n")  # behind Escape letters are keys again
    expect(comment).to_be_focused()
    page.keyboard.type("odd")
    press_keys(page, "Escape e")
    expect(field).to_be_focused()
    expect(field).to_have_value("Er gab es auf.!")
    expect(comment).to_have_value("odd")
    field.fill("Er gab auf.")
    draft_on(page, "saved")
    page.reload()
    item_on(page, 1, 4)
    expect(field).to_have_value("Er gab auf.")
    assert serious(page) == []
    page.get_by_role("button", name="Undo all changes").click()
    expect(field).to_have_value("Er gab es auf.")
    expect(button).to_be_disabled()
    field.fill("Er gab <b>auf</b>.")
    save(page)
    item_on(page, 2, 4)
    page.get_by_role("button", name="Nothing to change").click()
    save(page)
    item_on(page, 3, 4)
    press_keys(page, "e Control+a")
    page.keyboard.insert_text("صباح الخير")
    assert field.evaluate(DIRECTION) == "rtl"
    page.keyboard.press("Control+Enter")
    item_on(page, 4, 4)
    press_keys(page, "= Enter")  # nothing to change
    all_done(page)
    assert [(payload["text"], step) for _, payload, step in rater.given(Rating.payload, Rating.step)] == [
        ("Er gab <b>auf</b>.", 333),  # two edits, three words
        ("Er verlor seine Geduld.", 1000),
        ("صباح الخير", 500),
        ("Zwei.", 1000),
    ]


# ---------------------------------------------------------------- a plug-in's widget


def test_an_answer_of_several_parts_is_given_kept_and_saved(rate, plug_in) -> None:
    rater, page = rate([("Tee", ["tea"]), ("Sahne", ["cream"])], protocol="error-spans")
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


# ---------------------------------------------------------------- further scales


SCALES = ["Fluency", "Style"]


def test_each_output_is_rated_on_every_scale_by_keys(rate) -> None:
    texts = [("A cup of tea.", ["Eine Tasse Tee.", "Ein Tasse Tee."])]
    rater, page = rate(texts, settings={"scales": SCALES})
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


def test_further_scales_on_a_phone(rate) -> None:
    settings = {"scales": SCALES}
    rater, page = rate([("Tea.", ["Tee."])], phone=True, protocol="da", settings=settings)
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
