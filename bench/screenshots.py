"""Take the screenshots in docs/images that are of pages with texts of their own.

    python bench/screenshots.py OUTPUT_FOLDER [STUDY]

Without STUDY, the script writes campaigns into a database of its own and takes pictures of raters' and
organisers' pages. If STUDY names a finished study in the database of CREAMTEA_DATABASE_URL, the script takes
the picture of that study's report.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), *(str(TESTS / room) for room in ("webapp", "report", "human"))]

from filled_study import fill_study, lines
from marked_text import drag_over
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from rating_board import item_on, items_on, own_campaign, press_at, save, shown_texts
from ready_campaigns import draft_campaign, launched_campaign
from sqlalchemy import select, update
from watched import at_rest, launch_browser, new_context

from creamtea.access import audit, sessions
from creamtea.human import rating as assignment
from creamtea.human.making import campaigns
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.rating import raters
from creamtea.settings import Settings
from creamtea.store.database import Database, open_database
from creamtea.store.schema import upgrade
from creamtea.store.tables import Assignment, Campaign, Rater

DESKTOP, PHONE = 1280, 390
SERVE = [sys.executable, "-c", "from creamtea.cli.main import main; main()", "serve"]


def main(output: Path, study: str | None) -> None:
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        url = Settings.load().database_url if study else f"sqlite:///{place}/creamtea.db"
        if study is None:
            upgrade(url)
        database = open_database(url)
        if study is None:
            fill_study(database, lines(60))
            write_raters_campaigns(database)
            write_organisers_campaigns(database)
        with served({**os.environ, "CREAMTEA_DATABASE_URL": url}) as site, sync_playwright() as playwright:
            expect.set_options(timeout=60_000)
            camera = Camera(launch_browser(playwright), database, site, output)
            if study is None:
                photograph_raters_pages(camera)
                photograph_organisers_pages(camera)
            else:
                camera.organiser(
                    "report-answer", "", DESKTOP, lambda page: open_study(page, study), height=660
                )
            camera.browser.close()
        database.close()


@contextmanager
def served(environment: dict[str, str]) -> Iterator[str]:
    """The address of a `creamtea serve` with this environment."""
    log = Path(tempfile.mkdtemp()) / "log"
    with log.open("wb") as sink:
        command = [*SERVE, "--port", "0", "--no-browser"]
        server = subprocess.Popen(command, env=environment, stdout=sink, stderr=subprocess.STDOUT)
    try:
        while (link := re.search(r"served at (http://[^\s;]+)", log.read_text())) is None:
            if server.poll() is not None:
                sys.exit(log.read_text())
            time.sleep(0.1)
        yield link[1]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


@dataclass
class Camera:
    browser: Browser
    database: Database
    site: str
    output: Path
    raters: int = 0

    def picture(
        self, name: str, link: str, width: int, act: Callable[[Page], Any], height: int | None = None
    ) -> None:
        """`height` in pixels; None for the whole page."""
        context = new_context(self.browser, viewport={"width": width, "height": 900}, device_scale_factor=1)
        page = context.new_page()
        page.goto(f"{self.site}/enter#{link}")
        act(page)
        if height is None:  # Streamlit scrolls inside of the window
            page.set_viewport_size({"width": width, "height": 200})
            page.wait_for_timeout(300)
            height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(800)  # the plots
        at_rest(page)
        path = self.output / f"{name}.png"
        page.screenshot(path=path)
        # 64 colours are enough for type and lines
        Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
        context.close()

    def rater(
        self, name: str, campaign: str, width: int, act: Callable[[Page], Any], *, consented: bool = True
    ) -> None:
        """Take a picture of what a new rater sees after `act`."""
        self.raters += 1
        rater = raters.find_or_add(self.database, campaign, audit.COMMAND_LINE, f"rater-{self.raters:02}")
        if consented:
            raters.consent(self.database, rater)
        self.picture(name, sessions.create_link(self.database, "rater", rater_id=rater), width, act)

    def organiser(
        self, name: str, address: str, width: int, act: Callable[[Page], Any], height: int | None = None
    ) -> None:
        def go(page: Page) -> None:
            page.get_by_role("heading", name="Studies").wait_for()
            page.goto(f"{self.site}/{address}")
            act(page)
            at_rest(page)

        self.picture(name, sessions.create_link(self.database, "organiser"), width, go, height)


def open_study(page: Page, study: str) -> None:
    page.get_by_role("link", name=study, exact=True).click()
    page.locator(".outputs .segment").first.wait_for()


# ---------------------------------------------------------------- raters' pages

SOURCE = "It was raining cats and dogs, so we stayed at home."
CONTEXT = ["We had planned to have tea in the garden."]
OUTPUTS = [
    "Es regnete in Strömen, also blieben wir zu Hause.",
    "Es regnete Katzen und Hunde, also blieben wir zu Hause.",
    "Es regnete in Strömen, deshalb sind wir daheim geblieben.",
    "Es regnete, also wir blieben zu Hause.",
]
DOCUMENT = [*CONTEXT, SOURCE, "By five o'clock the sun was out, and nobody remembered the rain."]
TRANSLATION = [
    "Wir hatten vor, im Garten Tee zu trinken.",
    "Es regnete in Strömen, also blieben wir zu Hause.",
    "Um fünf schien die Sonne, und niemand dachte mehr an den Regen.",
]
PRACTICE = ("Break a leg!", ["Hals- und Beinbruch!", "Brich ein Bein!"])
GUIDANCE = {
    "steps": {"0": [20, 25], "1": [0, 10]},
    "explanation": "An idiom is translated by what it means. “Brich ein Bein!” says something else.",
}
INSTRUCTIONS = """Give each translation a value for how well it says what the source says.

