"""What is printed: every system and figure on consoles of several widths, numbers, and Markdown."""

import html
import io
import re
import sys
from dataclasses import replace
from typing import Any

import pytest
from blocks import in_terminal
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from teatime_study import SYSTEMS, Build

from creamtea.contract.step import Column
from creamtea.report import text
from creamtea.report.markdown import paragraphs, plain, to_markdown
from creamtea.report.model import Cell, Delta, Document, Figure, PValue
from creamtea.report.terminal import WIDTH, make_console
from creamtea.report.text import number

BLEU = Column("bleu", "BLEU", 1, "higher")


def delta_with(value: float, *corrected: float | None, **more: Any) -> Delta:
    tests = zip(("bootstrap", "randomization"), corrected, strict=False)
    return Delta("ok", value=value, p_values={test: PValue(corrected=p) for test, p in tests}, **more)


@pytest.fixture(scope="module")
def troubled(shared_report: Build) -> Document:
    changes = {
        "score/softmax-nvs/1/test/comet": {
            **{"state": "failed", "error_kind": "unavailable"},
            "error": "COMET: no [bold]model[/bold];\nfetch it once",
        },
        "latency": {"state": "pending"},
    }
    return shared_report(changes=changes, state="running")


def test_a_terminal_without_the_minus_sign_shows_a_hyphen(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="latin-1"))
    make_console().print("−20.5* [−26.5, −14.4] λ ±")
    sys.stdout.flush()
    assert shown.getvalue() == b"-20.5* [-26.5, -14.4] ? \xb1\n"


def test_one_point_is_not_points() -> None:
    one = Figure("k", "BLEU", {}, ({"x": 1},))
    assert text.figure(one) == "BLEU (1 point)"
    assert text.figure(replace(one, rows=one.rows * 2)) == "BLEU (2 points)"


@pytest.mark.parametrize("width", [60, 100, 200])
def test_every_system_and_figure_is_there_and_no_line_is_too_long(width: int, complete: Document) -> None:
    shown = in_terminal(complete, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown  # nothing is cut off
    figures = ["30.5", "[29.0, 32.2]", "+2.0*", "[1.0, 3.0]", "p=0.030/0.016", "−1.0", "p=0.20/0.30", "± 0.5"]
    for words in (*SYSTEMS, *figures, "90.0", "33 % [31, 36]", "0.987"):
        assert words in shown


def test_the_whole_comparison_is_one_table_in_a_pipe(complete: Document) -> None:
    lines = in_terminal(complete, WIDTH).splitlines()
    heading, *_ = [line for line in lines if line.strip().startswith("system ")]  # then every two systems
    for word in ("BLEU", "chrF", "COMET", "selected", "length"):
        assert word in heading
    below = lines[lines.index(heading) :]
    row, *_ = [line for line in below if line.strip().startswith("softmax-nvs")]
    found = row.split()[1:]
    assert found == ["32.5", "55.0", "0.8125", "90.0", "95.0", "150", "0.987", "25.0", "10.0", "16.0", "19.0"]


@pytest.mark.parametrize("width", [80, 140])
def test_cells_without_a_value_have_their_reason_below(width: int, troubled: Document) -> None:
    shown = in_terminal(troubled, width)
    (number,) = re.findall(r"unavailable \((\d)\)", shown)
    # a message is text: not rich's markup, and on one line
    assert f"({number}) COMET: no [bold]model[/bold]; fetch it once" in shown
    (pending,) = set(re.findall(r"pending \((\d)\)", shown))
    assert f"({pending}) not run yet (latency: test)" in shown


@given(
    st.text("ab \\`*_|<>[]#&~;:-!()lt\"'", min_size=1, max_size=30).filter(
        lambda text: text == " ".join(text.split())
    )
)
@example("&lt;b&gt; &amp; ~~no~~")
def test_a_text_stays_text_in_a_cell_of_markdown(words: str) -> None:
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    (cell,) = re.findall("<td.*?>(.*)</td>", page.render(f"| h |\n|:--|\n| {plain(words)} |\n"))
    assert html.unescape(cell) == words


@given(st.lists(st.text("a -+=.)\n1#*_~`>", max_size=12), max_size=4).map("\n".join))
@example("- no item\n- of a list")
@example("1. no item\n\n\n2) either\n---")
@example("---")
@example("--\n-")
@example("")
def test_a_paragraph_stays_text_in_markdown(words: str) -> None:
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(paragraphs(words))
    shown = [html.unescape(one) for one in re.findall("<p>(.*?)</p>", page, re.DOTALL)]
    wanted = [" ".join(part.split()) for part in re.split(r"\n\s*\n", words.strip())]
    assert shown == [part for part in wanted if part]
    assert re.findall("<(?!/?p>)[^>]*>", page) == []


def test_markdown_is_a_table_with_notes(troubled: Document) -> None:
    lines = to_markdown(troubled).splitlines()
    assert "### test (400 segments, 2 idioms, baseline softmax-greedy)" in lines
    start = next(number for number, line in enumerate(lines) if line.startswith("| system |"))
    table = lines[start : start + 2 + len(SYSTEMS)]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
    assert "**softmax-greedy** (baseline)<br>softmax, greedy" in table[5]
    assert "| 32.5<br>\\[31.0, 34.2\\]<br>+2.0\\*<br>\\[1.0, 3.0\\]<br>p=0.030/0.016 |" in table[3]
    notes = [line for line in lines if line.startswith("- ")]
    assert any("no \\[bold\\]model\\[/bold\\]; fetch it once" in note for note in notes)
    assert "- BLEU: `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`" in notes


@pytest.mark.parametrize(
    ("delta", "shown"),
    [
        (delta_with(1.25, 0.0004, significant=True), "+1.2* p<0.001"),
        (delta_with(-0.75, 0.04999, significant=True), "−0.8* p=0.049"),
        (delta_with(0.0, 1.0), "±0.0 p=1.00"),
        (delta_with(0.5, 0.29), "+0.5 p=0.29"),  # 0.29 * 100 < 29
        (delta_with(0.6, 0.66, low=-0.4, high=1.4), "+0.6 [−0.4, 1.4] p=0.66"),
        (delta_with(1.0, 0.0004, 0.2), "+1.0 p<0.001/0.20"),
        (delta_with(1.0, 0.04999, 0.0), "+1.0 p=0.049/<0.001"),
        (delta_with(1.0, None, 0.0), "+1.0 p=–/<0.001"),
        (Delta("ok", value=1.0, low=0.5, high=1.5), "+1.0 [0.5, 1.5]"),  # an interval without a test
        (Delta("pending", "not run yet"), "Δ pending"),
    ],
)
def test_differences_in_words(delta: Delta, shown: str) -> None:
    assert " ".join(text.difference(delta, BLEU)) == shown


def test_shares_are_shown_in_per_cent() -> None:
    column = Column("recall", "recall", 1, scale=100.0, unit="%")
    cell = Cell("ok", value=0.985, deviation=0.0125, seeds=3)
    shown = (text.value(cell, column), *text.shown(cell, column).details, text.heading(column))
    assert shown == ("98.5", "± 1.2", "recall, %")


def test_what_rounds_to_zero_has_no_sign() -> None:
    values = (-0.0002, -0.0, 0.0002, -0.01, -1204.5, 10)
    shown = [number(value, Column("z", "z", 2)) for value in values]
    assert shown == ["0.00", "0.00", "0.00", "−0.01", "−1,204.50", "10.00"]
