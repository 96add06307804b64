"""The documentation in a browser: its search works without a network, and axe-core finds nothing."""

import functools
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from accessibility import violations
from built_site import built_site
from limits import wait_until
from playwright.sync_api import expect

from creamtea.cli.docs import SiteHandler

pytestmark = pytest.mark.slow
PAGES = ("tutorial", "reference/environment")  # axe-core takes a minute for the longest ones


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = built_site(tmp_path_factory)
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(SiteHandler, directory=str(folder))
    ) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_pages_can_be_searched_and_read_by_everybody(chromium: Any, address: str) -> None:
    page = chromium.new_page()
    foreign: list[str] = []
    page.on("request", lambda request: foreign.append(request.url) if address not in request.url else None)
    page.goto(address)
    box, results = page.get_by_role("textbox", name="Search"), page.locator(".md-search-result__link")

    def typed() -> bool:
        """The page's script, which listens to keys, may not be there yet when the first letters come."""
        if results.count() == 0:
            box.clear()
            box.press_sequentially("warmup")
        return bool(results.count())

    wait_until(typed, what=lambda: "for results of the search")
    expect(results.first).to_be_visible()
    found = []
    for name in PAGES:
        page.goto(f"{address}{name}.html")
        expect(page.locator(".md-typeset h1")).to_be_visible()
        for width, theme, scheme in ((1280, "light", "default"), (390, "dark", "slate")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            expect(page.locator(f"body[data-md-color-scheme={scheme}]")).to_be_visible()
            found += [
                (name, width, theme, rule["id"], rule["nodes"][0]["html"][:150]) for rule in violations(page)
            ]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    assert found == []
    assert [url for url in foreign if not url.startswith(("data:", "blob:"))] == []
    page.close()
