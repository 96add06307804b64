"""Take the screenshots of the rater's pages in docs/images, of a campaign written here.

    PYTHONPATH=tests:tests/report:tests/human python tests/webapp/take_rating_screenshots.py OUTPUT_FOLDER

Needs no study: it makes a database of its own and serves it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from marked_text import drag_over
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from rating_board import item_on, items_on, own_campaign, press_at, save, shown_texts
from take_screenshots import served, tall
from watched import launch_browser, new_context

from creamtea.access import audit, sessions
from creamtea.human.rating import raters
from creamtea.store.database import Database, open_database
from creamtea.store.schema import upgrade

DESKTOP, PHONE = 1280, 390
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


def main(folder: str) -> None:
    output = Path(folder)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        url = f"sqlite:///{place}/creamtea.db"
        upgrade(url)
        database = open_database(url)
        campaigns(database)
        with (
            served({**os.environ, "CREAMTEA_DATABASE_URL": url}) as site,
            sync_playwright() as playwright,
        ):
            expect.set_options(timeout=60_000)
            browser = launch_browser(playwright)
            photograph(browser, database, site, output)
            browser.close()
        database.close()


def campaigns(database: Database) -> None:
    twenty = [(SOURCE, OUTPUTS)] * 20
    own_campaign(database, "columns", twenty, instructions=INSTRUCTIONS)
    own_campaign(database, "practice", [PRACTICE], item_kind="tutorial", item_guidance=GUIDANCE)
    own_campaign(
        database,
        "points",
        [(source, outputs[:1]) for source, outputs in twenty],
        protocol="da-sqm",
        item_context=CONTEXT,
    )
    literal = [(SOURCE, OUTPUTS[1:2])] * 20
    own_campaign(database, "errors", literal, protocol="esa", item_context=CONTEXT)
    pairs = [(source, outputs[:2]) for source, outputs in twenty]
    own_campaign(database, "pair", pairs, protocol="preference")
    text = [(source, [output]) for source, output in zip(DOCUMENT, TRANSLATION, strict=True)]
    own_campaign(
        database,
        "document",
        text,
        protocol="da",
        pages=[len(text)],
        item_document="tea",
        settings={"unit": "document", "document_score": True},
    )


def photograph(browser: Browser, database: Database, site: str, output: Path) -> None:
    names = (f"rater-{number:02}" for number in range(1, 100))

    def picture(
        name: str, campaign: str, width: int, act: Callable[[Page], Any], *, consented: bool = True
    ) -> None:
        rater = raters.find_or_add(database, campaign, audit.COMMAND_LINE, next(names))
        if consented:
            raters.consent(database, rater)
        context = new_context(browser, viewport={"width": width, "height": 900}, device_scale_factor=1)
        page = context.new_page()
        page.goto(f"{site}/enter#{sessions.create_link(database, 'rater', rater_id=rater)}")
        act(page)
        tall(page, width)
        expect(page.locator('[data-stale="true"]')).to_have_count(0)
        page.screenshot(path=output / f"{name}.png")
        shrink(output / f"{name}.png")
        context.close()

    picture("welcome-desktop", "columns", DESKTOP, welcome, consented=False)
    for width, name in ((DESKTOP, "desktop"), (PHONE, "phone")):
        picture(f"rating-{name}", "columns", width, columns)
        picture(f"rating-points-{name}", "points", width, points)
        picture(f"rating-pair-{name}", "pair", width, pair)
        picture(f"rating-errors-{name}", "errors", width, errors)
    picture("rating-document-desktop", "document", DESKTOP, document)
    picture("rating-practice-desktop", "practice", DESKTOP, practice)


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
    page.keyboard.press("2")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")


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


def shrink(picture: Path) -> None:
    """64 colours are enough for type and lines."""
    Image.open(picture).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
