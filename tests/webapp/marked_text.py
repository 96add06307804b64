"""Words of an output on a page, and the errors that somebody marked in it."""

from typing import Any

from playwright.sync_api import expect

MIDDLE = """(element, words) => {
    const at = element.textContent.indexOf(words);
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let [left, node] = [at, walker.nextNode()];
    while (node.length <= left) { left -= node.length; node = walker.nextNode(); }
    const range = document.createRange();
    range.setStart(node, left);
    range.setEnd(node, Math.min(node.length, left + words.length));
    const box = range.getClientRects()[0];
    return [box.left + box.width / 2, box.top + box.height / 2];
}"""


def passage(page: Any, row: int = 0) -> Any:
    return page.locator(".board .passage .text").nth(row)


def point_of(page: Any, word: str, row: int = 0) -> tuple[float, float]:
    """The middle of a word's first appearance."""
    text = passage(page, row)
    text.scroll_into_view_if_needed()
    x, y = text.evaluate(MIDDLE, word)
    return x, y


def drag_over(page: Any, first: str, last: str, row: int = 0) -> None:
    page.mouse.move(*point_of(page, first, row))
    page.mouse.down()
    page.mouse.move(*point_of(page, last, row), steps=3)
    page.mouse.up()


def click_on(page: Any, *words: str) -> None:
    for word in words:
        page.mouse.click(*point_of(page, word))


def tap_on(page: Any, *words: str, row: int = 0) -> None:
    for word in words:
        page.touchscreen.tap(*point_of(page, word, row))


def errors_are(page: Any, wanted: list[str]) -> None:
    """Wait until the list of errors has these, in all outputs one after another: "words: severity"."""
    rows = page.locator(".board .error")
    expect(rows).to_have_count(len(wanted))
    for row, one in zip(rows.all(), wanted, strict=True):
        words, severity = one.rsplit(": ", 1)
        expect(row.locator(".quote")).to_have_text(words)
        pressed = row.locator("[aria-pressed=true]")
        if severity == "?":
            expect(pressed).to_have_count(0)
        else:
            expect(pressed).to_have_text(severity)


def span(text: str, words: str, severity: str, **more: Any) -> dict[str, Any]:
    """The span of these words as it is stored: Python counts code points."""
    start = text.index(words)
    return {"start": start, "end": start + len(words) - 1, "severity": severity, **more}
