"""Every page: axe-core finds nothing, and Tab alone reaches each control, in view and visibly focused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from accessibility import violations
from filled_study import ANALYSED, HOSTILE, fill_study, lines
from keyboard import walk
from paper_rows import fill
from playwright.sync_api import expect
from rating_board import FOUR, all_done, begin_rating, item_on, press_keys, save
from ready_campaigns import draft_campaign, launched_campaign
from watched import at_rest, script

from creamtea.access import audit
from creamtea.human import rating as assignment
from creamtea.human.making import campaigns
from creamtea.human.rating import raters
from creamtea.report.build import build_report
from creamtea.report.html import to_html
from creamtea.store.queries import study_nodes

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SYSTEMS_OF_ANALYSED = ["tapir-greedy", "tapir-lexicon+k=20", "dugong-greedy"]  # a row more has nothing new
WHAT = {"study": "quagga", "test_set": "narwhal", "systems": ["tapir-greedy", "tapir-nvs", "dugong-greedy"]}


# Elements of Streamlit's own that nothing here can change, by rule:
# - a file uploader's area has role="presentation" beside a label; its button has a name and works by keyboard
ALLOWED = {"presentation-role-conflict": 'data-testid="stFileUploaderDropzone"'}


# axe-core does not look at the text of charts: labels of axes and legends below a contrast of 4.5
FAINT_LABELS = script("faint_labels.js")


WIDER = """() => [document.documentElement, document.querySelector("[data-testid=stMain]")]
    .some((element) => element && element.scrollWidth > innerWidth)"""


class Sweep:
    """Collects what axe-core finds on pages ("page, width, theme: rule: elements"), and what a walk by Tab
    misses.
    """

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url
        self.found: list[str] = []

    def look(
        self,
        name: str,
        controls: Sequence[str] = (),
        *,
        streamlit: bool = True,
        once: bool = False,
        drawn: bool = False,
    ) -> None:
        """Look at both widths and in both themes. A walk by Tab must reach `controls`, if there are any.

        `once`: all of the page stands on other pages, too. It is looked at as on a phone, in the dark theme.
        `drawn`: only its charts are new.
        """
        for width, theme in ((390, "dark"), (1280, "light"))[: 1 if once else 2]:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            if streamlit:
                at_rest(self.page)
            for violation in [] if drawn else violations(self.page):
                rule = violation["id"]
                elements = [
                    node["html"][:200]
                    for node in violation["nodes"]
                    if not (rule in ALLOWED and ALLOWED[rule] in node["html"])
                ]
                if elements:
                    self.found.append(f"{name}, {width}, {theme}: {rule}: {elements}")
            if width == 390 and self.page.evaluate(WIDER):
                self.found.append(f"{name}: wider than a phone")
            faint = self.page.evaluate(FAINT_LABELS)
            if faint:
                self.found.append(f"{name}, {width}, {theme}: faint labels of charts: {faint}")
        if controls:
            walked = walk(self.page, controls)
            absent = [wanted for wanted in controls if not any(wanted in one for one in walked.reached)]
            troubles = walked.troubles() | ({"not there": absent} if absent else {})
            if troubles:
                self.found.append(f"{name}, by Tab: {troubles}")

    def visit(self, query: str, shown: str, *controls: str, **how: bool) -> None:
        self.page.goto(f"{self.url}/?{query}")
        expect(self.page.get_by_text(shown).first).to_be_visible()
        self.look(query, controls, **how)

    def rate(self, site: Any, outputs: list[str], **fields: Any) -> Any:
        """Show a rater of a new campaign an item with these outputs (`begin_rating`)."""

        def open_here(link: str, **_: Any) -> Any:
            self.page.context.clear_cookies()
            self.page.goto(link)
            return self.page

        return begin_rating(site, open_here, [("source", outputs)], **fields)[1]


@pytest.fixture(scope="module")
def server_settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"CREAMTEA_DATA": str(tmp_path_factory.mktemp("data"))}


@pytest.fixture(scope="module")
def site(own_site: Any) -> Any:
    return own_site


BY_TAB = (
    "beam_sizes",
    "calibration",
    "nvs_context",
)  # all kinds of blocks; Tab would take hundreds of steps more


@pytest.fixture(scope="module")
def analysed(site: Any) -> str:
    """A study with some analyses. Another, with `-2` after its name, has the others."""
    systems = {name: ANALYSED["systems"][name] for name in SYSTEMS_OF_ANALYSED}
    parts: dict[str, dict[str, Any]] = {"": {}, "-2": {}}
    for kind, analysis in ANALYSED["analyses"].items():
        parts["" if kind in BY_TAB else "-2"][kind] = analysis
    for mark, analyses in parts.items():
        own = {"name": f"{ANALYSED['name']}{mark}", "systems": systems, "analyses": analyses}
        fill_study(site.database, HOSTILE + lines(36), ANALYSED | own)
    return str(ANALYSED["name"])


@pytest.fixture(scope="module")
def sweep(quiet_page: Any, site: Any) -> Sweep:
    return Sweep(quiet_page, site.url)


@pytest.fixture(autouse=True)
def fresh(sweep: Sweep) -> None:
    sweep.found = []


@pytest.mark.parametrize(
    ("attributes", "rules"),
    [('data-stale="true"', []), ('class="pale"', ["color-contrast"])],
    ids=["while redrawn", "always"],
)
def test_a_page_may_be_pale_while_it_is_redrawn_only(sweep: Sweep, attributes: str, rules: list[str]) -> None:
    sweep.page.set_content(
        f"""<!doctype html><html lang="en"><title>pale</title><main><h1>Heading</h1>
        <style>[data-stale], .pale {{ opacity: 0.33 }}</style><p {attributes}>Text</p></main></html>"""
    )
    assert [violation["id"] for violation in violations(sweep.page)] == rules


def test_the_gate_and_the_report_as_a_file(site: Any, sweep: Sweep, tmp_path: Path) -> None:
    sweep.page.goto(site.url)
    sweep.look("without a session", streamlit=False)
    sweep.page.goto(f"{site.url}/enter#wrong")
    expect(sweep.page.get_by_text("no longer valid")).to_be_visible()
    sweep.look("wrong link", streamlit=False, once=True)
    file = tmp_path / "report.html"
    # a plain study: the page of one with analyses, which has the same templates, is looked at below
    file.write_text(to_html(build_report(site.database, "quagga")))
    sweep.page.goto(file.as_uri())
    sweep.look("HTML report", streamlit=False, once=True)
    assert sweep.found == []


def test_the_pages_of_studies_and_papers(site: Any, analysed: str, sweep: Sweep) -> None:
    fill(site.database, "scones-multi30k")
    sweep.page.goto(site.link)
    expect(sweep.page.get_by_role("heading", name="Studies")).to_be_visible()
    sweep.look("studies", ["quagga", "Compare studies", "Sign out"])
    rated_campaign(site, "serow", WHAT | {"study": analysed, "systems": SYSTEMS_OF_ANALYSED})
    controls = ("Systems", "Containing", "Retry", "Share this report", "CSV")
    sweep.visit(f"study={analysed}", "Versions, seeds, hardware", *controls)
    sweep.visit(f"study={analysed}-2", "Versions, seeds, hardware", once=True, drawn=True)
    sweep.visit("study=99", "No such study", once=True)
    sweep.visit("study=quagga&step=", "Steps of quagga")
    with site.database.session() as reading:
        node = study_nodes(reading, site.study)[0].name
    sweep.visit(f"study=quagga&step={quote(node)}", node, once=True)
    sweep.visit("compare=1,2", "Outputs side by side", "Compared with", "Test the differences")
    sweep.visit("submit=new", "Study (YAML)", "Upload", "Study (YAML)")
    sweep.visit("papers=all", "Papers")
    sweep.visit("paper=scones&table=3", "SCONES, Table 3")
    sweep.visit("paper=scones&figure=2", "SCONES, Figure 2", once=True)
    assert sweep.found == []


def rated_campaign(site: Any, name: str, what: dict[str, Any]) -> tuple[Any, int]:
    """A campaign with ratings of one rater, and the rater's id."""
    made = launched_campaign(site.database, name, limit=6, ratings_per_item=2, **what)
    rater = raters.add(site.database, name, audit.COMMAND_LINE, pseudonym="rater-01")
    raters.consent(site.database, rater)
    for _ in range(5):
        work = assignment.next_item(site.database, rater)
        assignment.submit(
            site.database, rater, work.assignment_id, [3 + work.assignment_id % 20] * len(work.outputs)
        )
    return made, rater


