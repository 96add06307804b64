"""What axe-core finds on a page, whenever it is asked."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe

# While Streamlit runs its script, what stood before is drawn at a third of its opacity and fades in again:
# for a moment contrasts are too low. A style sheet that a script makes needs no leave of the policy.
_UNFADED = """() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`
        *, *::before, *::after { transition: none !important; animation: none !important; }
        [data-stale] { opacity: 1 !important; }
    `);
    document.adoptedStyleSheets = [sheet];
}"""


def violations(page: Any, **options: Any) -> list[dict[str, Any]]:
    """The rules that the page breaks, each with its elements (`nodes`); `options` are axe-core's."""
    page.evaluate(_UNFADED)
    if not page.evaluate("'axe' in window"):  # a quarter of a second, once for a document
        page.evaluate(Axe().axe_script)
    found: list[dict[str, Any]] = page.evaluate(
        "options => axe.run(options).then((found) => found.violations)",
        {"resultTypes": ["violations"]} | options,
    )
    return found
