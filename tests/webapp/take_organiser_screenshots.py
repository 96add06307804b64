"""Take the screenshots of the organiser's pages in docs/images, of campaigns written here.

    PYTHONPATH=tests:tests/report:tests/human python tests/webapp/take_organiser_screenshots.py OUTPUT_FOLDER

Needs no study: it makes a database of its own, with a rated campaign and a draft, and serves it.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

from filled_study import fill_study, lines
from playwright.sync_api import Browser, expect, sync_playwright
from ready_campaigns import draft_campaign, launched_campaign
from sqlalchemy import update
from take_rating_screenshots import DESKTOP, PHONE, shrink
from take_screenshots import served, tall
from watched import launch_browser, new_context

from creamtea.access import audit, sessions
from creamtea.human import rating as assignment
from creamtea.human.making import campaigns
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.rating import raters
from creamtea.store.database import Database, open_database
from creamtea.store.schema import upgrade
from creamtea.store.tables import Assignment

WHAT = {
    "study": "quagga",
    "test_set": "narwhal",
    "systems": ["tapir-greedy", "tapir-lexicon", "dugong-greedy"],
}
KINDS = {"rater-01": "honest", "rater-02": "honest", "rater-03": "honest", "rater-04": "at random"}


def main(folder: str) -> None:
    output = Path(folder)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        url = f"sqlite:///{place}/creamtea.db"
        upgrade(url)
        database = open_database(url)
        fill_study(database, lines(60))
        rated(database)
        draft_campaign(database, "taste-2", campaigns.CampaignRequest(ratings_per_item=2, **WHAT))
        with served({**os.environ, "CREAMTEA_DATABASE_URL": url}) as site, sync_playwright() as playwright:
            expect.set_options(timeout=60_000)
            browser = launch_browser(playwright)
            photograph(browser, database, site, output)
            browser.close()
        database.close()


def rated(database: Database) -> None:
    """A launched campaign with three honest raters, and one who answers at random."""
    settings = CampaignSettings(items=24, bad_references=7, repeats=4)
    launched_campaign(database, "taste-1", ratings_per_item=4, settings=settings, **WHAT)
    draw = random.Random(4)
    worth: dict[str, float] = {}
    made = {text for _, outputs in lines(60) for text in outputs}
    for pseudonym, kind in KINDS.items():
        rater = raters.add(database, "taste-1", audit.COMMAND_LINE, pseudonym=pseudonym)
        raters.consent(database, rater)
        answers = 35 if pseudonym != "rater-03" else 21
        for _ in range(answers):
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


def photograph(browser: Browser, database: Database, site: str, output: Path) -> None:
    def picture(name: str, address: str, width: int, word: str) -> None:
        context = new_context(browser, viewport={"width": width, "height": 900}, device_scale_factor=1)
        page = context.new_page()
        page.goto(f"{site}/enter#{sessions.create_link(database, 'organiser')}")
        page.get_by_role("heading", name="Studies").wait_for()
        page.goto(f"{site}/{address}")
        page.get_by_text(word).first.wait_for()
        page.wait_for_timeout(3000)  # the plots
        tall(page, width)
        page.screenshot(path=output / f"{name}.png")
        shrink(output / f"{name}.png")
        context.close()

    picture("organiser-draft-desktop", "?campaign=2", DESKTOP, "rater hours")
    picture("organiser-progress-phone", "?campaign=1", PHONE, "Progress")
    picture("organiser-rater-desktop", "?campaign=1&view=raters&rater=4", DESKTOP, "Scores")


if __name__ == "__main__":
    main(*sys.argv[1:])
