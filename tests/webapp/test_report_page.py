"""The studies and the report in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect
from watched import at_rest, press

from creamtea.access import links

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>document.title='owned'</script>",
    "$x^2$ and *a* :material/home:",
    "مرحبا بالعالم",
    "你好，世界",
]


@pytest.fixture(scope="module")
def reader(site, quiet_page) -> Any:
    """One page for all tests here: a reader on the study's report."""
    page = quiet_page
    page.goto(site.new_link("reader"))
    page.get_by_role("link", name="quagga").click()
    comparison(page).locator("table").wait_for()
    page.get_by_text("Versions, seeds, hardware").wait_for()
    at_rest(page)
    return page


def comparison(page: Any) -> Any:
    """The table of the systems, before all others."""
    return page.locator(".table").first


def names(page: Any) -> Any:
    return comparison(page).locator("tbody .name")


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
    expect(names(reader)).to_have_text(
        ["dugong-greedy", "tapir-greedy (baseline)", "tapir-nvs", "tapir-lexicon"]
    )
    heads = comparison(reader).locator("thead button").all_text_contents()
    assert heads[:3] == ["System", "BLEU", "chrF"]
    assert {"idiom recall, %", "selected", "p50, ms", "p90, ms"} <= set(heads)
    lexicon = comparison(reader).locator("tbody tr").nth(3).locator("td").first
    expect(lexicon.locator(".value")).to_have_text("29.6")
    expect(lexicon.locator("small").first).to_have_text("[28.2, 31.1]")
    expect(lexicon).to_have_class(re.compile("worse"))
    expect(lexicon.locator(".change").first).to_contain_text("−1.9*")
    nvs = comparison(reader).locator("tbody tr").nth(2).locator("td").first
    expect(nvs).not_to_have_class(re.compile("worse|better"))
    dugong = comparison(reader).locator("tbody tr").nth(0)  # three seeds against the baseline's one
    expect(dugong.locator(".change")).not_to_have_count(0)
    expect(dugong.locator(".worse, .better")).to_have_count(0)


def test_a_missing_metric_says_why(reader) -> None:
    expect(comparison(reader).locator("td.unavailable")).to_have_count(4)
    assert (
        reader.locator(".footnotes")
        .first.inner_text()
        .count("no COMET model: Unbabel/wmt22-comet-da <img src=x>")
        == 2
    )
    expect(reader.locator(".failure pre")).to_contain_text("<img src=x>")


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
        for box in reader.locator(".table").filter(visible=True).all():
            assert box.evaluate("box => box.scrollWidth <= box.clientWidth"), width
    # nobody is the best at what a full vocabulary has anyway
    best = comparison(reader).locator("tbody tr").filter(has_text="tapir-greedy").locator(".best")
    expect(best.filter(has_text="100.0")).to_have_count(0)


def test_a_section_has_an_address_that_opens_it(reader, site) -> None:
    contents = reader.get_by_role("navigation", name="Contents")
    contents.get_by_role("link", name="Provenance").click()
    heading = reader.get_by_role("heading", name="Provenance")
    expect(heading).to_be_in_viewport()
    address = reader.url
    assert address.endswith("#provenance")
    reader.goto(site.url)
    reader.goto(address)  # as somebody who was sent it
    expect(heading).to_be_in_viewport()
    reader.get_by_text("Versions, seeds, hardware").wait_for()
    at_rest(reader)


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
    expect(reader.locator(".report")).to_contain_text("Jam or <b>cream</b> first?")


def test_differences_are_marked_against_the_baseline(reader) -> None:
    fifth = reader.locator(".outputs .segment").nth(4)
    baseline = fifth.locator(".pair > div").nth(2)
    expect(baseline.locator("dt")).to_have_text("tapir-greedy")
    expect(baseline.locator("mark")).to_have_count(0)
    expect(fifth.locator("mark")).not_to_have_count(0)


def test_outputs_are_filtered_ordered_and_paged(reader) -> None:
    wait_for_segments(reader, range(1, 11))
    enter(reader, "Page of 4", "4")
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


def test_provenance_is_told(reader) -> None:
    for name, wanted in (("Corpora", "11,950"), ("Trainings", "seed 2")):
        press(reader.get_by_text(name, exact=True))
        reader.get_by_text(wanted).filter(visible=True).first.wait_for()
    expect(reader.locator("dl.list").filter(has_text="c0ffeec0ffee")).to_be_visible()


def test_tables_and_figures_are_saved_as_files(reader) -> None:
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


def test_nothing_is_saved_for_whom_the_link_was_withdrawn(site, open_page) -> None:
    page = open_page(site.new_link("reader"))
    page.get_by_role("link", name="quagga").click()
    page.get_by_text("Versions, seeds, hardware").wait_for()
    at_rest(page)  # a later run of the page would take the button away
    links.revoke(site.database, links.listed(site.database)[-1].id, "test")
    downloads: list[Any] = []
    page.on("download", lambda download: downloads.append(download))
    page.get_by_role("button", name="CSV", exact=True).first.click()
    page.get_by_text("Could not", exact=False).or_(page.get_by_text("Failed", exact=False)).first.wait_for()
    assert downloads == []


def test_nothing_went_wrong_in_the_browser(reader) -> None:
    assert reader.troubles == []


def test_an_unknown_study_is_told_with_its_name_escaped(site, open_page) -> None:
    page = open_page(site.new_link("reader"))
    page.get_by_role("link", name="quagga").wait_for()
    page.goto(f"{site.url}/?study=<img src=x>")
    page.get_by_text("No such study").wait_for()
    expect(page.locator(".ct .lead")).to_contain_text("<img src=x>")
    expect(page.locator(".ct img")).to_have_count(0)


def test_a_withdrawn_link_ends_an_open_page(site, open_page) -> None:
    page = open_page(site.new_link("reader"))
    page.get_by_role("link", name="quagga").click()
    page.get_by_text("Versions, seeds, hardware").wait_for()
    enter(page, "Page of 4", "2")
    wait_for_segments(page, range(11, 21))  # the page's own runs are over
    links.revoke(site.database, links.listed(site.database)[-1].id, "test")
    enter(page, "Containing", "你好")  # over the page's WebSocket
    page.get_by_text("Your link does not open this page").wait_for()
    expect(page.locator(".outputs")).to_have_count(0)  # what the run left out goes at its end
