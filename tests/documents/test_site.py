"""The documentation as a site: it builds without a warning, links lead somewhere, and it needs no network."""

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from built_site import built_site
from fenced import ROOT
from markdown_it import MarkdownIt

pytestmark = pytest.mark.slow
BLOCKS = ("h1", "h2", "h3", "li", "table", "tr", "pre", "blockquote")
ASSETS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """The elements of a page, its anchors, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.assets: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag in ASSETS and ASSETS[tag] in values and values.get("rel") != "canonical":
            self.assets.add(values[ASSETS[tag]])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


@pytest.fixture(scope="module")
def pages(built: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in built.rglob("*.html")}


def test_every_link_leads_to_a_page_and_a_place_on_it(built: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links | page.assets:
            address, anchor = urldefrag(unquote(link))
            if re.match(r"[a-z]+:|//", link) or path.name == "404.html":
                continue
            target = (path.parent / address).resolve() if address else path
            if target.is_dir():
                target /= "index.html"
            known = pages[target].anchors if target in pages else set()
            if not target.is_file() or (anchor and anchor not in known):
                broken.append((path.relative_to(built).as_posix(), link))
    assert broken == []


def test_no_page_loads_anything_from_another_server(built: Path, pages: dict[Path, Page]) -> None:
    loaded = {asset for page in pages.values() for asset in page.assets}
    styles = " ".join(path.read_text(encoding="utf-8") for path in built.rglob("*.css"))
    loaded |= set(re.findall(r"url\(['\"]?([^'\")]+)", styles)) | set(re.findall(r"@import\s+(\S+)", styles))
    assert [asset for asset in loaded if re.match(r"(https?:)?//", asset)] == []
    # the theme would fetch Mermaid for a diagram
    assert [path for path in built.rglob("*.html") if "mermaid" in path.read_text(encoding="utf-8")] == []


def test_pages_have_the_blocks_that_their_markdown_has(built: Path) -> None:
    """Lists, tables and code are on the site what they are on a code host."""
    different = {}
    for source in {*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs/reference/notes.md"}:
        name = source.relative_to(ROOT / "docs").with_suffix(".html")
        page = built / (name.with_name("index.html") if name.stem == "README" else name)
        article = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        tokens = MarkdownIt("commonmark").enable("table").parse(source.read_text(encoding="utf-8"))
        expected = Counter(
            "pre" if token.type == "fence" else token.tag
            for token in tokens
            if token.type == "fence" or token.nesting == 1
        )
        for block in BLOCKS:
            found = len(re.findall(rf"<{block}[\s>]", article))
            if found != expected[block]:
                different[f"{source.name} {block}"] = (found, expected[block])
    assert different == {}
