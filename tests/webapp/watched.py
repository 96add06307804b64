"""Browser contexts whose pages know what they have asked the server for, and when nothing moves any more.

With `CREAMTEA_SLOW_BROWSER=4,300` in the environment pages compute four times as slowly, and what they and
the server say to each other arrives 300 ms late: a test that acts too early then fails each time.
"""

import itertools
import os
import shutil
from typing import Any

from limits import ANSWER, MILLISECONDS

# The shell has no windows, which are a third of what a page costs.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# Streamlit's own state of a page changes only when the server's first message arrives: between a click and
# that moment a page looks as if nothing had been asked for. So what passes over its WebSocket is looked at:
# of each message the number of its field in BackMsg.proto or ForwardMsg.proto.
WATCH = """(late) => {
    const [RERUN, NEW_SESSION, FINISHED, EARLY] = [11, 4, 6, 2];
    const fields = (data) => {
        const bytes = new Uint8Array(data);
        const found = new Map();
        let at = 0;
        const number = () => {
            let [value, scale] = [0, 1];
            for (;;) {
                const byte = bytes[at++];
                value += (byte & 127) * scale;
                if (byte < 128) return value;
                scale *= 128;
            }
        };
        while (at < bytes.length) {
            const tag = number();
            const size = { 0: 0, 1: 8, 2: null, 5: 4 }[tag & 7];
            const value = size === 0 || size === null ? number() : 0;
            found.set(tag >>> 3, value);
            at += size ?? value;
        }
        return found;
    };
    // A run that had begun before something was asked for does not answer it.
    const state = { runs: "answered" };
    const heard = (data) => {
        const message = fields(data);
        if (message.has(NEW_SESSION) && state.runs === "asked") state.runs = "begun";
        if (message.has(FINISHED) && state.runs === "begun")
            state.runs = message.get(FINISHED) === EARLY ? "asked" : "answered";
    };
    window.WebSocket = class extends WebSocket {
        constructor(...where) {
            super(...where);
            state.runs = "answered";  // what was asked for over one that is gone nobody hears
            const seen = new WeakSet();
            this.addEventListener("message", (event) => {
                if (late === 0) return heard(event.data);
                if (seen.has(event)) return;
                event.stopImmediatePropagation();
                setTimeout(() => {
                    const again = new MessageEvent("message", { data: event.data, origin: event.origin });
                    seen.add(again);
                    heard(event.data);
                    this.dispatchEvent(again);
                }, late);
            });
        }
        send(data) {
            if (this.readyState === WebSocket.OPEN && fields(data).has(RERUN)) state.runs = "asked";
            if (late === 0) super.send(data);
            else setTimeout(() => super.send(data), late);
        }
    };
    // inside open shadow roots, too, but for the parts of drawings
    const deep = (root) => [...root.querySelectorAll(":not(svg *)")].flatMap(
        (one) => one.shadowRoot ? [one, ...deep(one.shadowRoot)] : [one]);
    const moves = () => document.getAnimations().some(
        (one) => one.playState === "running" && one.effect.getComputedTiming().endTime !== Infinity);
    const loading = '[data-stale="true"], [data-testid="stSkeleton"], [data-testid="stFileChipIconSpinner"]';
    const why = () => {
        const app = document.querySelector('[data-testid="stApp"]');
        if (app?.dataset.testScriptState !== "notRunning") return "the script has not ended";
        if (state.runs !== "answered") return `a run is ${state.runs}`;
        if (document.querySelector(loading) !== null) return "something old is left, or something is loaded";
        if (document.fonts.status !== "loaded") return "fonts are loaded";
        return moves() ? "something is animated" : "";
    };
    let [asker, boxes, frames] = [0, 0, 0];  // boxes: a hash, since a page may have thousands
    window.watched = {
        why: () => why() || "something moves",
        // Called once a frame: whether all is where it was two frames before, since `number` first asked.
        atRest: (number) => {
            const all = why() === "" ? deep(document.body) : [];
            const pictures = all.filter((one) => one.localName === "img" && one.loading !== "lazy");
            if (number !== asker || all.length === 0 || pictures.some((one) => !one.complete)) {
                [asker, boxes, frames] = [number, 0, 0];
                return false;
            }
            let now = all.length;
            for (const one of all) {
                const { x, y, width, height } = one.getBoundingClientRect();
                for (const side of [x, y, width, height]) now = (now * 31 + side * 64) % 4294967291;
            }
            frames = now === boxes ? frames + 1 : 0;
            boxes = now;
            return frames >= 2;
        },
    };
}"""
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
