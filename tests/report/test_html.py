"""The report as one HTML file: the model's numbers, nothing that runs, nothing from elsewhere."""

import html
import re

import pytest
from human_rows import SYSTEMS, add_segment_scores
from parsed_page import Page
from rated_campaigns import rated_campaign
from teatime_study import Build, Spec, fill_study

from creamtea.errors import InputError
from creamtea.report import text
from creamtea.report.build import build_report
from creamtea.report.html import WIDTHS, table_styles, to_html
from creamtea.report.human.build import build_human
from creamtea.report.model import Document, Figure, Notes, Section
from creamtea.report.outputs import drawn_outputs
from creamtea.report.vega import inline_svg
from creamtea.store.database import Database

HOSTILE = " ".join(
    [
        "<script>document.title='owned'</script>",
        "</dd><img src=x onerror=alert(1)>",
        '" onmouseover="alert(1)',
        "{{ 7 * 7 }} {% raw %}",
        "مرحبا $x$ *a* 你好",
        "]]> &lt;b&gt; http://example.org/a.png",
    ]
)


def test_nothing_runs_and_nothing_comes_from_elsewhere(tasted_page: str) -> None:
    page = Page(tasted_page)
    tags = {tag for tag, _ in page.elements}
    assert {"svg", "table", "text"} <= tags
    assert not tags & {"script", "img", "image", "link", "iframe", "object", "foreignobject", "use", "form"}
    places = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    links = [str(attributes.pop("href")) for tag, attributes in page.elements if tag == "a"]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(places)  # only inside the page
    assert len(places) == len(set(places))
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "href", "xlink:href", "style", "srcset"), (tag, name)
            assert "http" not in (value or "") or name == "aria-label", (tag, name, value)
    policy = [attributes for tag, attributes in page.elements if tag == "meta"]
    assert {
        "http-equiv": "Content-Security-Policy",
        "content": "default-src 'none'; style-src 'unsafe-inline'",
    } in policy
    css = "".join(page.words[page.words.index(next(w for w in page.words if ":root" in w))])
    assert "url(" not in css
    assert "@import" not in css


@pytest.mark.slow
def test_texts_and_names_stay_text(database: Database, spec: Spec) -> None:
    spec["description"] = HOSTILE
    study = fill_study(database, spec)
    items = [
        {"source": HOSTILE, "outputs": [HOSTILE, f"{HOSTILE} {i}", "x"], "steps": {HOSTILE: [i, 25 - i, 3]}}
        for i in range(4)
    ]
    rated_campaign(database, items, name=HOSTILE, raters=[HOSTILE], systems=SYSTEMS[:3], study_id=study)
    add_segment_scores(database, study, items=4)
    page = to_html(build_report(database, "teatime"))
    parsed = Page(page)
    assert "script" not in {tag for tag, _ in parsed.elements}
    assert "img" not in {tag for tag, _ in parsed.elements}
    assert not any(name.startswith("on") for _, attributes in parsed.elements for name in attributes)
    assert "".join(parsed.words).count(HOSTILE) >= 4


def test_ratings_made_elsewhere_have_a_page_of_their_own(database: Database) -> None:
    names = ["<b>online-A</b>", "B\x08C", "https://c.example/x"]
    items = [{"steps": {"anna": [i, i + 3, i + 5], "ben": [i, i + 2, i + 7]}} for i in range(8)]
    rated_campaign(database, items, systems=names, protocol="da-sqm")
    page = Page(to_html(build_human(database, "tasting")))
    words = "".join(page.words)
    assert "<b>online-A</b>" in words
    assert "b" not in {tag for tag, attributes in page.elements if attributes.get("class") == "hostile"}
    assert [tag for tag, _ in page.elements].count("svg") == 3
    drawn = [a["aria-label"] for tag, a in page.elements if tag == "svg"]
    assert drawn[1] == "Human scores: <b>online-A</b> = 100 % (tasting)"


def test_a_figure_keeps_shapes_and_text_only() -> None:
    hostile = "</text><script>1</script>"
    layer = [
        {
            "mark": {"type": "point", "clip": True},
            "encoding": {
                "x": {"field": "x", "type": "nominal"},
                "y": {"field": "y", "type": "quantitative"},
                "href": {"field": "u"},
            },
        },
        {"mark": "image", "encoding": {"url": {"field": "u"}, "x": {"field": "x"}}},
    ]
    row = {"x": hostile, "y": 1, "u": "https://example.org/a.png"}
    drawn = inline_svg(Figure("hostile", "a <b>title</b>", {"layer": layer}, (row,)), 3)
    page = Page(drawn)
    shapes = {"svg", "g", "path", "line", "rect", "text", "defs", "clippath"}
    assert {tag for tag, _ in page.elements} <= shapes
    assert "example.org" not in re.sub(r'aria-label="[^"]*"', "", drawn)
    assert html.escape(hostile) in drawn
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert all(str(one).startswith("figure3-") for one in ids)


