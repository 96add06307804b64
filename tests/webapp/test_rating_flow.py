"""A rater's way: consent, practice, items, skipping, comments, going back, another device, the ends."""

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from rating_board import (
    FOUR,
    all_done,
    at_rest,
    draft_is,
    draft_on,
    item_on,
    own_campaign,
    press_all,
    press_at,
    save,
    shown_source,
    shown_texts,
    stored,
    wait_for_scores,
)
from sqlalchemy import select, update
from table_rows import item_row, one_of, row_of
from watched import press

from creamtea.access import sessions
from creamtea.human.rating import raters
from creamtea.store.tables import Assignment, Campaign, Item, Rater

pytestmark = pytest.mark.browser

THREE = [(f"source {number}", [f"{text} {number}" for text in FOUR[:2]]) for number in range(3)]
INSTRUCTIONS = (
    "Give *every* text a value. [More](https://example.org) ![spy](https://example.org/x.png) <b>x</b>"
)
SKIP = "Skip this item"


def heading(page: Any, text: str) -> None:
    expect(page.get_by_role("heading", name=text, exact=True)).to_have_count(1)


def assignment_of(site: Any, rater_id: int, source: str) -> Assignment:
    return one_of(
        site.database,
        select(Assignment).join(Item).where(Assignment.rater_id == rater_id, Item.source == source),
    )


def test_consent_comes_first_and_instructions_stay_at_hand(site, open_page) -> None:
    settings = {"consent": "I am *over 18*."}
    own_campaign(site.database, "pangolin-new", THREE, instructions=INSTRUCTIONS, settings=settings)
    link, rater_id = site.rater_link("pangolin-new", "new <i>one</i>", consented=False)
    page = open_page(link)
    heading(page, "Rating translations")
    at_rest(page)
    expect(page.locator(".board")).to_have_count(0)
    expect(page.get_by_role("strong").get_by_text("new <i>one</i>")).to_have_count(1)
    expect(page.locator("em")).to_have_text(["every", "over 18"])
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
    item_on(page, 1, 3)
    assert row_of(site.database, Rater, rater_id).consented_at is not None
    page.get_by_text("Instructions", exact=True).click()
    expect(page.get_by_role("link", name="More")).to_be_visible()


def test_a_participant_is_asked_rates_and_goes_back(site, open_page) -> None:
    settings = {
        "questions": [
            {"ask": "Which *language*?", "options": ["German", "English"]},
            {"ask": "Years", "number": True},
        ],
        "contact": "Dora <dora@example.org>",
        "completion_code": "C0DE",
        "completion_url": "https://app.prolific.com/submissions/complete?cc=C0DE",
        "minutes_per_item": 2.0,
    }
    own_campaign(site.database, "pangolin-paid", THREE[:1], settings=settings)
    secret = raters.recruit(site.database, "pangolin-paid", "test")
    page = open_page(f"{site.url}/enter?PROLIFIC_PID=p-17&SESSION_ID=s-4#{secret}")
    heading(page, "Rating translations")
    expect(page).to_have_url(f"{site.url}/")
    expect(page.get_by_text("up to 1 item")).to_be_visible()
    expect(page.get_by_text("about 2 minutes")).to_be_visible()
    expect(page.get_by_text("Ask Dora <dora@example.org>")).to_be_visible()
    begin = page.get_by_role("button", name="I agree, begin")
    begin.click()
    expect(page.get_by_text("Please answer this question.")).to_have_count(2)
    at_rest(page)
    press(page.get_by_label("Which *language*?"))
    page.get_by_role("option", name="English").click()
    page.get_by_label("Years").fill("3.5")
    begin.click(delay=1000)  # a slow press, which leaves the field at its beginning
    item_on(page, 1, 1)
    press_all(page, [5] * 2)
    save(page)
    all_done(page)
    expect(page.get_by_text("C0DE", exact=True)).to_be_visible()
    back = page.get_by_role("link", name="Finish")
    expect(back).to_have_attribute("href", settings["completion_url"])
    rater = one_of(site.database, select(Rater).where(Rater.participant == "p-17"))
    assert rater.answers == {"Which *language*?": "English", "Years": 3.5}
    assert rater.arrival == {"SESSION_ID": "s-4"}
    page.get_by_role("link", name="Sign out").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()


