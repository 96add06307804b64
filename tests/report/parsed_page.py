"""HTML as a browser would take it apart."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of some HTML with their attributes, and the pieces of text between."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(str(page))  # pieces of Markup would be escaped once more

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)