def test_the_pages_of_organisers(site: Any, sweep: Sweep) -> None:
    made, rater = rated_campaign(site, "ibis", WHAT)
    draft_campaign(site.database, "ibis-2", campaigns.CampaignRequest(**WHAT))
    sweep.page.goto(site.new_link("organiser"))
    expect(sweep.page.get_by_role("heading", name="Studies")).to_be_visible()
    sweep.visit("campaigns=all", "Campaigns", "ibis", "New campaign", "Import ratings")
    controls = ("Name", "Systems", "Questions", "Create a draft")
    sweep.visit("campaigns=new", "Nobody can rate a draft", *controls)
    sweep.visit("campaigns=import", "languages are needed", "Upload", "Protocol", "Only for", "Import")
    sweep.visit(f"campaign={made.id + 1}", "rater hours", "Launch")
    campaign = f"campaign={made.id}"
    sweep.visit(campaign, "re-analysis needs", "Close the campaign", "Prepare the files")
    sweep.visit(f"{campaign}&view=ahead", "Taking part")
    sweep.visit(f"{campaign}&view=ahead&item=1", "Item 1 of", once=True)
    sweep.visit(f"{campaign}&view=raters", "rater-01", "Pseudonym", "Add and make a link", "Many raters")
    sweep.visit(f"{campaign}&view=raters&rater={rater}", "Decisions", "New link", "Exclude", "Forget who")
    sweep.visit(f"{campaign}&view=log", "launch", once=True)
    sweep.visit("campaign=99", "No such campaign", once=True)
    assert sweep.found == []