def linked_in_contents(page: Page) -> list[str]:
    """The addresses of the table of contents, each in an item of a list."""
    places = [place for place, (tag, _) in enumerate(page.elements) if tag == "li"]
    following = (page.elements[place + 1] for place in places if place + 1 < len(page.elements))
    return [str(attributes["href"]) for tag, attributes in following if tag == "a"]


def test_every_section_has_an_address_and_an_entry_in_the_contents(
    tasted_report: Document, tasted_page: str
) -> None:
    wanted = [text.anchor(heading.path) for heading in tasted_report.contents()]
    assert {"systems", "systems-test", "human-tasting", "figures-learning", "provenance"} <= set(wanted)
    assert linked_in_contents(Page(tasted_page)) == [f"#{address}" for address in wanted]
    names = ("first", "second", "folded")
    sections = tuple(
        Section(name, name.title(), (Notes("notes", ("…",)),), folded=name == "folded") for name in names
    )
    page = Page(to_html(Document("paper", "Table 1", 1, "", "", (), (), sections)))
    assert linked_in_contents(page) == [f"#{name}" for name in names]
    assert set(names) <= {attributes.get("id") for _, attributes in page.elements}


def test_columns_are_chosen_by_group_and_one_campaign_at_a_time(database: Database, spec: Spec) -> None:
    study = fill_study(database)
    for name in ("first", "second"):
        items = [{"steps": {"anna": [i, 25 - i, 3, 4]}} for i in range(4)]
        rated_campaign(database, items, name=name, raters=["anna"], systems=SYSTEMS[:4], study_id=study)
    report = build_report(database, "teatime")
    groups = report.table("systems/test/systems").groups()
    assert [(group.title, group.shown) for group in groups if group.one_of] == [
        ("people: first", True),
        ("people: second", False),
    ]
    assert all(group.shown for group in groups if not group.one_of)
    page = Page(to_html(report))
    inputs = [attributes for tag, attributes in page.elements if tag == "input"]
    radios = [attributes for attributes in inputs if attributes["type"] == "radio"]
    assert len(inputs) == len(groups) + 1  # none of the campaigns
    assert len({attributes["name"] for attributes in radios}) == 1
    assert ["checked" in attributes for attributes in radios] == [True, False, False]
    # a class of each group's column heads, which the style sheet hides by the input of that number
    for number, group in enumerate(groups):
        heads = [a for tag, a in page.elements if tag == "th" and a.get("class") == f"c{number}"]
        assert heads, group


def test_the_file_holds_outputs_side_by_side(build: Build, database: Database) -> None:
    report = build()
    (drawn,) = (one for one in drawn_outputs(database, report) if one.test_set == "test")
    assert drawn == next(one for one in drawn_outputs(database, report) if one.test_set == "test")
    lines = [[line.name for line in own] for _, own in drawn.segments]
    assert lines[0][:2] == ["source", "reference"]
    assert all(own[2:] == list(dict.fromkeys(own[2:])) for own in lines)
    page = to_html(report, [drawn])
    words = "".join(Page(page).words)
    for _, own in drawn.segments:
        for line in own:
            assert line.text is None or line.text in words
            assert not line.pieces or "".join(piece.text for piece in line.pieces) == line.text
    assert 'href="#outputs"' in page
    assert "Outputs side by side" not in to_html(report)
    chosen = next(one for one in drawn_outputs(database, report, [3, 1]) if one.test_set == "test")
    assert [number for number, _ in chosen.segments] == [1, 3]
    assert "chosen" in chosen.about
    with pytest.raises(InputError, match="no segment 999"):
        drawn_outputs(database, report, [999])


def test_a_wide_page_shows_no_cells_below_each_other() -> None:
    def bounds(css: str) -> set[int]:
        return {int(width) for width in re.findall(r"@container \(width < (\d+)rem\)", css)}

    assert bounds(table_styles()) == set(WIDTHS)
    assert max(bounds(table_styles(60))) == 60


def test_no_table_is_wider_than_its_page(tasted_page: str) -> None:
    css = tasted_page.partition("</style>")[0]
    assert "overflow: auto" not in css
    assert "overflow-x" not in css
    wide = {f"w{width}" for width in WIDTHS}
    page = Page(tasted_page)
    classes = [attributes.get("class") for tag, attributes in page.elements if tag == "table"]
    assert set(classes) <= wide
    assert len(set(classes)) > 2
