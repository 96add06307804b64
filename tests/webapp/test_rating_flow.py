"""A rater's way: consent, practice, items, skipping, comments, going back, another device, the ends."""

from typing import Any

import pytest
from playwright.sync_api import expect
from rating_board import (
    FOUR,
    all_done,
    at_rest,
    draft_on,
    item_on,
    own_campaign,
    press_all,
    press_at,
    press_keys,
    save,
    shown_texts,
    wait_for_scores,
)
from sqlalchemy import select, update
from table_rows import NOON, one_of
from watched import press

from creamtea.access import sessions
from creamtea.human.rating import raters
from creamtea.store.tables import Campaign, Rater

pytestmark = pytest.mark.browser

THREE = [(f"source {number}", [f"{text} {number}" for text in FOUR[:2]]) for number in range(3)]
INSTRUCTIONS = (
    "Give *every* text a value. [More](https://example.org) ![spy](https://example.org/x.png) <b>x</b>"
)


def heading(page: Any, text: str) -> None:
    expect(page.get_by_role("heading", name=text, exact=True)).to_have_count(1)


def test_a_participant_consents_is_asked_rates_and_leaves(site, open_page) -> None:
    settings = {
        "consent": "I am *over 18*.",
        "questions": [
            {"ask": "Which *language*?", "options": ["German", "English"]},
            {"ask": "Years", "number": True},
        ],
        "contact": "Dora <dora@example.org>",
        "completion_code": "C0DE",
        "completion_url": "https://app.prolific.com/submissions/complete?cc=C0DE",
        "minutes_per_item": 2.0,
    }
    own_campaign(site.database, "pangolin-paid", THREE[:1], instructions=INSTRUCTIONS, settings=settings)
    secret = raters.recruit(site.database, "pangolin-paid", "test")
    page = open_page(f"{site.url}/enter?PROLIFIC_PID=p-17&SESSION_ID=s-4#{secret}")
    heading(page, "Rating translations")
    at_rest(page)
    expect(page).to_have_url(f"{site.url}/")
    expect(page.locator(".board")).to_have_count(0)
    for shown in ("up to 1 item", "about 2 minutes", "Ask Dora <dora@example.org>"):
        expect(page.get_by_text(shown)).to_be_visible()
    expect(page.locator(".written em")).to_have_text(["every", "over 18"])
    expect(page.get_by_role("link", name="More")).to_have_attribute("href", "https://example.org")
    expect(page.locator(".written img")).to_have_count(0)
    expect(page.locator(".written").first).to_contain_text("<b>x</b>")
    begin = page.get_by_role("button", name="I agree, begin")
    presses = "button => getComputedStyle(button).pointerEvents"
    assert begin.evaluate(presses) == "auto"
    state = "(app, state) => { app.dataset.testScriptState = state; }"
    page.get_by_test_id("stApp").evaluate(state, "running")  # still being drawn: a press would be lost
    assert begin.evaluate(presses) == "none"
    page.get_by_test_id("stApp").evaluate(state, "notRunning")
    begin.click()
    expect(page.get_by_text("Please answer this question.")).to_have_count(2)
    at_rest(page)
    rater = one_of(site.database, select(Rater).where(Rater.participant == "p-17"))
    assert rater.consented_at is None
    press(page.get_by_label("Which *language*?"))
    page.get_by_role("option", name="English").click()
    page.get_by_label("Years").fill("3.5")
    begin.click(delay=1000)  # a slow press, which leaves the field at its beginning
    item_on(page, 1, 1)
    page.get_by_text("Instructions", exact=True).click()  # which stay at hand
    expect(page.get_by_role("link", name="More")).to_be_visible()
    press_all(page, [5] * 2)
    save(page)
    all_done(page)
    expect(page.get_by_text("C0DE", exact=True)).to_be_visible()
    back = page.get_by_role("link", name="Finish")
    expect(back).to_have_attribute("href", settings["completion_url"])
    rater = one_of(site.database, select(Rater).where(Rater.participant == "p-17"))
    assert rater.consented_at is not None
    assert rater.answers == {"Which *language*?": "English", "Years": 3.5}
    assert rater.arrival == {"SESSION_ID": "s-4"}
    page.get_by_role("link", name="Sign out").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()