def test_practice_tells_what_was_expected_and_survives_a_reload(site, open_page) -> None:
    own_campaign(site.database, "pangolin-tutorial", THREE)
    teach(site, "pangolin-tutorial", {"0": [20, 25], "1": [0, 5]}, "The second is <b>wrong</b>.")
    link, rater_id = site.rater_link("pangolin-tutorial", "pupil")
    page = open_page(link)
    expect(page.get_by_text("Practice", exact=True)).to_have_count(1)
    texts = shown_texts(page)
    expect(page.get_by_role("button", name=SKIP)).to_have_count(0)
    good, bad = texts.index("gut"), texts.index("schlecht")
    press_at(page, good, 22)
    press_at(page, bad, 22)
    save(page)
    for _ in range(2):
        heading(page, "Not quite as expected")
        expect(page.locator(".board .explanation")).to_have_text(["The second is <b>wrong</b>."])
        verdicts = ["✓ expected 5.0 to 6.0", "✗ expected 1.0 to 2.0"]
        expect(page.locator(".board .verdict")).to_have_text(verdicts if good == 0 else verdicts[::-1])
        wait_for_scores(page, ["5.4", "5.4"])
        page.reload()
    heading(page, "Not quite as expected")
    page.keyboard.press("Enter")
    item_on(page, 1, 3)
    expect(page.get_by_text("Practice", exact=True)).to_have_count(0)
    assert stored(site.database, rater_id, "practice") == {"gut": 22, "schlecht": 22}


def test_practice_with_a_preference(site, open_page) -> None:
    own_campaign(site.database, "pangolin-tutorial-two", THREE, protocol="preference")
    teach(site, "pangolin-tutorial-two", {"0": [1, 2], "1": [0, 1]}, "They are close.")
    page = open_page(site.rater_link("pangolin-tutorial-two", "pupil")[0])
    expect(page.locator(".board .choice")).to_be_visible()
    texts = shown_texts(page)
    page.keyboard.press("ArrowRight" if texts[0] == "gut" else "ArrowLeft")  # the bad one
    page.keyboard.press("Enter")
    heading(page, "Not quite as expected")
    better = "A is better, or The same" if texts[0] == "gut" else "The same, or B is better"
    expect(page.locator(".board .explanation")).to_have_text([f"Expected: {better}. They are close."])


def test_a_loud_attention_check_warns_and_may_be_answered_again(site, open_page) -> None:
    settings = {"attention_every": 1, "failing_code": "FAIL", "completion_code": "PASS"}
    own_campaign(site.database, "pangolin-attention", THREE[:1], settings=settings)
    warning = "Read <b>both</b>, please."
    guidance = {"steps": {"0": [20, 25], "1": [0, 5]}, "above": [], "warning": warning}
    write(site, "pangolin-attention", "attention-check", guidance)
    link, rater_id = site.rater_link("pangolin-attention", "careless")
    page = open_page(link)
    item_on(page, 1, 2)
    press_at(page, 0, 10)
    press_at(page, 1, 10)
    save(page)
    item_on(page, 2, 2)
    press_at(page, 0, 10)
    press_at(page, 1, 10)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".board .notice")).to_have_text(warning)
    good, bad = (shown_texts(page).index(text) for text in ("gut", "schlecht"))
    press_at(page, good, 25)
    press_at(page, bad, 0)
    save(page)
    all_done(page)
    expect(page.locator(".code")).to_have_text("FAIL")
    assert stored(site.database, rater_id, "practice") == {"gut": 25, "schlecht": 0}


def teach(site: Any, campaign: str, steps: dict[str, list[int]], explanation: str) -> None:
    write(site, campaign, "tutorial", {"steps": steps, "explanation": explanation})


def write(site: Any, campaign: str, kind: str, guidance: dict[str, Any]) -> None:
    """An item that the organiser wrote."""
    with site.database.transaction() as session:
        row = session.scalars(select(Campaign).where(Campaign.name == campaign)).one()
        written = {"kind": kind, "segment_index": -1, "weight": 0.0, "source": "practice"}
        texts = {"systems": [0, 1], "outputs": ["gut", "schlecht"]}
        session.add(item_row(row.id, 99, guidance=guidance, **written, **texts))


