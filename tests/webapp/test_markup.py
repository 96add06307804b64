"""Whatever a template is given appears as text."""

from html.parser import HTMLParser

import pytest
from jinja2 import UndefinedError

from creamtea_webapp import markup
from creamtea_webapp.markup import counted, markdown, render

HOSTILE = "<script>alert(1)</script> \"' onload=x & <b>{{ 7 * 7 }}</b>"


class Tags(HTMLParser):
    """The tags and the text of some HTML."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(str(source))  # pieces of Markup would be escaped once more

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_foreign_text_has_its_language_and_direction_and_stays_text() -> None:
    page = Tags(render("parts.html", "foreign", text=HOSTILE, language='ar" onclick="x'))
    assert page.tags == [("p", {"dir": "auto", "lang": 'ar" onclick="x'})]
    assert page.text.strip() == HOSTILE


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_an_empty_text_says_so(nothing: str) -> None:
    page = Tags(render("parts.html", "foreign", text=nothing, language="de"))
    assert page.tags == [("p", {"class": "empty"})]


def test_cells_are_text_unless_a_template_made_them() -> None:
    badge = render("parts.html", "state_badge", state=HOSTILE)
    rows = [[(HOSTILE, HOSTILE), badge]]
    page = Tags(render("parts.html", "table", key="k", heads=["a", HOSTILE], rows=rows, words=[1]))
    cells = [attributes for tag, attributes in page.tags if tag == "td"]
    assert cells == [{"data-head": "a", "data-sort": HOSTILE}, {"data-head": HOSTILE, "class": "words"}]
    assert [tag for tag, _ in page.tags if tag in ("script", "b", "span")] == ["span"]
    assert page.text.count(HOSTILE) == 3  # the head, and both cells


def test_an_organisers_markdown_keeps_its_code_and_orders_its_headings() -> None:
    text = "# Rate\n\n```\n# a comment\n![no](image)\n```\n\nAll\n---\n\n##### of *them* ![<b>](http://a/b.png)\n<i>"
    page = Tags(markdown(text))
    assert [tag for tag, _ in page.tags] == ["h2", "pre", "code", "h3", "h4", "em", "p"]
    assert page.text == "Rate\n# a comment\n![no](image)\n\nAll\nof them ![<b>](http://a/b.png)\n<i>\n"


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("parts.html", "note")


@pytest.mark.parametrize(("number", "words"), [(0, "0 raters"), (1, "1 rater"), (2000, "2,000 raters")])
def test_counts_have_their_plural(number: int, words: str) -> None:
    assert counted(number, "rater") == words


def test_every_template_can_be_read() -> None:
    templates = markup._environment().list_templates()
    assert "studies.html" in templates
    for template in templates:
        markup._environment().get_template(template)