def test_practice_tells_what_was_expected_and_survives_a_reload(rate) -> None:
    guidance = {"steps": {"0": [20, 25], "1": [0, 5]}, "explanation": "The second is <b>wrong</b>."}
    rater, page = rate(THREE, written=("tutorial", guidance))
    expect(page.get_by_text("Practice", exact=True)).to_have_count(1)
    expect(page.get_by_role("button", name="Skip this item")).to_have_count(0)
    good_first = shown_texts(page)[0] == "gut"
    press_all(page, [22] * 2)
    save(page)
    for _ in range(2):
        heading(page, "Not quite as expected")
        expect(page.locator(".board .explanation")).to_have_text(["The second is <b>wrong</b>."])
        verdicts = ["✓ expected 5.0 to 6.0", "✗ expected 1.0 to 2.0"]
        expect(page.locator(".board .verdict")).to_have_text(verdicts if good_first else verdicts[::-1])
        wait_for_scores(page, ["5.4", "5.4"])
        page.reload()
    heading(page, "Not quite as expected")
    page.keyboard.press("Enter")
    item_on(page, 1, 3)
    expect(page.get_by_text("Practice", exact=True)).to_have_count(0)
    assert rater.stored("practice") == {"gut": 22, "schlecht": 22}


def test_practice_with_a_preference(rate) -> None:
    guidance = {"steps": {"0": [1, 2], "1": [0, 1]}, "explanation": "They are close."}
    _, page = rate(THREE, protocol="preference", written=("tutorial", guidance))
    good_first = shown_texts(page)[0] == "gut"
    press_keys(page, "ArrowRight Enter" if good_first else "ArrowLeft Enter")  # the bad one
    heading(page, "Not quite as expected")
    better = "A is better, or The same" if good_first else "The same, or B is better"
    expect(page.locator(".board .explanation")).to_have_text([f"Expected: {better}. They are close."])


def test_a_loud_attention_check_warns_and_may_be_answered_again(rate) -> None:
    settings = {"attention_every": 1, "failing_code": "FAIL", "completion_code": "PASS"}
    warning = "Read <b>both</b>, please."
    guidance = {"steps": {"0": [20, 25], "1": [0, 5]}, "above": [], "warning": warning}
    rater, page = rate(THREE[:1], settings=settings, written=("attention-check", guidance))
    press_all(page, [10] * 2)
    save(page)
    item_on(page, 2, 2)
    press_all(page, [10] * 2)
    save(page)
    expect(page.locator(".board .notice")).to_have_text(warning)
    press_all(page, [25, 0] if shown_texts(page)[0] == "gut" else [0, 25])
    save(page)
    all_done(page)
    expect(page.locator(".code")).to_have_text("FAIL")
    assert rater.stored("practice") == {"gut": 25, "schlecht": 0}


