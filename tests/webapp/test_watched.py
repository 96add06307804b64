"""`at_rest` waits for all that would make a test act or look too early, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from watched import at_rest, new_context

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><div data-testid="stApp" data-test-script-state="notRunning">
<p id="one">Text</p><script>const one = document.getElementById("one"), app = one.parentElement;
const end = () => { window.ended = true; };
const grow = (element, size, left) => {
    element.style.width = `${size}px`;
    left > 0 ? requestAnimationFrame(() => grow(element, size + 1, left - 1)) : end();
};</script><script>%s</script></div>"""
UNREST = {
    "moves": "grow(one, 1, 30);",
    "moves in a shadow": """const inside = document.createElement("p");
        app.attachShadow({ mode: "open" }).append(inside);
        grow(inside, 1, 30);""",
    "fades": "one.animate([{ opacity: 0 }, { opacity: 1 }], 400).finished.then(end);",
    "is stale": 'one.dataset.stale = "true"; setTimeout(() => { delete one.dataset.stale; end(); }, 400);',
    "is loaded": """const bones = document.createElement("p");
        bones.dataset.testid = "stSkeleton"; app.append(bones);
        setTimeout(() => { bones.remove(); end(); }, 400);""",
    "runs": """app.dataset.testScriptState = "running";
        setTimeout(() => { app.dataset.testScriptState = "notRunning"; end(); }, 400);""",
}


@pytest.mark.parametrize("what", UNREST)
def test_it_waits_for_what(open_page: Any, what: str) -> None:
    page = open_page("about:blank")
    page.set_content(PAGE % UNREST[what])
    at_rest(page)
    assert page.evaluate("window.ended")


def test_what_is_animated_for_ever_holds_nobody_up(open_page: Any) -> None:
    page = open_page("about:blank")
    page.set_content(
        PAGE % "one.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 100, iterations: Infinity });"
    )
    at_rest(page)


@pytest.mark.slow
def test_it_waits_for_an_answer_that_is_late(site: Any, chromium: Any) -> None:
    context = new_context(chromium, late=700)
    page = context.new_page()
    page.goto(site.new_link("reader"))
    page.get_by_role("link", name="quagga").click()
    expect(page.locator(".outputs .segment")).to_have_count(10)
    at_rest(page)
    field = page.get_by_label("Containing")
    field.fill("你好")
    field.press("Enter")
    at_rest(page)  # Streamlit's page does not know yet that a run will come
    assert page.locator(".outputs .segment .where").all_text_contents() == ["4"]
    context.close()
