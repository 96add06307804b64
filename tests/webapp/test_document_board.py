"""A document's segments on one page in a real browser: by keyboard, kept whatever happens, saved whole."""

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from marked_text import payloads, span, tap_on
from playwright.sync_api import expect
from rating_board import (
    all_done,
    draft_is,
    item_on,
    items_on,
    own_campaign,
    press_all,
    press_at,
    save,
    serious,
    stored,
    tap_at,
    wait_for_scores,
    wait_for_width,
)
from sqlalchemy import select
from table_rows import all_of

from creamtea.store.tables import Assignment, Item, Rating

pytestmark = pytest.mark.browser

TEXT = ["It rained.", "We stayed at home.", "Then the sun came out."]
DE = ["Es regnete.", "Wir blieben daheim.", "Dann kam die Sonne heraus."]
OTHER = ["Regen fiel.", "Wir blieben daheim.", "Da schien die Sonne."]
DA = [(source, [text]) for source, text in zip(TEXT, DE, strict=True)]
PAIRS = [(source, [one, two]) for source, one, two in zip(TEXT, DE, OTHER, strict=True)]
DOCUMENTS = {"item_document": "d", "settings": {"unit": "document"}}


def current(page: Any) -> Any:
    return page.locator(".board .segment.current .here")


def test_a_document_by_keyboard_only(site, open_page) -> None:
    own_campaign(site.database, "pangolin-doc", DA * 2, protocol="da", pages=[3, 3], **DOCUMENTS)
    link, rater_id = site.rater_link("pangolin-doc", "keys")
    page = open_page(link, slow_clock=True)
    items_on(page, 1, 3, 6)
    expect(page.locator(".board .source > .text")).to_have_text(TEXT)
    expect(page.locator(".board .outputs .text")).to_have_text(DE)
    expect(page.locator(".board .here")).to_have_text(["Segment 1", "Segment 2", "Segment 3"])
    expect(page.locator("footer .left")).to_have_text("3 translations left to rate")
    expect(page.get_by_role("button", name="Skip this page")).to_be_visible()
    for key in ("7", "5"):
        page.keyboard.press(key)
    expect(current(page)).to_have_text(["Segment 1"])
    page.keyboard.press("j")
    expect(current(page)).to_have_text(["Segment 2"])
    page.keyboard.press("j")
    page.keyboard.press("End")
    page.keyboard.press("k")
    page.keyboard.press("Home")
    wait_for_scores(page, ["75", "0", "100"])
    expect(page.locator("footer .left")).to_have_text("")
    page.keyboard.press("k")
    page.keyboard.press("Enter")  # nothing is left: it saves
    items_on(page, 4, 6, 6)
    assert given(site, rater_id, Rating.step) == [(0, 75), (1, 0), (2, 100)]
    for key in ("5", "Enter", "6", "Enter", "7", "Enter"):
        page.keyboard.press(key)
    all_done(page)
    assert given(site, rater_id, Rating.step)[3:] == [(3, 5), (4, 6), (5, 7)]


def given(site: Any, rater_id: int, *columns: Any) -> list[tuple[Any, ...]]:
    """The position and these columns of each of the rater's ratings, in the order of the page."""
    query = select(Item.position, *columns).join_from(Rating, Assignment).join(Item)
    with site.database.session() as session:
        rows = session.execute(query.where(Assignment.rater_id == rater_id).order_by(Item.position))
        return [tuple(row) for row in rows]


def test_letters_stay_and_equal_outputs_share_a_place(site, open_page) -> None:
    own_campaign(site.database, "pangolin-letters", PAIRS, pages=[3], **DOCUMENTS)
    link, rater_id = site.rater_link("pangolin-letters", "letters")
    page = open_page(link)
    items_on(page, 1, 3, 3)
    letters = page.locator(".board .letter")
    expect(letters).to_have_text(["A", "B", "A = B", "A", "B"])
    texts = page.locator(".board .outputs .text").all_text_contents()
    assert (texts[0] in DE) == (texts[3] in DE)
    page.get_by_role("button", name="Show differences").click()
    expect(page.locator(".board .segment").nth(0).locator("mark")).not_to_have_count(0)
    expect(page.locator(".board .segment").nth(1).locator("mark")).to_have_count(0)
    press_all(page, [1, 2, 3, 4, 5])
    save(page)
    all_done(page)
    assert stored(site.database, rater_id, TEXT[0]) == {texts[0]: 1, texts[1]: 2}
    assert stored(site.database, rater_id, TEXT[2]) == {texts[3]: 4, texts[4]: 5}


