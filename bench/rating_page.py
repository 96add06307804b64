"""How fast the rating page is, in a real Chromium on this machine's own server.

    python bench/rating_page.py [--items 40] [--segments 1] [--study NAME] [--json]

It makes a database with one campaign of four outputs per item, serves it, and rates as a person does: keys
for the values, then *Save*. With `--segments` an item is a page of so many segments. It prints
- first load: from the request to a board that can be used, with an empty cache (median of five), and the
  bytes that came over HTTP, compressed as they were, and over the WebSocket;
- the same with a warm cache;
- with `--study`, the first load of a report: that study's in the database of CREAMTEA_DATABASE_URL, from the
  request to its answer, with an empty cache;
- from *Save* to the next item on the screen: p50 and p95, and WebSocket bytes in both directions per item.

Needs Chromium and the `dev` extra (`make browser`). Other work on the machine makes it slower: run it on a
quiet one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from creamtea.access import audit, sessions
from creamtea.human.rating import raters
from creamtea.settings import Settings
from creamtea.store.database import Database, open_database
from creamtea.store.schema import upgrade
from creamtea.store.tables import Campaign, Item

SOURCE = "The committee postponed its decision until the autumn, because two members were travelling."
OUTPUT = (
    "Der Ausschuss hat seine Entscheidung auf den Herbst verschoben, weil zwei Mitglieder auf Reisen waren"
)
SYSTEMS = ("a", "b", "c", "d")
LOADS = 5
START = 60.0  # seconds that the server may take to start
# in the page: click on Save, and wait until the next item stands there and has been painted
SAVE_AND_WAIT = """async (begin) => {
    const boards = (root = document) => [...root.querySelectorAll("*")].flatMap((element) => [
        ...(element.classList?.contains("board") ? [element] : []),
        ...(element.shadowRoot ? boards(element.shadowRoot) : []),
    ]);
    const count = (board) => board.querySelector(".count").textContent;
    const started = performance.now();
    boards()[0].querySelector("button.save:not(.skips)").click();
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    while (!boards().some((board) => count(board).startsWith(begin))) await frame();
    await frame();
    return performance.now() - started;
}"""


@dataclass
class Load:
    seconds: float
    http: int = 0  # bytes as they came, heads included
    websocket: int = 0
    requests: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=40, help="items that are rated and timed")
    parser.add_argument("--segments", type=int, default=1, help="of a document, on one page")
    parser.add_argument("--study", help="a finished study in the database of CREAMTEA_DATABASE_URL")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/creamtea.db"
        upgrade(url)
        database = open_database(url)
        fill(database, options.items + 1, options.segments)
        with served(Path(folder), url) as site, sync_playwright() as playwright:
            browser = launched(playwright)
            figures = measured(browser, database, site, options.items, options.segments)
            if options.study:
                figures["first load of a report"] = asdict(loaded_report(browser, options.study))
            browser.close()
        database.close()
    print(json.dumps(figures, indent=1) if options.json else words(figures))


def fill(database: Database, pages: int, segments: int) -> None:
    with database.transaction() as session:
        now = database.now(session)
        campaign = Campaign(
            name="bench", test_set="test", protocol="contrastive-da", systems=list(SYSTEMS),
            source_language="en", target_language="de", ratings_per_item=1, seed=1,
            instructions="Give every translation a value.",
            settings={"unit": "document"} if segments > 1 else {}, state="launched",
            created_at=now, launched_at=now,
        )  # fmt: skip
        session.add(campaign)
        session.flush()
        session.add_all(
            Item(
                campaign_id=campaign.id, position=number, kind="rated", segment_index=number, document="",
                page=number - number % segments if segments > 1 else None,
                source=f"{SOURCE} ({number})", context=[], systems=list(range(len(SYSTEMS))),
                outputs=[f"{OUTPUT}, {system} {number}." for system in SYSTEMS], weight=1.0,
            )
            for number in range(pages * segments)
        )  # fmt: skip


@contextmanager
def served(folder: Path, url: str) -> Iterator[str]:
    """The address of a server of its own on this database."""
    log = folder / "server.log"
    command = [sys.executable, "-c", "from creamtea.cli.main import main; main()"]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*command, "serve", "--port", "0", "--no-browser"],
            env={**os.environ, "CREAMTEA_DATABASE_URL": url, "CREAMTEA_HOME": str(folder)},
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START
        while not (found := re.search(r"http://127\.0\.0\.1:\d+(?=\D)", log.read_text())):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the server did not start:\n{log.read_text()}")
            time.sleep(0.1)
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def launched(playwright: Any) -> Browser:
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    executable = next((found for name in names if (found := shutil.which(name))), None)
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    browser: Browser = playwright.chromium.launch(executable_path=executable, args=sandbox)
    return browser


def measured(browser: Browser, database: Database, site: str, items: int, segments: int) -> dict[str, Any]:
    rater = raters.add(database, "bench", audit.COMMAND_LINE)
    raters.consent(database, rater)
    context = contexts(browser, database, site, sessions.create_link(database, "rater", rater_id=rater))
    visit(context(), site)  # the server's own first time
    cold = [visit(context(), site) for _ in range(LOADS)]
    kept = context()
    visit(kept, site)
    warm = [visit(kept, site) for _ in range(LOADS)]
    times, sizes = rated(context(), site, items, segments)
    return {
        "first load": asdict(middle(cold)),
        "load with a warm cache": asdict(middle(warm)),
        "save to next item, ms": {
            "p50": statistics.median(times),
            "p95": statistics.quantiles(times, n=20)[-1],
            "items": len(times),
        },
        "websocket bytes per item": {"p50": statistics.median(sizes), "largest": max(sizes)},
        "machine": f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {platform.platform()}",
    }


def contexts(browser: Browser, database: Database, site: str, link: str) -> Callable[[], BrowserContext]:
    """Return what makes browser contexts with an empty cache and the session that this link opens."""
    opened = sessions.exchange(database, link)
    cookie: Any = {"name": f"creamtea-{urlsplit(site).port}", "value": opened.secret, "url": site}

    def context() -> BrowserContext:
        fresh = browser.new_context(viewport={"width": 1280, "height": 900})
        fresh.add_cookies([cookie])
        return fresh

    return context


def loaded_report(browser: Browser, study: str) -> Load:
    """Return the median of first loads of a study's report."""
    url = Settings.load().database_url
    database = open_database(url)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), url) as site:
        context = contexts(browser, database, site, sessions.create_link(database, "organiser"))
        address = f"{site}/?study={quote(study)}"
        loads = [visit(context(), address, ".answer") for _ in range(LOADS + 1)]
    database.close()
    return middle(loads[1:])  # without the server's own first time


