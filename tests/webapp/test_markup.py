"""Whatever a template is given appears as text."""

import pytest
from jinja2 import UndefinedError
from parsed_page import Page

from creamtea_webapp import markup
from creamtea_webapp.markup import counted, markdown, render

HOSTILE = "<script>alert(1)</script> \"' onload=x & <b>{{ 7 * 7 }}</b>"


def test_foreign_text_has_its_language_and_direction_and_stays_text() -> None:
    page = Page(render("parts.html", "foreign", text=HOSTILE, language='ar" onclick="x'))
    assert page.elements == [("p", {"dir": "auto", "lang": 'ar" onclick="x'})]
    assert "".join(page.words).strip() == HOSTILE


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_an_empty_text_says_so(nothing: str) -> None:
    page = Page(render("parts.html", "foreign", text=nothing, language="de"))
    assert page.elements == [("p", {"class": "empty"})]


def test_cells_are_text_unless_a_template_made_them() -> None:
    badge = render("parts.html", "state_badge", state=HOSTILE)
    rows = [[(HOSTILE, HOSTILE), badge]]
    page = Page(render("parts.html", "table", key="k", heads=["a", HOSTILE], rows=rows, words=[1]))
    cells = [attributes for tag, attributes in page.elements if tag == "td"]
    assert cells == [{"data-head": "a", "data-sort": HOSTILE}, {"data-head": HOSTILE, "class": "words"}]
    assert [tag for tag, _ in page.elements if tag in ("script", "b", "span")] == ["span"]
    assert "".join(page.words).count(HOSTILE) == 3  # the head, and both cells


def test_an_organisers_markdown_keeps_its_code_and_orders_its_headings() -> None:
    text = "# Rate\n\n```\n# a comment\n![no](image)\n```\n\nAll\n---\n\n##### of *them* ![<b>](http://a/b.png)\n<i>"
    page = Page(markdown(text))
    assert [tag for tag, _ in page.elements] == ["h2", "pre", "code", "h3", "h4", "em", "p"]
    assert (
        "".join(page.words) == "Rate\n# a comment\n![no](image)\n\nAll\nof them ![<b>](http://a/b.png)\n<i>\n"
    )


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