- **6**: everything is said, in good language
- **1**: something else is said, or nothing that makes sense

Meaning counts more than style. Look nothing up for longer than a minute."""


def write_raters_campaigns(database: Database) -> None:
    def twenty(outputs: list[str]) -> list[tuple[str, list[str]]]:
        return [(SOURCE, outputs)] * 20

    own_campaign(database, "columns", twenty(OUTPUTS), instructions=INSTRUCTIONS)
    own_campaign(database, "practice", [PRACTICE], item_kind="tutorial", item_guidance=GUIDANCE)
    own_campaign(database, "points", twenty(OUTPUTS[:1]), protocol="da-sqm", item_context=CONTEXT)
    own_campaign(database, "errors", twenty(OUTPUTS[1:2]), protocol="esa", item_context=CONTEXT)
    own_campaign(database, "pair", twenty(OUTPUTS[:2]), protocol="preference")
    text = [(source, [output]) for source, output in zip(DOCUMENT, TRANSLATION, strict=True)]
    whole = {"unit": "document", "document_score": True}
    pages = {"pages": [len(text)], "item_document": "tea", "settings": whole}
    own_campaign(database, "document", text, protocol="da", **pages)


def photograph_raters_pages(camera: Camera) -> None:
    def welcome(page: Page) -> None:
        page.get_by_role("button", name="I agree, begin").wait_for()

    def columns(page: Page) -> None:
        item_on(page, 1)
        for row, text in enumerate(shown_texts(page)[:3]):
            press_at(page, row, (25, 5, 23, 14)[OUTPUTS.index(text)])
        page.get_by_role("button", name="Show differences").click()
        page.mouse.move(0, 0)

    def points(page: Page) -> None:
        item_on(page, 1)
        press_at(page, 0, 82, steps=101)

    def errors(page: Page) -> None:
        item_on(page, 1)
        drag_over(page, "Katzen", "Hunde")
        for key in ("2", "End", "ArrowLeft"):
            page.keyboard.press(key)

    def pair(page: Page) -> None:
        item_on(page, 1)
        better = "AB"[shown_texts(page).index(OUTPUTS[0])]
        page.get_by_role("radio", name=f"{better} is better").click()

    def document(page: Page) -> None:
        items_on(page, 1, len(DOCUMENT), len(DOCUMENT))
        for row, value in enumerate((92, 74)):
            press_at(page, row, value, steps=101)

    def practice(page: Page) -> None:
        item_on(page, 1)
        for row in range(2):
            press_at(page, row, 22)
        save(page)
        page.get_by_role("button", name="Continue").wait_for()

    camera.rater("welcome-desktop", "columns", DESKTOP, welcome, consented=False)
    for width, name in ((DESKTOP, "desktop"), (PHONE, "phone")):
        camera.rater(f"rating-{name}", "columns", width, columns)
        camera.rater(f"rating-points-{name}", "points", width, points)
    camera.rater("rating-pair-phone", "pair", PHONE, pair)
    camera.rater("rating-errors-desktop", "errors", DESKTOP, errors)
    camera.rater("rating-document-desktop", "document", DESKTOP, document)
    camera.rater("rating-practice-desktop", "practice", DESKTOP, practice)


# ---------------------------------------------------------------- organisers' pages

SYSTEMS = ["tapir-greedy", "tapir-lexicon", "dugong-greedy"]
WHAT: dict[str, Any] = {"study": "quagga", "test_set": "narwhal", "systems": SYSTEMS}
KINDS = {"rater-01": "honest", "rater-02": "honest", "rater-03": "honest", "rater-04": "at random"}


def write_organisers_campaigns(database: Database) -> None:
    """A launched campaign with three honest raters, and one who answers at random; and a draft."""
    settings = CampaignSettings(items=24, bad_references=7, repeats=4)
    launched_campaign(database, "taste-1", ratings_per_item=4, settings=settings, **WHAT)
    draw = random.Random(4)
    worth: dict[str, float] = {}
    made = {text for _, outputs in lines(60) for text in outputs}
    for pseudonym, kind in KINDS.items():
        rater = raters.add(database, "taste-1", audit.COMMAND_LINE, pseudonym=pseudonym)
        raters.consent(database, rater)
        for _ in range(35 if pseudonym != "rater-03" else 21):
            work = assignment.next_item(database, rater)
            assert work is not None
            steps = []
            for text in work.outputs:
                # a text that no system made is a spoilt one
                usual = worth.setdefault(f"{work.source}|{text}", draw.gauss(15 if text in made else 7, 4))
                score = draw.uniform(0, 25) if kind == "at random" else draw.gauss(usual, 2.5)
                steps.append(min(25, max(0, round(score))))
            assignment.submit(database, rater, work.assignment_id, steps)
            # a submit takes no longer times than have passed
            seconds = draw.lognormvariate(3.4, 0.4) if kind == "honest" else draw.uniform(3, 15)
            with database.transaction() as writing:
                one = update(Assignment).where(Assignment.id == work.assignment_id)
                writing.execute(one.values(active_ms=int(1000 * seconds)))
    draft_campaign(database, "taste-2", campaigns.CampaignRequest(ratings_per_item=2, **WHAT))


def photograph_organisers_pages(camera: Camera) -> None:
    with camera.database.session() as reading:
        numbers = dict(reading.execute(select(Campaign.name, Campaign.id)).all())
        rater = reading.scalars(
            select(Rater.id).where(Rater.pseudonym == "rater-04", Rater.campaign_id == numbers["taste-1"])
        ).one()
    draft, launched = f"?campaign={numbers['taste-2']}", f"?campaign={numbers['taste-1']}"
    for name, address, width, word in (
        ("organiser-draft-desktop", draft, DESKTOP, "rater hours"),
        ("organiser-progress-phone", launched, PHONE, "Progress"),
        ("organiser-rater-desktop", f"{launched}&view=raters&rater={rater}", DESKTOP, "Scores"),
    ):
        camera.organiser(
            name, address, width, lambda page, word=word: page.get_by_text(word).first.wait_for()
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("study", nargs="?")
    options = parser.parse_args()
    main(options.folder, options.study)
