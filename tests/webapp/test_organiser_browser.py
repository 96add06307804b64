"""The organiser's pages in a real browser: a link that works, and progress that comes by itself."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from ready_campaigns import launched_campaign
from sqlalchemy import select

from creamtea.human import assignment, raters
from creamtea.store.tables import Rater

pytestmark = pytest.mark.browser


def test_a_rater_is_added_begins_and_is_seen(site, open_page) -> None:
    made = launched_campaign(
        site.database, "ibis", study="quagga", test_set="narwhal", systems=["tapir-greedy", "tapir-nvs"]
    )
    page = open_page(site.new_link("organiser"))
    page.get_by_role("link", name="Campaigns").click()
    page.get_by_role("link", name="ibis").click()
    page.get_by_role("link", name=re.compile("Raters")).click()
    page.get_by_label("Pseudonym", exact=True).fill("anna")
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
