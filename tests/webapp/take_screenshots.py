"""Take the screenshots of a report in docs/images, from a database with a finished study.

    PYTHONPATH=tests CREAMTEA_DATABASE_URL=… python tests/webapp/take_screenshots.py STUDY OUTPUT_FOLDER

Serves the app and photographs the study's report at the widths of a desktop and a phone. The rater's pages
are in take_rating_screenshots.py.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from watched import launch_browser, new_context

from creamtea.access import sessions
from creamtea.settings import Settings
from creamtea.store.database import Database, open_database

WIDTHS = {"desktop": (1280, 1480), "phone": (390, 1100)}
SERVE = [sys.executable, "-c", "from creamtea.cli.main import main; main()", "serve"]


def main(study: str, folder: str) -> None:
    database = open_database(Settings.load().database_url)
    output = Path(folder)
    output.mkdir(parents=True, exist_ok=True)
    with served(dict(os.environ)) as url, sync_playwright() as playwright:
        browser = launch_browser(playwright)
        photograph(browser, database, url, study, output)
        browser.close()


@contextmanager
def served(environment: dict[str, str]) -> Iterator[str]:
    """The address of a `creamtea serve` with this environment."""
    log = Path(tempfile.mkdtemp()) / "log"
    with log.open("wb") as sink:
        server = subprocess.Popen(
            [*SERVE, "--port", "0", "--no-browser"], env=environment, stdout=sink, stderr=subprocess.STDOUT
        )
    try:
        while (link := re.search(r"served at (http://[^\s;]+)", log.read_text())) is None:
            if server.poll() is not None:
                sys.exit(log.read_text())
            time.sleep(0.1)
        yield link[1]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def photograph(browser: Browser, database: Database, url: str, study: str, output: Path) -> None:
    for name, (width, height) in WIDTHS.items():
        context = new_context(browser, viewport={"width": width, "height": height}, device_scale_factor=1)
        page = context.new_page()
        page.goto(f"{url}/enter#{sessions.create_link(database, 'reader')}")
        page.get_by_role("link", name=study, exact=True).click()
        page.locator(".outputs .segment").first.wait_for()
        page.wait_for_timeout(3000)  # the plots
        page.screenshot(path=output / f"report-{name}.png")
        context.close()


def tall(page: Page, width: int) -> None:
    """Make the window as tall as what it shows: Streamlit scrolls inside of it."""
    page.set_viewport_size({"width": width, "height": 200})
    page.wait_for_timeout(300)
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(800)


if __name__ == "__main__":
    main(*sys.argv[1:])