def test_choices_of_a_document(site, open_page) -> None:
    own_campaign(site.database, "pangolin-choices", PAIRS, protocol="preference", pages=[3], **DOCUMENTS)
    link, rater_id = site.rater_link("pangolin-choices", "choices")
    page = open_page(link)
    items_on(page, 1, 3, 3)
    expect(page.locator("footer .left")).to_have_text("3 segments left to rate")
    left = page.locator(".board .outputs .text").first.text_content()
    for key in ("ArrowLeft", "Enter", "ArrowDown", "Enter", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    all_done(page)
    assert stored(site.database, rater_id, TEXT[0])[left] == 2
    assert (1, 1) in given(site, rater_id, Rating.step)


def test_drafts_of_all_segments_survive(site, open_page) -> None:
    """A reload, a second tab and a lost connection."""
    own_campaign(site.database, "pangolin-kept", DA, protocol="da", pages=[3], **DOCUMENTS)
    link, rater_id = site.rater_link("pangolin-kept", "kept")
    page = open_page(link, slow_clock=True)
    items_on(page, 1, 3, 3)
    press_at(page, 0, 40, steps=101)
    press_at(page, 2, 60, steps=101)
    draft_is(site.database, rater_id, page, {"answers": [60]})
    page.reload()
    items_on(page, 1, 3, 3)
    wait_for_scores(page, ["40", "–", "60"])
    expect(current(page)).to_have_text(["Segment 2"])  # goes on where something is missing
    second = page.context.new_page()
    second.goto(site.url)
    items_on(second, 1, 3, 3)
    wait_for_scores(second, ["40", "–", "60"])
    page.context.set_offline(True)
    page.keyboard.type("100")
    wait_for_scores(page, ["40", "100", "60"])
    page.context.set_offline(False)
    draft_is(site.database, rater_id, page, {"answers": [100]})
    save(page)
    all_done(page)
    second.reload()
    all_done(second)
    assert given(site, rater_id, Rating.step) == [(0, 40), (1, 100), (2, 60)]


def test_a_saved_page_is_changed_as_a_whole(site, open_page) -> None:
    own_campaign(site.database, "pangolin-again", DA * 2, protocol="da", pages=[3, 3], **DOCUMENTS)
    link, rater_id = site.rater_link("pangolin-again", "again")
    page = open_page(link)
    items_on(page, 1, 3, 6)
    press_all(page, [50] * 3, steps=101)
    save(page)
    items_on(page, 4, 6, 6)
    page.keyboard.press("b")
    expect(page.locator(".earlier .number")).to_have_text(["1–3"])
    page.locator(".earlier li button").click()
    items_on(page, 1, 3, 6)
    wait_for_scores(page, ["50", "50", "50"])
    press_at(page, 1, 80, steps=101)
    save(page)
    items_on(page, 4, 6, 6)
    page.get_by_role("button", name="Skip this page").click()
    page.get_by_role("radio", name="I do not want to read this text").check()
    page.get_by_role("button", name="Skip", exact=True).click()
    all_done(page)
    rows = all_of(site.database, select(Assignment).where(Assignment.rater_id == rater_id))
    assert [row.skipped_at is not None for row in sorted(rows, key=lambda row: row.item_id)] == [
        False
    ] * 3 + [True] * 3


def test_a_score_of_the_whole_and_a_reference_that_is_shown(site, open_page) -> None:
    own_campaign(
        site.database,
        "pangolin-whole",
        PAIRS[:2],
        pages=[2],
        item_document="d",
        item_references=["So <b>war</b> es.", "Oder so."],
        settings={"unit": "document", "document_score": True},
    )
    link, rater_id = site.rater_link("pangolin-whole", "whole")
    page = open_page(link, slow_clock=True)
    items_on(page, 1, 2, 2)
    expect(page.locator(".board .references .text")).to_have_text(["So <b>war</b> es.", "Oder so."] * 2)
    expect(page.locator(".board .references h2")).to_have_text(["Reference 1", "Reference 2"] * 2)
    expect(page.locator("footer .left")).to_have_text("5 scores left to give")
    for key in ("4", "Enter", "3", "Enter", "2", "Enter", "6"):
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    draft_is(site.database, rater_id, page, {"document": [25, None]})
    page.reload()
    items_on(page, 1, 2, 2)
    wait_for_scores(page, ["4.0", "3.0", "2.0", "6.0", "–"])
    page.get_by_role("slider", name="Score of the text as a whole, translation B").press("End")
    page.keyboard.press("Enter")
    all_done(page)
    assert given(site, rater_id, Rating.document_step) == [(0, 25), (0, 25), (1, None), (1, None)]


def test_the_end_of_a_document_is_scored_with_what_came_before_at_hand(site, open_page) -> None:
    own_campaign(
        site.database,
        "pangolin-end",
        PAIRS,
        pages=[2, 1],
        item_document="d",
        settings={"unit": "document", "document_score": True},
    )
    link, rater_id = site.rater_link("pangolin-end", "end")
    page = open_page(link, slow_clock=True)
    items_on(page, 1, 2, 3)
    whole = page.get_by_role("group", name="The text as a whole")
    expect(whole).to_be_hidden()
    for key in ("4", "Enter", "3", "Enter", "2", "Enter", "6"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    item_on(page, 3, 3)
    expect(whole).to_be_visible()
    read = whole.get_by_text("Read the 2 segments before this page")
    expect(whole.get_by_text(TEXT[0])).to_be_hidden()
    read.click()
    entries = whole.locator(".read li")
    expect(entries).to_have_count(2)
    expect(entries.first).to_be_visible()
    # on to the whole, whose earlier segments are scrolled, not scored
    for key in ("4", "Enter", "3", "Enter"):
        page.keyboard.press(key)
    read.focus()
    for key in ("PageDown", "ArrowDown", "End", "ArrowUp"):
        page.keyboard.press(key)
    wait_for_scores(page, ["4.0", "3.0", "–", "–"])
    page.keyboard.press("k")
    for at, entry in enumerate(entries.all()):
        expect(entry.locator("p").first).to_have_text(TEXT[at])
        expect(entry.locator(".letter")).to_have_text(["A", "B"])
        for text in (DE[at], OTHER[at]):
            expect(entry.get_by_text(text).first).to_be_visible()
    assert serious(page) == []
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        wait_for_width(page, width)
    for key in ("4", "Enter", "3", "Enter", "5", "Enter", "6"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    all_done(page)
    rows = given(site, rater_id, Rating.document_step)
    assert [position for position, step in rows if step is not None] == [2, 2]


def test_errors_of_a_document_by_keyboard(site, open_page) -> None:
    own_campaign(site.database, "pangolin-errors", DA[:2], protocol="esa", pages=[2], **DOCUMENTS)
    link, rater_id = site.rater_link("pangolin-errors", "errors")
    page = open_page(link, slow_clock=True)
    items_on(page, 1, 2, 2)
    page.keyboard.press("j")
    expect(current(page)).to_have_text(["Segment 2"])
    for key in ("Space", "Space", "2", "e", "9", "0"):  # a major error: the first word
        page.keyboard.press(key)
    page.keyboard.press("k")
    expect(current(page)).to_have_text(["Segment 1"])
    for key in ("e", "5"):
        page.keyboard.press(key)
    wait_for_scores(page, ["5", "90"])
    save(page)
    all_done(page)
    rows = given(site, rater_id, Rating.step, Rating.payload)
    assert [(place, step) for place, step, _ in rows] == [(0, 5), (1, 90)]
    assert [len(payload["spans"]) for _, _, payload in rows] == [0, 1]
    assert rows[1][2]["spans"][0]["severity"] == "major"


def test_a_document_by_touch(site, open_page) -> None:
    own_campaign(site.database, "pangolin-doc-touch", PAIRS[:2], protocol="cesa", pages=[2], **DOCUMENTS)
    link, rater_id = site.rater_link("pangolin-doc-touch", "thumb")
    page = open_page(link, phone=True)
    items_on(page, 1, 2, 2)
    wait_for_width(page, 390)
    passages = page.locator(".board .passage .text")
    expect(passages).to_have_count(3)  # two, and one that both share
    texts = passages.all_text_contents()
    row = texts.index(OTHER[0])
    tap_on(page, "Regen", "fiel", row=row)
    page.locator(".board .error .major").tap()
    tap_at(page, row, 30, steps=101)
    for other in {0, 1, 2} - {row}:
        output = page.locator(".board .segments .outputs > li").nth(other)
        output.get_by_role("button", name="No errors").tap()
        tap_at(page, other, 90, steps=101)
    expect(current(page)).to_have_text(["Segment 2"])
    small = page.locator(".board button:visible, .board summary:visible").evaluate_all(
        "all => all.filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.textContent)"
    )
    assert small == []
    scores = [int(text) for text in page.locator(".board output.value").all_text_contents()]
    assert abs(scores[row] - 30) < 3
    page.get_by_role("button", name="Save").tap()
    all_done(page)
    error = span(OTHER[0], "Regen fiel", "major")
    assert payloads(site.database, rater_id, TEXT[0]) == {
        OTHER[0]: {"score": scores[row], "spans": [error]},
        DE[0]: {"score": scores[1 - row], "spans": []},
    }
    assert payloads(site.database, rater_id, TEXT[1])[DE[1]] == {"score": scores[2], "spans": []}
