"""Every page by Tab alone: each control is reached, in view, and one sees where one is; nothing holds one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ready_campaigns import launched_campaign

pytest.importorskip("playwright.sync_api")

from keyboard import walk
from playwright.sync_api import expect
from rating_board import FOUR, at_rest, item_on, own_campaign

from creamtea.access import audit
from creamtea.human.making import campaigns
from creamtea.human.rating import raters

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WHAT = {"study": "quagga", "test_set": "narwhal", "systems": ["tapir-greedy", "tapir-nvs", "dugong-greedy"]}


@pytest.fixture(scope="module")
def server_settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"CREAMTEA_DATA": str(tmp_path_factory.mktemp("data"))}


def troubles(page: Any, controls: Sequence[str]) -> Any:
    """Of a walk, and which of these controls it has not reached."""
    at_rest(page)
    found = walk(page, controls)
    absent = [name for name in controls if not any(name in one for one in found.reached)]
    return found.troubles() | ({"not there": absent, "reached": found.reached} if absent else {})


def walked(site: Any, page: Any, pages: dict[str, tuple[str, str, list[str]]]) -> dict[str, Any]:
    """`pages`: by name the address, a text that is shown, and controls that must be among those reached."""
    found = {}
    for name, (address, shown, controls) in pages.items():
        page.goto(f"{site.url}{address}")
        expect(page.get_by_text(shown).first).to_be_visible()
        if trouble := troubles(page, controls):
            found[name] = trouble
    return found


def test_the_pages_of_studies(site: Any, analysed: str, open_page: Callable[..., Any]) -> None:
    page = open_page(site.new_link("organiser"))
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    report = ["Systems", "Containing", "Retry", "Share this report", "CSV"]
    pages = {
        "studies": ("/", "Studies", ["quagga", "Compare studies", "Sign out"]),
        "report and outputs": (f"/?study={analysed}", "Versions, seeds, hardware", report),
        "compared": ("/?compare=1,2", "Outputs side by side", ["Compared with", "Test the differences"]),
        "submit": ("/?submit=new", "Study (YAML)", ["Upload", "Study (YAML)"]),
    }
    assert walked(site, page, pages) == {}


def test_the_pages_of_organisers(site: Any, open_page: Callable[..., Any]) -> None:
    made = launched_campaign(site.database, "ibis", limit=6, ratings_per_item=2, **WHAT)
    rater = raters.add(site.database, "ibis", audit.COMMAND_LINE, pseudonym="rater-01")
    campaigns.create_campaign(site.database, "ibis-2", campaigns.CampaignRequest(**WHAT))
    page = open_page(site.new_link("organiser"))
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    own = f"/?campaign={made.id}"
    pages = {
        "campaigns": ("/?campaigns=all", "Campaigns", ["ibis", "New campaign", "Import ratings"]),
        "new": (
            "/?campaigns=new",
            "Nobody can rate a draft",
            ["Name", "Systems", "Questions", "Create a draft"],
        ),
        "import": (
            "/?campaigns=import",
            "languages are needed",
            ["Upload", "Protocol", "Texts for", "Import"],
        ),
        "draft": (f"/?campaign={made.id + 1}", "rater hours", ["Launch"]),
        "campaign": (own, "re-analysis needs", ["Close the campaign", "Prepare the files"]),
        "raters": (f"{own}&view=raters", "rater-01", ["Pseudonym", "Add and make a link", "Many raters"]),
        "rater": (f"{own}&view=raters&rater={rater}", "Decisions", ["New link", "Exclude", "Forget who"]),
    }
    assert walked(site, page, pages) == {}


def test_the_pages_of_raters(site: Any, open_page: Callable[..., Any]) -> None:
    fields = {"instructions": "# How to rate\n\nRead **all**.", "item_context": ["before"]}
    for protocol, texts in {"contrastive-da": FOUR[:3], "preference": FOUR[:2]}.items():
        own_campaign(site.database, f"loris-{protocol}", [("source", texts)], protocol=protocol, **fields)
    link, _ = site.rater_link("loris-preference", "new", consented=False)
    page = open_page(link)
    expect(page.get_by_role("button", name="I agree, begin")).to_be_visible()
    found = {"welcome": troubles(page, ["I agree, begin", "Sign out"])}
    controls = {"contrastive-da": ["Score of translation A", "Skip"], "preference": ["Skip"]}
    for protocol, named in controls.items():
        page = open_page(site.rater_link(f"loris-{protocol}", "walker")[0])
        item_on(page, 1)
        found[protocol] = troubles(page, named)
    assert {name: trouble for name, trouble in found.items() if trouble} == {}
