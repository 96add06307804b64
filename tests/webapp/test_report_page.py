"""Studies, reports, analyses, papers and lists in a real browser."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filled_study import NO_MODEL
from paper_rows import fill
from playwright.sync_api import expect
from rating_board import wait_for_size, wait_for_width
from watched import at_rest, press

from creamtea.access import sessions
from creamtea.contract.step import Column
from creamtea.report.build import build_report
from creamtea.report.html import part, to_html
from creamtea.report.model import Cell, Row, Table
from creamtea_webapp.markup import HERE

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>document.title='owned'</script>",
    "$x^2$ and *a* :material/home:",
    "مرحبا بالعالم",
    "你好，世界",
]


@pytest.fixture(scope="module")
def site(own_site: Any) -> Any:
    return own_site


@pytest.fixture(scope="module")
def reader(site, quiet_page) -> Iterator[Any]:
    """A reader's page on the study's report, for all tests here; by their end nothing went wrong in it."""
    page = quiet_page
    page.goto(site.new_link("reader"))
    page.get_by_role("link", name="quagga").click()
    comparison(page).locator("table").wait_for()
    page.get_by_text("Versions, seeds, hardware").wait_for()
    at_rest(page)
    yield page
    assert page.troubles == []


def comparison(page: Any) -> Any:
    """The table of the systems, before all others."""
    return page.locator(".table").first


def wait_for_segments(page: Any, wanted: Iterable[int]) -> None:
    texts = [str(number) for number in wanted]
    expect(page.locator(".outputs .segment .where")).to_have_text(texts)


def enter(page: Any, label: str, text: str) -> None:
    field = page.get_by_label(label)
    at_rest(page)
    field.fill(text)
    field.press("Enter")
    at_rest(page)


def test_the_table_has_every_system_with_intervals_and_significance(reader) -> None:
    rows = comparison(reader).locator("tbody tr")
    expect(rows.locator(".name")).to_have_text(
        ["dugong-greedy", "tapir-greedy (baseline)", "tapir-nvs", "tapir-lexicon"]
    )
    heads = comparison(reader).locator("thead button").all_text_contents()
    assert heads[:3] == ["System", "BLEU", "chrF"]
    lexicon, nvs = rows.nth(3).locator("td").first, rows.nth(2).locator("td").first
    expect(lexicon.locator(".value")).to_have_text("29.6")
    expect(lexicon.locator("small").first).to_have_text("[28.2, 31.1]")
    expect(lexicon).to_have_class(re.compile("worse"))
    expect(lexicon.locator(".change").first).to_contain_text("−1.9*")
    expect(nvs).not_to_have_class(re.compile("worse|better"))
    dugong = rows.nth(0)  # three seeds against the baseline's one
    expect(dugong.locator(".change")).not_to_have_count(0)
    expect(dugong.locator(".worse, .better")).to_have_count(0)
    # a missing metric says why
    expect(comparison(reader).locator("td.unavailable")).to_have_count(4)
    assert reader.locator(".footnotes").first.inner_text().count(NO_MODEL) == 2
    expect(reader.locator(".failure pre")).to_contain_text(NO_MODEL)


def test_columns_are_shown_by_group_and_none_is_cut_off(reader) -> None:
    heads = comparison(reader).locator("thead button").filter(visible=True)
    before = heads.count()
    recall = comparison(reader).get_by_label("recall", exact=True)
    recall.uncheck()
    expect(heads).not_to_have_count(before)
    recall.check()
    expect(heads).to_have_count(before)
    for width in (390, 700, 1280):
        reader.set_viewport_size({"width": width, "height": 900})
        at_rest(reader)
        for box in reader.locator(".table").filter(visible=True).all():
            assert box.evaluate("box => box.scrollWidth <= box.clientWidth"), width
    # nobody is the best at what a full vocabulary has anyway
    best = comparison(reader).locator("tbody tr").filter(has_text="tapir-greedy").locator(".best")
    expect(best.filter(has_text="100.0")).to_have_count(0)


def test_hostile_texts_are_shown_as_they_are(reader) -> None:
    shown = reader.locator(".outputs .segment").first.inner_text()
    for text in ("<b>fett</b>", "&lt;b&gt;", "<img src=x onerror=x>", "</div>"):
        assert text in shown
    for number, source in enumerate(HOSTILE):
        assert reader.locator(".outputs .segment").nth(number).locator("dd p").first.inner_text() == source
    expect(reader.locator(".outputs").locator("script, img, b, em, a, svg")).to_have_count(0)
    expect(reader.locator(".outputs .segment").nth(3).get_by_text("(empty)")).to_have_count(2)
    expect(reader.locator(".outputs .segment").nth(2).locator("dd p").first).to_have_attribute("dir", "auto")
    expect(reader).to_have_title("Report")
    expect(reader.locator("header .lead")).to_have_text("Jam or <b>cream</b> first?")
    fifth = reader.locator(".outputs .segment").nth(4)
    baseline = fifth.locator(".pair > div").nth(2)  # from which differences are marked
    expect(baseline.locator("dt")).to_have_text("tapir-greedy")
    expect(baseline.locator("mark")).to_have_count(0)
    expect(fifth.locator("mark")).not_to_have_count(0)


def test_page_and_file_begin_with_the_answer(site: Any, reader: Any, open_page: Any, tmp_path: Path) -> None:
    """Its sentences begin within 500 pixels. Its picture is beside them where there is room, else below."""
    report = replace(build_report(site.database, "quagga"), about="Sentences of a description. " * 20)
    (tmp_path / "report.html").write_text(to_html(report), encoding="utf-8")
    file = open_page((tmp_path / "report.html").as_uri())
    reader.locator("[data-testid=stMain]").evaluate("main => main.scrollTo(0, 0)")
    for width in (390, 1280):
        for page, figure in ((reader, "[data-testid=stVegaLiteChart]"), (file, "figure")):
            page.set_viewport_size({"width": width, "height": 900})
            if page is reader:
                at_rest(page)
            answer, drawn = (page.locator(name).first.bounding_box() for name in (".answer", figure))
            assert answer["y"] < 500
            end = answer["y"] + answer["height"]
            beside = drawn["x"] >= answer["x"] + answer["width"] and drawn["y"] < end
            below = drawn["x"] < answer["x"] + 40 and drawn["y"] >= end
            assert (beside, below) == (width == 1280, width == 390)


def test_outputs_are_filtered_ordered_and_paged(reader) -> None:
    wait_for_segments(reader, range(1, 11))
    enter(reader, "Page (1 to 4)", "4")
    wait_for_segments(reader, range(31, 41))
    reader.get_by_text("Only with idioms").click()
    wait_for_segments(reader, range(37, 41))
    expect(reader.locator(".outputs .segment u")).to_have_count(8)
    press(reader.get_by_text("Only with idioms"))  # a click during a run would keep the page that was left
    wait_for_segments(reader, range(1, 11))
    enter(reader, "Containing", "你好")
    wait_for_segments(reader, [4])
    enter(reader, "Containing", "")
    press(reader.get_by_label("Order"))
    reader.get_by_role("option", name="Best against the baseline first").click()
    wait_for_segments(reader, range(40, 30, -1))


def test_provenance_is_told_and_tables_and_figures_are_saved_as_files(reader) -> None:
    for name, wanted in (("Corpora", "11,950"), ("Trainings", "seed 2")):
        press(reader.get_by_text(name, exact=True))
        reader.get_by_text(wanted).filter(visible=True).first.wait_for()
    expect(reader.locator("dl.list").filter(has_text="c0ffeec0ffee")).to_be_visible()

    def saved(label: str, number: int) -> tuple[str, bytes]:
        with reader.expect_download() as download:
            press(reader.get_by_role("button", name=label, exact=True).nth(number))  # not Streamlit's own
        return download.value.suggested_filename, download.value.path().read_bytes()

    name, table = saved("CSV", 2)  # after those of two pictures
    assert name == "systems-narwhal.csv"
    assert table.startswith(b"name,description,bleu,")
    name, latex = saved("LaTeX", 0)
    assert (name, b"\\toprule" in latex) == ("systems-narwhal.tex", True)
    name, drawn = saved("SVG", 0)
    assert (name, drawn[:4]) == ("answer-narwhal-ranking.svg", b"<svg")
    name, drawn = saved("PNG", 0)
    assert drawn.startswith(b"\x89PNG")


def test_the_address_of_a_section_opens_it_until_the_link_is_revoked(site, open_page) -> None:
    """The open page ends then, and saves nothing."""
    page = open_page(f"{site.url}/enter#wrong")
    expect(page.get_by_text("no longer valid")).to_be_visible()
    page.goto(site.new_link("reader"))  # in the same tab
    page.get_by_role("link", name="quagga").wait_for()  # signed in
    page.goto(f"{site.url}/?study=quagga#provenance")  # as somebody who was sent it
    expect(page.get_by_role("heading", name="Provenance")).to_be_in_viewport()
    page.get_by_text("Versions, seeds, hardware").wait_for()
    contents = page.get_by_role("navigation", name="Contents")
    contents.get_by_role("link", name="Systems").first.click()
    expect(page).to_have_url(re.compile("#systems"))
    expect(page.get_by_role("heading", name="Systems").first).to_be_in_viewport()
    enter(page, "Page (1 to 4)", "2")
    wait_for_segments(page, range(11, 21))  # the page's own runs are over: a later one would end it
    sessions.revoke(site.database, sessions.list_links(site.database)[-1].id, "test")
    downloads: list[Any] = []
    page.on("download", lambda download: downloads.append(download))
    page.get_by_role("button", name="CSV", exact=True).first.click()
    page.get_by_text("Could not", exact=False).or_(page.get_by_text("Failed", exact=False)).first.wait_for()
    assert downloads == []
    enter(page, "Containing", "你好")  # over the page's WebSocket
    page.get_by_text("Your link does not open this page").wait_for()
    expect(page.locator(".outputs")).to_have_count(0)  # what the run left out goes at its end


TITLES = [
    *("Beam sizes", "Search errors", "Empty string", "Short hypotheses", "Density of the support"),
    *("Calibration", "Recall at equal size", "NVS without context"),
]


def test_analyses_have_sections_folded_tables_and_plots(site, analysed, reader) -> None:
    reader.goto(f"{site.url}/?study={analysed}")
    reader.get_by_text("Versions, seeds, hardware").wait_for()
    at_rest(reader)
    heads = reader.locator("h3 a.own").all_text_contents()
    assert [head for head in heads if head in TITLES] == TITLES
    expect(reader.locator(".ct").filter(has_text="SCONES paper, Figures 3 and 4")).to_have_count(1)
    expect(reader.locator("body")).to_contain_text("% of tapir-greedy / dugong-greedy")

    table = reader.locator(".table table").filter(has_text="Variant, beam").first
    table.get_by_role("button", name="BLEU").click()
    expect(table.locator("tbody tr").first.locator(".name")).to_contain_text("dugong")
    folded = reader.locator("[data-testid=stExpander]").filter(has_text="Variant, threshold").last
    expect(folded.locator(".table table")).to_be_hidden()
    press(folded.get_by_text("Table: "))
    expect(folded.locator(".table table")).to_be_visible()

    drawn = reader.locator("[data-testid=stVegaLiteChart]").locator("canvas, svg")
    # the systems; quality, recall, over a parameter, learning (the losses of two objectives);
    # two of beams and of buckets, three of recall at size, five of errors, one of others
    count = 1 + 5 + 2 + 5 + 1 + 1 + 1 + 1 + 3 + 1 + 2
    expect(drawn).to_have_count(count)
    for number in range(count):
        wait_for_size(drawn.nth(number), width=200, height=100)  # those with a row a variant are low
    field = reader.get_by_label("Value", exact=True)
    field.scroll_into_view_if_needed()
    field.fill("idiom recall")
    field.press("Enter")
    expect(field).to_have_value("idiom recall")
    at_rest(reader)
    expect(drawn.nth(2)).to_be_visible()


def test_tables_and_figures_of_the_papers_are_reached_from_their_list(site: Any, reader: Any) -> None:
    fill(site.database, "scones-multi30k")
    reader.goto(site.url)
    reader.get_by_role("link", name="Papers").click()
    press(reader.locator("li", has_text="BLEU score gains").get_by_role("link"))
    rows = reader.locator(".table tbody tr")
    kinds = [*(2 * ["published", "ours"]), "verdict against Softmax", "published", "ours"]
    expect(rows.locator(".name")).to_have_text([re.compile(f", {kind}$") for kind in kinds])
    judged = rows.filter(has_text="verdict").locator("td").nth(1)  # greedy, en-de
    expect(judged.locator(".value")).to_have_text(re.compile("^(holds|opposite|undecided): "))
    reader.goto(f"{site.url}/?paper=scones&figure=2")
    drawn = reader.locator("[data-testid=stVegaLiteChart]").locator("canvas, svg")
    wait_for_size(drawn, width=200, height=200)
    with reader.expect_download() as download:
        press(reader.get_by_role("button", name="LaTeX", exact=True))
    assert download.value.suggested_filename == "scones-figure-2-ours-values.tex"
    reader.set_viewport_size({"width": 390, "height": 844})
    reader.goto(f"{site.url}/?paper=nvs&table=5")  # a wide one
    reader.locator("h1").wait_for()
    wait_for_width(reader, 390)


# ---------------------------------------------------------------- lists


def first_cells(page: Any) -> list[str]:
    return page.locator("#table-steps tbody tr:not([hidden]) td:first-child").all_inner_texts()


def test_a_list_is_sorted_and_filtered(site: Any, open_page: Any) -> None:
    page = open_page(site.new_link("organiser").replace("/enter#", "/enter?study=quagga&step=#"))
    head = page.get_by_role("button", name="step", exact=True)
    expect(head).to_be_visible()
    at_rest(page)
    as_it_was = first_cells(page)
    head.press("Enter")
    column = page.get_by_role("columnheader", name="step")
    expect(column).to_have_attribute("aria-sort", "ascending")
    rising = first_cells(page)
    assert sorted(rising) == sorted(as_it_was)
    assert rising != as_it_was
    head.click()
    expect(column).to_have_attribute("aria-sort", "descending")
    assert first_cells(page) == rising[::-1]
    page.get_by_label("Filter").fill("SUCCEEDED score")
    found = first_cells(page)
    assert 0 < len(found) < len(rising)
    expect(page.get_by_text(f"{len(found)} of {len(rising)}", exact=True)).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("Filter").fill("")
    page.get_by_label("Sort by").select_option("original order")
    assert first_cells(page) == as_it_was
    page.get_by_label("Sort by").select_option("step")
    assert first_cells(page) == rising


# ---------------------------------------------------------------- a report's tables sort by a click on a head


SORT = """async ([script, html, clicks]) => {
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const { default: render } = await import(address);
    document.body.innerHTML = `<div class="ct">${html}</div>`;
    render();
    render(); // a second run of the page
    return clicks.map((head) => {
        document.querySelectorAll("th button")[head].click();
        return [...document.querySelectorAll("tbody .name")].map((name) => name.textContent);
    });
}"""


def test_a_table_is_sorted_by_its_columns_and_back(open_page: Any) -> None:
    columns = (Column("bleu", "BLEU", 1, "higher"), Column("p50", "p50", 1, "lower"))
    rows = {"okapi": (2.0, 9.0), "<b>zebra</b>": (-10.0, None), "quagga": (30.0, 1.0), "emu": (0.0, 20.0)}

    def cell(value: float | None) -> Cell:
        return Cell("absent", "not timed") if value is None else Cell("ok", value=value)

    cells = [Row(name, {"bleu": cell(bleu), "p50": cell(p50)}) for name, (bleu, p50) in rows.items()]
    table = Table("scores", "", "system", columns, tuple(cells))
    script = (HERE / "components" / "sorting.js").read_text(encoding="utf-8")
    shown = open_page("about:blank").evaluate(SORT, [script, str(part("grid", table, "")), [1, 1, 2, 2, 0]])
    assert shown == [
        ["quagga", "okapi", "emu", "<b>zebra</b>"],
        ["<b>zebra</b>", "emu", "okapi", "quagga"],
        ["quagga", "okapi", "emu", "<b>zebra</b>"],
        ["emu", "okapi", "quagga", "<b>zebra</b>"],
        list(rows),
    ]
