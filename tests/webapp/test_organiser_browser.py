"""The organiser's pages in a real browser: a link that works, and progress that comes by itself."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from rating_board import own_campaign
from ready_campaigns import PLAIN, launched_campaign
from sqlalchemy import select
from watched import at_rest, press

from creamtea.access import links
from creamtea.human import rating as assignment
from creamtea.human.making.campaigns import CampaignRequest, create_campaign
from creamtea.human.rating import raters
from creamtea.store.tables import Campaign, Rater, StudyRow

pytestmark = pytest.mark.browser


def _address(site, campaign: str, view: str) -> str:
    """An organiser's link to a page of the campaign."""
    with site.database.session() as reading:
        (campaign_id,) = reading.scalars(select(Campaign.id).where(Campaign.name == campaign))
    return site.new_link("organiser").replace("/enter#", f"/enter?campaign={campaign_id}&view={view}#")


def test_a_rater_is_added_begins_and_is_seen(site, open_page) -> None:
    made = launched_campaign(
        site.database, "ibis", study="quagga", test_set="narwhal", systems=["tapir-greedy", "tapir-nvs"]
    )
    page = open_page(site.new_link("organiser"))
    page.get_by_role("link", name="Campaigns").click()
    page.get_by_role("link", name="ibis").click()
    page.get_by_role("link", name=re.compile("Raters")).click()
    name = page.get_by_label("Pseudonym", exact=True)
    expect(name).to_be_visible()
    at_rest(page)
    name.fill("anna")
    page.get_by_role("button", name="Add and make a link").click()  # the field is left by this click
    link = page.locator("code").filter(has_text="/enter#")
    expect(link).to_have_count(1)
    address = link.inner_text().strip()
    assert address.startswith(f"{site.url}/enter#")

    rater = open_page(address)
    rater.get_by_role("button", name="I agree, begin").wait_for()

    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_text(f"0 of {made.wanted} item ratings")).to_be_visible()
    with site.database.session() as reading:
        (rater_id,) = reading.scalars(select(Rater.id).where(Rater.campaign_id == made.id))
    raters.consent(site.database, rater_id)
    work = assignment.next_item(site.database, rater_id)
    assignment.submit(site.database, rater_id, work.assignment_id, [3] * len(work.outputs))
    expect(page.get_by_text(f"1 of {made.wanted} item ratings")).to_be_visible()


def test_a_press_that_leaves_a_field_is_not_lost(site, open_page) -> None:
    """What the last press said stays above the button: it does not move from under the next one."""
    own_campaign(site.database, "okapi-decided", [("source", ["output"])])
    rater_id = raters.add(site.database, "okapi-decided", "test")
    page = open_page(_address(site, "okapi-decided", f"raters&rater={rater_id}"))
    press(page.get_by_role("button", name="Exclude"))
    decide = page.get_by_role("button", name="Exclude this rater")
    press(decide)
    expect(page.locator(".notice.error")).to_be_visible()  # the reason is missing
    at_rest(page)
    page.get_by_label("Reason").fill("no answers")
    decide.click(delay=1500)  # a slow press, which leaves the field at its beginning
    expect(page.get_by_role("button", name="Include again")).to_be_visible()


def test_a_double_click_adds_one_rater_and_shows_the_link(site, open_page) -> None:
    """Streamlit begins with the second press before it has ended the first."""
    own_campaign(site.database, "okapi-doubled", [("source", ["output"])])
    page = open_page(_address(site, "okapi-doubled", "raters"))
    page.get_by_role("button", name="Add and make a link").dblclick()
    expect(page.get_by_text("The rater has been added.")).to_be_visible()
    at_rest(page)
    expect(page.locator("code").filter(has_text="/enter#")).to_have_count(1)
    expect(page.get_by_role("link", name="rater-")).to_have_count(1)


def test_a_double_click_launches_once_and_says_so(site, open_page) -> None:
    systems = ["tapir-greedy", "tapir-nvs"]
    draft = CampaignRequest(study="quagga", test_set="narwhal", systems=systems, settings=PLAIN)
    create_campaign(site.database, "okapi-draft", draft)
    page = open_page(_address(site, "okapi-draft", ""))
    page.get_by_role("button", name="Launch").dblclick()
    expect(page.get_by_text("The campaign has been launched and registered as")).to_be_visible()
    at_rest(page)
    expect(page.locator(".notice.error")).to_have_count(0)


def test_a_double_click_makes_one_link_to_a_report(site, open_page) -> None:
    with site.database.session() as reading:
        (study,) = reading.scalars(select(StudyRow.id).where(StudyRow.name == "quagga"))
    page = open_page(site.new_link("organiser").replace("/enter#", f"/enter?study={study}#"))
    page.get_by_role("button", name="Share this report").click()
    page.get_by_role("button", name="Make a link").dblclick()
    expect(page.locator("code").filter(has_text="/enter#")).to_have_count(1)
    at_rest(page)
    expect(page.locator("code").filter(has_text="/enter#")).to_have_count(1)
    assert [link.study_id for link in links.listed(site.database)].count(study) == 1


def test_what_raters_will_see_is_tried_before_the_launch(site, open_page) -> None:
    what = {"study": "quagga", "test_set": "narwhal", "systems": ["tapir-greedy", "tapir-nvs"]}
    made = create_campaign(site.database, "ibis-ahead", CampaignRequest(**what))
    page = open_page(_address(site, "ibis-ahead", ""))
    page.get_by_role("link", name="As raters see it").click()
    page.get_by_role("button", name="I agree, begin").click()
    sliders = page.get_by_role("slider")
    expect(page.get_by_role("heading", name=f"Item 1 of {made.items}")).to_be_visible()
    for number in range(sliders.count()):
        sliders.nth(number).press("3")
    expect(page.locator(".board")).to_have_attribute("data-draft", "saved")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name=f"Item 2 of {made.items}")).to_be_visible()
    with site.database.session() as reading:
        assert reading.scalars(select(Rater.id).where(Rater.campaign_id == made.id)).all() == []
