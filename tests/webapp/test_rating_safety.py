"""Nothing is lost or stored twice, and nothing tells a rater which system is which."""

from typing import Any

import pytest
from playwright.sync_api import expect
from rating_board import (
    FOUR,
    SECRET_NAMES,
    SYSTEMS,
    Wire,
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
from ready_campaigns import launched_campaign
from watched import new_context

from creamtea.human import rating as assignment

pytestmark = pytest.mark.browser

FIVE = [(f"source {number}", [f"{text} {number}" for text in FOUR]) for number in range(5)]
FIRST, SECOND = "source 0", "source 1"


@pytest.fixture(scope="module")
def site(own_site: Any) -> Any:
    return own_site


def test_nothing_that_comes_or_goes_names_a_system(site, open_page) -> None:
    launched_campaign(
        site.database, "pangolin", study="quagga", test_set="narwhal", systems=SYSTEMS, limit=3
    )  # fmt: skip
    link, _ = site.rater_link("pangolin", "listener", consented=False)
    wire = Wire()
    page = open_page(link, before=wire.tap)
    page.get_by_role("button", name="I agree, begin").click()
    item_on(page, 1, 3)
    assert page.url == f"{site.url}/"  # the secret has left the address bar
    texts = shown_texts(page)
    page.keyboard.press("d")
    press_all(page, [9] * len(texts))
    save(page)
    item_on(page, 2, 3)
    page.keyboard.press("b")
    expect(page.locator(".earlier li button")).to_be_focused()  # the heading is there before the list
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved before", exact=True)).to_have_count(1)
    page.keyboard.press("b")
    item_on(page, 2, 3)
    page.goto(f"{site.url}/?study={site.study}")  # the address of the report gives a rater the rating page
    item_on(page, 2, 3)
    traffic = wire.everything()
    assert wire.sockets >= 2
    assert max(texts, key=len).encode() in traffic  # the search looks where texts travel
    assert [name for name in SECRET_NAMES if name.encode() in traffic.lower()] == []


def test_what_is_sent_twice_is_stored_once(site, rate) -> None:
    rater, page = rate(FIVE)
    # Streamlit fades what it draws anew, and with it the board's word that the server does not answer
    page.add_style_tag(content='[data-stale="true"] { opacity: 0.33; }')  # one class there
    board = page.locator('[class*="st-key-board-"]')
    board.evaluate("element => { element.dataset.stale = 'true'; }")
    assert board.evaluate("element => getComputedStyle(element).opacity") == "1"
    board.evaluate("element => { delete element.dataset.stale; }")

    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    texts, steps = shown_texts(page), [0, 12, 7, 25]
    press_all(page, steps)
    # both clicks in one task, quicker than any hand
    page.evaluate(
        """() => {
            const shadows = [...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean);
            const save = shadows.map((root) => root.querySelector("footer .save")).find(Boolean);
            save.click(); save.disabled = false; save.click();
        }"""
    )
    item_on(page, 2, 5)
    assert rater.stored(FIRST) == dict(zip(texts, steps, strict=True))

    # a second tab that saves other values is told
    texts, other = shown_texts(page), rater.second_tab(site.url)
    item_on(other, 2, 5)
    press_all(other, [20] * 4)
    rater.draft_is({"answers": [20] * 4}, other)
    press_all(page, [5] * 4)
    save(page)
    item_on(page, 3, 5)
    save(other)
    expect(other.get_by_text("already saved in another tab with other values")).to_have_count(1)
    item_on(other, 3, 5)
    assert rater.stored(SECOND) == dict(zip(texts, [5] * 4, strict=True))


def test_reload_second_tab_and_restart_lose_nothing(site, rate) -> None:
    rater, page = rate(FIVE)
    texts = shown_texts(page)
    press_at(page, 1, 9)
    press_keys(page, "n h m")
    rater.draft_is({"answers": [None, 9, None, None], "comment": "hm"})

    page.reload()
    item_on(page, 1, 5)
    assert shown_texts(page) == texts
    wait_for_scores(page, ["–", "2.8", "–", "–"])
    expect(page.get_by_label("Comment")).to_have_value("hm")

    other = rater.second_tab(site.url)
    item_on(other, 1, 5)
    wait_for_scores(other, ["–", "2.8", "–", "–"])
    press_at(page, 0, 20)
    rater.draft_is({"answers": [20, 9, None, None], "comment": "hm"})

    site.pause()
    press_at(page, 2, 5)
    draft_on(page, "sent")  # and nobody hears it
    site.stop()
    site.start_again()
    rater.draft_is({"answers": [20, 9, 5, None], "comment": "hm"})
    wait_for_scores(page, ["5.0", "2.8", "2.0", "–"])
    other.reload()
    wait_for_scores(other, ["5.0", "2.8", "2.0", "–"])
    press_at(page, 3, 0)
    save(page)
    item_on(page, 2, 5)
    assert rater.stored(FIRST) == dict(zip(texts, [20, 9, 5, 0], strict=True))

    # the other tab still shows the saved item: what it sends now changes nothing, and it comes along
    press_at(other, 0, 3)
    expect(other.get_by_text("this item is already saved")).to_have_count(1)
    item_on(other, 2, 5)
    assert rater.stored(FIRST) == dict(zip(texts, [20, 9, 5, 0], strict=True))


def test_a_refused_save_is_told_and_the_next_item_comes(site, rate) -> None:
    rater, page = rate(FIVE[:2], ratings_per_item=1)
    press_all(page, [8] * 4)
    rater.draft_is({"answers": [8] * 4})
    with site.database.transaction() as session:  # the lease runs out, and somebody else is quicker
        (mine,) = map(session.merge, rater.assignments())
        mine.lease_until = mine.created_at
    _, quick = site.rater_link(rater.campaign, "quick")
    assert assignment.next_item(site.database, quick).source == FIRST
    save(page)
    expect(page.get_by_text("this item was given to someone else")).to_have_count(1)
    item_on(page, 1)
    expect(page.locator(".board .source > .text")).to_have_text(SECOND)
    assert rater.given() == []


def test_a_link_elsewhere_than_on_loopback_waits_for_the_button(site, chromium) -> None:
    own_campaign(site.database, "pangolin-far", FIVE)
    link, _ = site.rater_link("pangolin-far", "elsewhere")
    context = new_context(chromium)
    page = context.new_page()
    # the same page under a name that is not loopback's
    page.route(
        "http://rate.example/**",
        lambda route: route.fulfill(
            response=route.fetch(url=route.request.url.replace("http://rate.example", site.url))
        ),
    )
    page.goto(link.replace(site.url, "http://rate.example"))
    page.get_by_role("button", name="Open").wait_for()
    page.wait_for_load_state("networkidle")
    assert page.url == "http://rate.example/enter"  # the secret has left the address bar, nothing was posted
    context.close()
    again = new_context(chromium)
    page = again.new_page()
    page.goto(link)
    item_on(page, 1)  # so the link was still unused
    again.close()