def test_a_comment_a_skip_a_revision_and_the_end(rate) -> None:
    rater, page = rate(THREE)
    first, second, third = (source for source, _ in THREE)
    expect(page.get_by_role("button", name="Earlier items")).to_have_count(0)

    # a comment with the first one; the letters of the board are only letters in it
    texts = shown_texts(page)
    page.keyboard.press("n")
    page.keyboard.type("dbs 12")
    press_keys(page, "Escape 3 Enter 4 Enter")
    item_on(page, 2, 3)
    assert rater.stored(first) == dict(zip(texts, [10, 15], strict=True))
    kept, _ = rater.assignments()
    assert kept.comment == "dbs 12"
    assert 0 < kept.active_ms < 300_000

    # the second one is skipped, with a reason
    page.keyboard.press("s")
    dialog = page.get_by_role("dialog")
    skip = dialog.get_by_role("button", name="Skip")
    dialog.get_by_label("Another reason").check()
    expect(skip).to_be_disabled()
    dialog.get_by_label("In your words").fill("my mother")
    skip.click()
    expect(page.locator(".board .source > .text").filter(has_text=second)).to_have_count(0)
    item_on(page, 2, 3)  # it is the second again
    _, kept, _ = rater.assignments()
    assert (kept.skip_reason, kept.submitted_at) == ("Another reason: my mother", None)
    assert rater.stored(second) == {}
    press_at(page, 0, 8)
    page.wait_for_timeout(700)  # the time of an item goes on after the earlier ones and a reload
    press_at(page, 1, 8)
    at_rest(page)

    # back to the first one, by keys only, and changed
    page.keyboard.press("b")
    heading(page, "Earlier items")
    expect(page.locator(".earlier li")).to_have_text([f"1{first}3.0 · 4.0"])
    expect(page.locator(".earlier li button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved before", exact=True)).to_have_count(1)
    wait_for_scores(page, ["3.0", "4.0"])
    page.keyboard.type("5")
    rater.draft_is({"answers": [20, 15], "revision": 2})
    page.reload()
    wait_for_scores(page, ["5.0", "4.0"])  # still on it, with what was changed
    page.keyboard.press("Control+Enter")
    item_on(page, 2, 3)
    assert page.locator(".board .source > .text").text_content() == third
    assert rater.stored(first, revision=1) == dict(zip(texts, [10, 15], strict=True))
    assert rater.stored(first, revision=2) == dict(zip(texts, [20, 15], strict=True))

    # the end, from which earlier items can still be opened, and left as they were
    wait_for_scores(page, ["2.6", "2.6"])
    save(page)
    all_done(page)
    assert rater.assignments()[2].active_ms >= 700
    press(page.get_by_role("button", name="Look at earlier items"))
    expect(page.locator(".earlier li")).to_have_text([f"2{third}2.6 · 2.6", f"1{first}5.0 · 4.0, changed"])
    page.get_by_role("button", name=third).click()
    expect(page.get_by_text("Saved before", exact=True)).to_have_count(1)
    press_at(page, 0, 18)
    page.get_by_role("button", name="Leave it as it was").click()
    all_done(page)
    # the focus leaves nobody's place, and comes to the list as soon as what had it is gone
    page.evaluate("document.body.append(document.createElement('button')); document.body.lastChild.focus()")
    page.get_by_role("button", name="Look at earlier items").dispatch_event("click")
    expect(page.locator(".earlier li")).to_have_count(2)
    at_rest(page)
    expect(page.locator("body > button")).to_be_focused()
    page.evaluate("document.body.lastChild.remove()")
    expect(page.get_by_role("button", name=third)).to_be_focused()
    page.keyboard.press("Enter")
    wait_for_scores(page, ["2.6", "2.6"])  # what was changed is given up


def test_what_is_saved_after_the_end_is_refused(site, rate) -> None:
    """The campaign is closed, the rater excluded, the link revoked."""
    rater, page = rate(THREE)
    database = rater.database
    ends = [  # and what takes them back
        ("Closed", update(Campaign).where(Campaign.name == rater.campaign), "state", "closed", "launched"),
        ("Your part has ended", update(Rater).where(Rater.id == rater.rater_id), "excluded_at", NOON, None),
    ]
    for step, (title, change, column, end, before) in enumerate(ends, 3):
        press_all(page, [step] * 2)
        draft_on(page, "saved")  # what is sent later would show the end before anything is saved
        at_rest(page)
        with database.transaction() as session:
            session.execute(change.values({column: end}))
        save(page)
        heading(page, title)
        with database.transaction() as session:
            session.execute(change.values({column: before}))
        page.reload()
        item_on(page, 1, 3)
    wait_for_scores(page, ["1.8", "1.8"])
    sessions.revoke_rater(database, rater.rater_id)
    save(page)
    expect(page.get_by_text("Your link does not open this page")).to_have_count(1)
    assert page.goto(site.url).status == 401
    assert rater.given() == []