def test_the_pages_of_raters(site: Any, sweep: Sweep) -> None:
    fields = {
        "instructions": "# How to rate\n\nRead **all**.",
        "languages": ("ar", "zh"),
        "item_context": ["before"],
    }
    guidance = {"steps": {"0": [1, 2], "1": [0, 1]}, "explanation": "They are close."}
    practice = {"written": ("tutorial", guidance), "consented": False}
    page = sweep.rate(site, FOUR[:2], protocol="preference", **practice, **fields)
    begin = page.get_by_role("button", name="I agree, begin")
    expect(begin).to_be_visible()
    sweep.look("welcome", ["I agree, begin", "Sign out"])
    begin.click()
    expect(page.get_by_text("Practice", exact=True)).to_be_visible()
    sweep.look("practice")
    page.get_by_role("radio", name="A is better").click()
    save(page)
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    sweep.look("practice answered")
    page.get_by_role("button", name="Continue").click()
    item_on(page, 1, 1)
    open_keys(page)
    sweep.look("rating, preference", ["Skip"])
    page.get_by_role("radio", name="A is better").click()
    save(page)
    all_done(page)
    sweep.look("finished")
    page.get_by_role("button", name="Look at earlier items").click()
    expect(page.get_by_role("heading", name="Earlier items")).to_be_visible()
    sweep.look("earlier items")
    page.goto(f"{site.url}/sign-out")
    sweep.look("signing out", streamlit=False, once=True)

    sweep.rate(site, FOUR[:1], protocol="da-sqm", **fields)
    open_keys(page)
    sweep.look("rating, da-sqm", ["Skip"])
    sweep.rate(site, [*FOUR[:3], ""], **fields)
    page.get_by_role("button", name="Show differences").click()
    open_keys(page)
    sweep.look("rating, contrastive-da", ["Score of translation A", "Skip"])
    page.get_by_role("button", name="Skip this item").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    sweep.look("skipping")
    assert sweep.found == []


def open_keys(page: Any) -> None:
    """Open the list of keys, and the field for a comment."""
    page.get_by_text("Keys", exact=True).click()
    press_keys(page, "n Escape")


def test_the_boards_on_which_errors_are_marked(site: Any, sweep: Sweep) -> None:
    text = "Es regnete Katzen und Hunde."
    expected = [{"start": [11, 11], "end": [16, 16], "severity": "major"}, {"severity": "minor"}]
    guidance = {"steps": {"0": [0, 60]}, "spans": {"0": expected}, "explanation": "It is an idiom."}
    proposals = {"0": [{"start": 22, "end": 26, "severity": "minor"}]}
    practice = {"item_kind": "tutorial", "item_guidance": guidance, "item_proposals": proposals}
    page = sweep.rate(site, [text], protocol="esa", **practice)
    sweep.look("to be marked")
    mark_two(page, "Home Space Space 2 End Space 1", 3)
    sweep.look("esa, marked")
    press_keys(page, "e 9")
    save(page)
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    sweep.look("practice in marking errors")
    sweep.rate(site, [text, "كانت السماء تمطر"], protocol="cesa", languages=("en", "ar"))
    mark_two(page, "Home Space Space 2 End Space 1", 2)
    sweep.look("cesa, marked")
    sweep.rate(site, [text], protocol="mqm")
    mark_two(page, "Home Space Space 2 Enter End Space 1 Enter", 2)  # Enter leads from the list of categories
    sweep.look("mqm, marked")
    assert sweep.found == []


def mark_two(page: Any, keys: str, errors: int) -> None:
    """Mark the first word and what is missing; then there are so many errors."""
    press_keys(page, keys)
    expect(page.locator(".board .error")).to_have_count(errors)
    page.keyboard.press("ArrowUp")
