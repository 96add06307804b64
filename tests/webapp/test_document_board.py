"""A document's segments on one page in a real browser: by keyboard, kept whatever happens, saved whole."""

from typing import Any

import pytest
from marked_text import span, tap_on
from playwright.sync_api import expect
from rating_board import (
    WHOLE,
    all_done,
    item_on,
    items_on,
    press_all,
    press_at,
    press_keys,
    save,
    serious,
    shown_texts,
    small_targets,
    tap_at,
    wait_for_scores,
    wait_for_width,
)

from creamtea.store.tables import Rating

pytestmark = pytest.mark.browser

TEXT = ["It rained.", "We stayed at home.", "Then the sun came out."]
DE = ["Es regnete.", "Wir blieben daheim.", "Dann kam die Sonne heraus."]
OTHER = ["Regen fiel.", "Wir blieben daheim.", "Da schien die Sonne."]
DA = [(source, [text]) for source, text in zip(TEXT, DE, strict=True)]
PAIRS = [(source, [one, two]) for source, one, two in zip(TEXT, DE, OTHER, strict=True)]


def current(page: Any) -> Any:
    return page.locator(".board .segment.current .here")


def test_a_document_is_kept_saved_changed_and_skipped_as_a_whole(site, rate) -> None:
    rater, page = rate(DA * 2, protocol="da", pages=[3, 3], slow_clock=True, **WHOLE)
    expect(page.locator(".board .source > .text")).to_have_text(TEXT)
    expect(page.locator(".board .outputs .text")).to_have_text(DE)
    expect(page.locator(".board .here")).to_have_text(["Segment 1", "Segment 2", "Segment 3"])
    expect(page.locator("footer .left")).to_have_text("3 translations left to rate")

    # by keys; drafts survive a reload, a second tab and a lost connection
    press_keys(page, "7 5")
    expect(current(page)).to_have_text(["Segment 1"])
    page.keyboard.press("j")
    expect(current(page)).to_have_text(["Segment 2"])
    press_keys(page, "j End")
    rater.draft_is({"answers": [100]})
    page.reload()
    items_on(page, 1, 3, 6)
    wait_for_scores(page, ["75", "–", "100"])
    expect(current(page)).to_have_text(["Segment 2"])  # goes on where something is missing
    second = rater.second_tab(site.url)
    items_on(second, 1, 3, 6)
    wait_for_scores(second, ["75", "–", "100"])
    page.context.set_offline(True)
    page.keyboard.press("0")
    wait_for_scores(page, ["75", "0", "100"])
    expect(page.locator("footer .left")).to_have_text("")
    page.context.set_offline(False)
    rater.draft_is({"answers": [0]})
    press_keys(page, "k Enter")  # nothing is left: it saves
    items_on(page, 4, 6, 6)
    assert rater.given(Rating.step) == [(0, 75), (1, 0), (2, 100)]
    second.reload()
    items_on(second, 4, 6, 6)

    # a saved page is changed as a whole
    page.keyboard.press("b")
    expect(page.locator(".earlier .number")).to_have_text(["1–3"])
    page.locator(".earlier li button").click()
    items_on(page, 1, 3, 6)
    wait_for_scores(page, ["75", "0", "100"])
    press_at(page, 1, 80, steps=101)
    save(page)
    items_on(page, 4, 6, 6)
    revised = [
        (place, step) for place, step, revision in rater.given(Rating.step, Rating.revision) if revision > 1
    ]
    assert revised == [(0, 75), (1, 80), (2, 100)]

    # and skipped
    page.get_by_role("button", name="Skip this page").click()
    page.get_by_role("radio", name="I do not want to read this text").check()
    page.get_by_role("button", name="Skip", exact=True).click()
    all_done(page)
    assert [row.skipped_at is not None for row in rater.assignments()] == [False] * 3 + [True] * 3


def test_letters_stay_and_equal_outputs_share_a_place(rate) -> None:
    rater, page = rate(PAIRS, pages=[3], **WHOLE)
    expect(page.locator(".board .letter")).to_have_text(["A", "B", "A = B", "A", "B"])
    texts = shown_texts(page)
    assert (texts[0] in DE) == (texts[3] in DE)
    page.get_by_role("button", name="Show differences").click()
    expect(page.locator(".board .segment").nth(0).locator("mark")).not_to_have_count(0)
    expect(page.locator(".board .segment").nth(1).locator("mark")).to_have_count(0)
    press_all(page, [1, 2, 3, 4, 5])
    save(page)
    all_done(page)
    assert rater.stored(TEXT[0]) == {texts[0]: 1, texts[1]: 2}
    assert rater.stored(TEXT[2]) == {texts[3]: 4, texts[4]: 5}