def test_a_comment_a_skip_a_revision_and_the_end(site, open_page) -> None:
    own_campaign(site.database, "pangolin-way", THREE)
    link, rater_id = site.rater_link("pangolin-way", "walker")
    page = open_page(link)
    item_on(page, 1, 3)
    expect(page.get_by_role("button", name="Earlier items")).to_have_count(0)

    # a comment with the first one; the letters of the board are only letters in it
    first, texts = shown_source(page), shown_texts(page)
    page.keyboard.press("n")
    page.keyboard.type("dbs 12")
    page.keyboard.press("Escape")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    item_on(page, 2, 3)
    assert assignment_of(site, rater_id, first).comment == "dbs 12"
    assert stored(site.database, rater_id, first) == dict(zip(texts, [10, 15], strict=True))
    assert 0 < assignment_of(site, rater_id, first).active_ms < 300_000

    # the second one is skipped, with a reason
    second = shown_source(page)
    page.keyboard.press("s")
    dialog = page.get_by_role("dialog")
    skip = dialog.get_by_role("button", name="Skip")
    dialog.get_by_label("Another reason").check()
    expect(skip).to_be_disabled()
    dialog.get_by_label("In your words").fill("my mother")
    skip.click()
    expect(page.locator(".board .source > .text").filter(has_text=second)).to_have_count(0)
    item_on(page, 2, 3)  # it is the second again
    kept = assignment_of(site, rater_id, second)
    assert (kept.skip_reason, kept.submitted_at) == ("Another reason: my mother", None)
    assert stored(site.database, rater_id, second) == {}

    # back to the first one, by keys only, and changed
    third = shown_source(page)
    page.keyboard.press("b")
    heading(page, "Earlier items")
    expect(page.locator(".earlier li")).to_have_text([f"1{first}3.0 · 4.0"])
    expect(page.locator(".earlier li button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved before", exact=True)).to_have_count(1)
    wait_for_scores(page, ["3.0", "4.0"])
    page.keyboard.type("5")
    draft_is(site.database, rater_id, page, {"answers": [20, 15], "revision": 2})
    page.reload()
    wait_for_scores(page, ["5.0", "4.0"])  # still on it, with what was changed
    page.keyboard.press("Control+Enter")
    item_on(page, 2, 3)
    assert shown_source(page) == third
    assert stored(site.database, rater_id, first, revision=1) == dict(zip(texts, [10, 15], strict=True))
    assert stored(site.database, rater_id, first, revision=2) == dict(zip(texts, [20, 15], strict=True))

    # the end, from which earlier items can still be opened, and left as they were
    press_all(page, [3] * 2)
    save(page)
    all_done(page)
    press(page.get_by_role("button", name="Look at earlier items"))
    expect(page.locator(".earlier li")).to_have_text([f"2{third}1.6 · 1.6", f"1{first}5.0 · 4.0, changed"])
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
    wait_for_scores(page, ["1.6", "1.6"])  # what was changed is given up


def test_on_a_phone_the_source_stays_in_view(site, open_page) -> None:
    own_campaign(site.database, "pangolin-phone", [("source", FOUR), ("long " * 400, FOUR)])
    page = open_page(site.rater_link("pangolin-phone", "walker")[0], phone=True)
    item_on(page, 1, 2)
    source = page.locator(".board .source")
    page.get_by_role("button", name=SKIP).scroll_into_view_if_needed()
    expect(source).to_be_in_viewport(ratio=1)
    page.get_by_role("slider").last.press("3")
    skip = page.get_by_role("button", name=SKIP)
    skip.click()
    page.get_by_role("dialog").get_by_label("Another reason").check()
    page.get_by_role("dialog").get_by_label("In your words").fill("-")
    page.get_by_role("dialog").get_by_role("button", name="Skip").click()
    expect(source.filter(has_text="long long")).to_be_visible()
    expect(source).to_have_count(1)  # for a moment both items are there
    skip.scroll_into_view_if_needed()
    expect(source).not_to_be_in_viewport()  # it would leave the outputs no room


def test_who_has_rated_nothing_gets_no_completion_code(site, open_page) -> None:
    """The last item may come back while somebody else is on it."""
    own_campaign(
        site.database, "pangolin-late", THREE[:1], ratings_per_item=1, settings={"completion_code": "C0DE"}
    )
    first, _ = site.rater_link("pangolin-late", "first")
    second, _ = site.rater_link("pangolin-late", "second")
    rating = open_page(first)
    item_on(rating, 1, 1)
    late = open_page(second)
    heading(late, "Nothing to rate at the moment")
    expect(late.get_by_text("try again in two hours")).to_be_visible()
    press_all(rating, [5] * 2)
    save(rating)
    all_done(rating)
    expect(rating.get_by_text("C0DE", exact=True)).to_be_visible()
    late.reload()
    all_done(late)
    expect(late.get_by_text("Nothing is left to rate.")).to_be_visible()
    expect(late.get_by_text("C0DE")).to_have_count(0)


def test_a_closed_campaign_an_excluded_and_a_withdrawn_rater(site, open_page) -> None:
    own_campaign(site.database, "pangolin-ends", THREE)
    pages = {}
    for name in ("closed", "excluded", "withdrawn"):
        link, rater_id = site.rater_link("pangolin-ends", name)
        pages[name] = page, rater_id = open_page(link), rater_id
        item_on(page, 1, 3)
        press_all(page, [3] * 2)
        draft_on(page, "saved")  # what is sent later would show the end before anything is saved
        at_rest(page)
    database = site.database

    page, withdrawn = pages["withdrawn"]
    sessions.revoke_rater(database, withdrawn)
    save(page)
    expect(page.get_by_text("Your link does not open this page")).to_have_count(1)
    assert page.goto(site.url).status == 401

    page, excluded = pages["excluded"]
    with database.transaction() as session:
        session.execute(update(Rater).where(Rater.id == excluded).values(excluded_at=database.now(session)))
    save(page)
    heading(page, "Your part has ended")

    page, closed = pages["closed"]
    with database.transaction() as session:
        session.execute(update(Campaign).where(Campaign.name == "pangolin-ends").values(state="closed"))
    save(page)
    heading(page, "Closed")
    for rater_id in (withdrawn, excluded, closed):
        assert all(stored(database, rater_id, source) == {} for source, _ in THREE)