def visit(context: BrowserContext, address: str, ready: str = ".board button.save:not(.skips)") -> Load:
    page, load = watched(context)
    started = time.perf_counter()
    page.goto(address)
    page.locator(ready).first.wait_for()
    load.seconds = time.perf_counter() - started
    page.wait_for_load_state("networkidle")
    page.close()
    return load


def watched(context: BrowserContext) -> tuple[Page, Load]:
    """A page, and what comes to it."""
    page, load = context.new_page(), Load(0.0)
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")

    def came(event: dict[str, Any]) -> None:
        load.http += int(event["encodedDataLength"])
        load.requests += 1

    def frame(event: dict[str, Any]) -> None:
        text = event["response"]["payloadData"]
        binary = event["response"]["opcode"] == 2
        load.websocket += len(text) * 3 // 4 if binary else len(text.encode())  # binary comes as base64

    wire.on("Network.loadingFinished", came)
    wire.on("Network.webSocketFrameReceived", frame)
    wire.on("Network.webSocketFrameSent", frame)
    return page, load


def rated(context: BrowserContext, site: str, items: int, segments: int) -> tuple[list[float], list[int]]:
    """Milliseconds from Save to the next item, and bytes of each whole item: its draft, saving, the next."""
    page, load = watched(context)
    page.goto(site)
    times, sizes = [], []
    keys = ["4", "Enter", "3", "Enter", "2", "Enter", "5", "Enter"] * segments
    for number in range(1, items + 1):
        page.get_by_text(re.compile(f"^{head(number, segments)} ")).wait_for()
        before = load.websocket
        for key in keys[:-1]:
            page.keyboard.press(key)
        page.locator(".board[data-draft=saved]").wait_for()
        times.append(page.evaluate(SAVE_AND_WAIT, f"{head(number + 1, segments)} "))
        page.wait_for_timeout(300)  # the end of the script, whose bytes count
        sizes.append(load.websocket - before)
    page.close()
    return times, sizes


def head(number: int, segments: int) -> str:
    """How the count above a page begins."""
    return f"Item {number}" if segments == 1 else f"Items {segments * (number - 1) + 1} to"


def middle(loads: list[Load]) -> Load:
    return sorted(loads, key=lambda load: load.seconds)[len(loads) // 2]


def words(figures: dict[str, Any]) -> str:
    lines = []
    for name in ("first load", "load with a warm cache", "first load of a report"):
        if (load := figures.get(name)) is None:
            continue
        lines.append(
            f"{name}: {load['seconds']:.2f} s, {load['http'] / 1e6:.2f} MB over HTTP in {load['requests']} "
            f"requests, {load['websocket'] / 1e3:.1f} kB over the WebSocket"
        )
    times, sizes = figures["save to next item, ms"], figures["websocket bytes per item"]
    lines += [
        f"Save to next item: p50 {times['p50']:.0f} ms, p95 {times['p95']:.0f} ms ({times['items']} items)",
        f"WebSocket bytes per item: p50 {sizes['p50'] / 1e3:.1f} kB, largest {sizes['largest'] / 1e3:.1f} kB",
        f"on {figures['machine']}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