def test_choices_of_a_document(rate) -> None:
    rater, page = rate(PAIRS, protocol="preference", pages=[3], **WHOLE)
    expect(page.locator("footer .left")).to_have_text("3 segments left to rate")
    left, *_ = shown_texts(page)
    press_keys(page, "ArrowLeft Enter ArrowDown Enter ArrowRight Enter")
    all_done(page)
    assert rater.stored(TEXT[0])[left] == 2
    assert (1, 1) in rater.given(Rating.step)


def test_the_end_of_a_document_is_scored_with_what_came_before_at_hand(rate) -> None:
    settings, references = {"unit": "document", "document_score": True}, ["So <b>war</b> es.", "Oder so."]
    fields = {"item_document": "d", "item_references": references, "settings": settings}
    rater, page = rate(PAIRS, pages=[2, 1], slow_clock=True, **fields)
    expect(page.locator(".board .references .text")).to_have_text(references * 2)
    expect(page.locator(".board .references h2")).to_have_text(["Reference 1", "Reference 2"] * 2)
    expect(page.locator("footer .left")).to_have_text("3 translations left to rate")
    whole = page.get_by_role("group", name="The text as a whole")
    expect(whole).to_be_hidden()
    press_keys(page, "4 Enter 3 Enter 2 Enter")
    item_on(page, 3, 3)
    expect(whole).to_be_visible()
    expect(page.locator("footer .left")).to_have_text("4 scores left to give")
    read = whole.get_by_text("Read the 2 segments before this page")
    expect(whole.get_by_text(TEXT[0])).to_be_hidden()
    read.click()
    entries = whole.locator(".read li")
    expect(entries).to_have_count(2)
    expect(entries.first).to_be_visible()
    # on to the whole, whose earlier segments are scrolled, not scored
    press_keys(page, "4 Enter 3 Enter")
    read.focus()
    press_keys(page, "PageDown ArrowDown End ArrowUp")
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
    page.keyboard.press("6")
    wait_for_scores(page, ["4.0", "3.0", "6.0", "–"])
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    rater.draft_is({"document": [25, None]})
    page.reload()
    item_on(page, 3, 3)
    wait_for_scores(page, ["4.0", "3.0", "6.0", "–"])
    page.get_by_role("slider", name="Score of the text as a whole, translation B").press("End")
    page.keyboard.press("Enter")
    all_done(page)
    assert rater.given(Rating.document_step)[-2:] == [(2, 25), (2, 25)]
    assert {step for _, step in rater.given(Rating.document_step)[:-2]} == {None}


def test_errors_of_a_document_by_keyboard(rate) -> None:
    rater, page = rate(DA[:2], protocol="esa", pages=[2], slow_clock=True, **WHOLE)
    page.keyboard.press("j")
    expect(current(page)).to_have_text(["Segment 2"])
    press_keys(page, "Space Space 2 e 9 0 k")  # a major error: the first word
    expect(current(page)).to_have_text(["Segment 1"])
    press_keys(page, "e 5")
    wait_for_scores(page, ["5", "90"])
    save(page)
    all_done(page)
    rows = rater.given(Rating.step, Rating.payload)
    assert [(place, step) for place, step, _ in rows] == [(0, 5), (1, 90)]
    assert [[one["severity"] for one in payload["spans"]] for _, _, payload in rows] == [[], ["major"]]


def test_a_document_by_touch(rate) -> None:
    rater, page = rate(PAIRS[:2], protocol="cesa", pages=[2], phone=True, **WHOLE)
    wait_for_width(page, 390)
    passages = page.locator(".board .passage .text")
    expect(passages).to_have_count(3)  # two, and one that both share
    row = passages.all_text_contents().index(OTHER[0])
    tap_on(page, "Regen", "fiel", row=row)
    page.locator(".board .error .major").tap()
    tap_at(page, row, 30, steps=101)
    for other in {0, 1, 2} - {row}:
        output = page.locator(".board .segments .outputs > li").nth(other)
        output.get_by_role("button", name="No errors").tap()
        tap_at(page, other, 90, steps=101)
    expect(current(page)).to_have_text(["Segment 2"])
    assert small_targets(page) == []
    scores = [int(text) for text in page.locator(".board output.value").all_text_contents()]
    assert abs(scores[row] - 30) < 3
    page.get_by_role("button", name="Save").tap()
    all_done(page)
    error = span(OTHER[0], "Regen fiel", "major")
    assert rater.payloads(TEXT[0]) == {
        OTHER[0]: {"score": scores[row], "spans": [error]},
        DE[0]: {"score": scores[1 - row], "spans": []},
    }
    assert rater.payloads(TEXT[1])[DE[1]] == {"score": scores[2], "spans": []}
