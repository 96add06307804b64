"""Browser contexts whose pages know what they have asked the server for, and when nothing moves any more.

With `CREAMTEA_SLOW_BROWSER=4,300` in the environment pages compute four times as slowly, and what they and
the server say to each other arrives 300 ms late: a test that acts too early then fails each time.
"""

import itertools
import os
import shutil
from pathlib import Path
from typing import Any

from limits import ANSWER, MILLISECONDS

# The shell has no windows, which are a third of what a page costs.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def script(name: str) -> str:
    """Return the function that a file of JavaScript beside this one has."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8").rstrip("; \n")


# Streamlit's own state of a page changes only when the server's first message arrives: between a click and
# that moment a page looks as if nothing had been asked for. So what passes over its WebSocket is looked at:
# of each message the number of its field in BackMsg.proto or ForwardMsg.proto.
WATCH = script("watch.js")
# Keys that are pressed one after another are typed together, however busy the machine is.
SLOW_CLOCK = """() => {
    if (location.origin === "null" || !sessionStorage.slowClock) return;
    const now = performance.now.bind(performance);
    performance.now = () => now() / 20;
}"""
_numbers = itertools.count(1)

SLOW, LATE = (float(number) for number in os.environ.get("CREAMTEA_SLOW_BROWSER", "1,0").split(","))


def new_context(browser: Any, late: float = LATE, **options: Any) -> Any:
    """With these options of Playwright's; messages arrive `late` milliseconds late."""
    context = browser.new_context(**options)
    context.set_default_timeout(ANSWER * MILLISECONDS)
    context.add_init_script(f"({WATCH})({late}); ({SLOW_CLOCK})();")
    if SLOW > 1:
        context.on("page", _slow_down)
    return context


def _slow_down(page: Any) -> None:
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOW})


def press(button: Any, **how: Any) -> None:
    """Click on what nothing is about to move or to replace. Scrolled to beforehand: a list that a click opens
    closes when the page scrolls."""
    at_rest(button.page)
    button.scroll_into_view_if_needed()
    at_rest(button.page)
    button.click(**how)


def at_rest(page: Any) -> None:
    """Wait until all that a page of Streamlit's asked for is answered, nothing is left of what it showed
    before, and nothing moves: what is clicked on stays where it is, and what is read is up to date."""
    from playwright.sync_api import TimeoutError as TimedOut  # nobody who skips these tests has it

    try:
        page.wait_for_function("number => watched.atRest(number)", arg=next(_numbers), polling="raf")
    except TimedOut as late:
        raise AssertionError(f"never at rest: {page.evaluate('watched.why()')}") from late


def installed_browser() -> str | None:
    """The path of a Chromium on this machine, of those that .ci/browser installs or takes."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def launch_browser(playwright: Any) -> Any:
    """That Chromium, or else Playwright's own."""
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=installed_browser(), args=arguments)
