"""What is printed and saved: consoles of several widths, numbers, Markdown, CSV, LaTeX, and figures."""

import csv
import errno
import html
import io
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from blocks import figures, in_terminal, systems, tables
from human_rows import add_campaign
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from teatime_study import SYSTEMS, Build, fill_study

from creamtea.contract.step import Column
from creamtea.errors import InputError
from creamtea.papers.catalogue import exhibits, papers
from creamtea.printable import text_from_cell
from creamtea.report import text
from creamtea.report.build import build_report
from creamtea.report.export import Format, export, figure_csv, file_stem, files_of, table_csv, to_latex
from creamtea.report.markdown import paragraphs, plain, to_markdown
from creamtea.report.model import ONE_SEED, Cell, Delta, Document, Figure, PValue, Row, Table
from creamtea.report.tables import RECALL_IDIOM, RECALL_WORDS
from creamtea.report.terminal import WIDTH, make_console
from creamtea.report.text import number
from creamtea.store.database import Database

HOSTILE = 'a & b_c 100% $x$ #1 {\\input{/etc/passwd}} ~^ <i> "q" [x] *'
BLEU = Column("bleu", "BLEU", 1, "higher")


def test_a_disk_that_fills_up_leaves_nothing(
    complete: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if len(list(path.parent.iterdir())) == 3:
            write(path, content[:1])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="No space left"):
        export(complete, tmp_path / "out", [Format.CSV])
    assert not (tmp_path / "out").exists()


def test_a_long_name_becomes_a_file_name_that_a_disk_takes() -> None:
    for name in ("評価" * 60, "é" * 200, "x" * 300, "/"):
        stem = file_stem(f"human/{name}/figure")
        assert 0 < len(stem.encode()) <= 120
        assert "�" not in stem


def read(words: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(words, newline="")))


def table(name: str = "a", **cell: Any) -> Table:
    row = Row(name, {"bleu": Cell("ok", value=30.5, **cell)})
    return Table("t", "", "system", (BLEU,), (row,))


def test_csv_has_every_number_at_full_precision(complete: Document) -> None:
    found = systems(complete)
    rows = read(table_csv(found))
    assert [row["name"] for row in rows] == [row.name for row in found.rows]
    for row, made in zip(found.rows, rows, strict=True):
        for column in found.columns:
            cell = row.cells[column.key]
            assert made[column.key] == ("" if cell.value is None else repr(cell.value))
            if cell.low is not None:
                assert float(made[f"{column.key}_low"]) == cell.low
    assert float(rows[1]["bleu_delta_value"]) == 2.0
    assert rows[1]["bleu_delta_significant"] == "True"
    assert rows[0]["latency_p50_note"] == "the study does not time this system"
    # what belongs to a column stands beside it
    header = list(rows[0])
    own = [place for place, name in enumerate(header) if re.match("bleu(_|$)", name)]
    assert own == list(range(own[0], own[0] + len(own)))


def test_csv_says_why_a_difference_with_a_small_p_is_not_marked() -> None:
    delta = Delta("ok", ONE_SEED, value=2.0, p_values={"bootstrap": PValue(0.001, corrected=0.001)})
    (row,) = read(table_csv(table(delta=delta)))
    assert (row["bleu_delta_p_bootstrap_corrected"], row["bleu_delta_note"]) == ("0.001", ONE_SEED)


def test_a_column_called_as_a_field_of_another_keeps_its_values() -> None:
    words, idiom = Cell("ok", value=0.5, deviation=0.1), Cell("ok", value=0.7, words="most")
    row = Row("a", {RECALL_WORDS.key: words, RECALL_IDIOM.key: idiom})
    (read_again,) = read(table_csv(Table("t", "", "system", (RECALL_WORDS, RECALL_IDIOM), (row,))))
    assert read_again == {
        "name": "a",
        "recall_idiom_words": "0.5",
        "recall_idiom_words_deviation": "0.1",
        "recall_idiom": "0.7",
        "recall_idiom__words": "most",
    }


def test_zero_is_a_value_and_text_is_no_formula_of_a_spreadsheet() -> None:
    (row,) = read(table_csv(table(deviation=0.0, delta=Delta("ok", value=0.0))))
    assert (row["bleu_deviation"], row["bleu_delta_value"]) == ("0.0", "0.0")
    assert "bleu_delta_significant" not in row  # of none
    (row,) = read(table_csv(table("=HYPERLINK(1)", note="'-2+3")))
    assert (row["name"], row["bleu_note"]) == ("'=HYPERLINK(1)", "''-2+3")
    assert text_from_cell(row["bleu_note"]) == "'-2+3", "as it was"
    assert row["bleu"] == "30.5"


def test_latex_is_booktabs_with_texts_escaped() -> None:
    delta = Delta(
        "ok", value=-1.0, low=-2.0, high=0.0, p_values={"t": PValue(corrected=0.0001)}, significant=True
    )
    made = to_latex(table(HOSTILE, low=29.0, high=32.0, deviation=0.5, delta=delta, note="100 % _sure_"))
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\begin{tabular}{lr}"):
        assert rule in made
    assert r"a \& b\_c 100\% \$x\$ \#1 \{\textbackslash{}input\{/etc/passwd\}\}" in made
    assert r"\textasciitilde{}\textasciicircum{} \textless{}i\textgreater{}" in made
    lines = [line for line in made.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {1}
    for shown in ("30.5 (1)", r"$\pm$ 0.5", "{[}29.0, 32.0{]}", "$-$1.0{*}", r"p\textless{}0.001"):
        assert shown in made
    assert r"\footnotesize (1) 100 \% \_sure\_" in made
    assert r"\char34{}q\char34{}" in made  # the usual fonts have it


@pytest.mark.parametrize("paper", papers())
def test_what_papers_print_has_no_character_that_pdflatex_lacks(paper: str) -> None:
    for exhibit in exhibits(paper):
        titles = [column.title for column in exhibit.columns]
        values = [value or "" for row in exhibit.rows for value in (row.title, *row.values)]
        for words in (exhibit.heading, exhibit.title, *titles, *values):
            lacking = {character for character in to_latex(table(words)) if ord(character) > 0xFF} - {*"–—†‡"}
            assert not lacking, (exhibit.label, words)


def test_every_table_of_a_report_is_latex_with_even_rows(complete: Document) -> None:
    for found in tables(complete):
        body = [line for line in to_latex(found).splitlines() if line.endswith(r"\\")]
        assert len(body) > len(found.rows)
        assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {len(found.columns)}


def test_a_figure_has_its_data_and_its_drawings(complete: Document) -> None:
    figure = figures(complete)["answer/test/quality/bleu"]
    made = {kind: file.make() for kind, file in files_of(figure, "quality/bleu").items()}
    rows = read(made["csv"].decode())
    assert [row["system"] for row in rows] == [row["system"] for row in figure.rows]
    assert float(rows[0]["quality"]) == 30.5
    assert "lift" not in rows[0]  # where a label stands
    assert made["png"].startswith(b"\x89PNG")
    words = [element.text for element in ET.fromstring(made["svg"]).iter() if element.text]
    assert "BLEU against latency (test)" in words
    assert "softmax-lexicon" in words


def test_names_in_a_drawing_stay_text(complete: Document) -> None:
    figure = figures(complete)["answer/test/quality/bleu"]
    hostile = "</text><script>1</script>&\x08"
    rows = tuple(row | {"system": hostile} for row in figure.rows)
    drawn = files_of(Figure("x", hostile, figure.spec, rows), "x")["svg"].make()
    tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(drawn).iter()}
    assert "script" not in tags
    assert figure_csv(Figure("x", "", {}, rows)).count(hostile) == len(rows)
    assert files_of(Figure("x", "x", {}, ()), "x") == {}  # nothing without data


def test_a_folder_gets_every_table_and_figure(complete: Document, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "paper"
    written = export(complete, folder, [Format.CSV, Format.LATEX])
    assert sorted(folder.iterdir()) == sorted(written)
    drawn = [figure for figure in figures(complete).values() if figure.rows]
    assert len(written) == 2 * len(tables(complete)) + len(drawn)
    assert read((folder / "systems-test.csv").read_text())[0]["name"] == "scones-greedy"
    (tmp_path / "file").touch()
    for place, why in (
        ("new/paper", "it is not empty"),
        ("file", "it is a file"),
        ("file/inside", "Not a directory"),
    ):
        with pytest.raises(InputError, match=f"--export .*{place}: {why}"):
            export(complete, tmp_path / place)


def test_file_names_are_safe_and_differ(database: Database, tmp_path: Path) -> None:
    study = fill_study(database)
    for name in ("../../etc", "a b", "A-B", "é" * 100 + "/x", "é" * 100 + "/y"):
        add_campaign(database, study, items=3, name=name)
    report = build_report(database, "teatime", complete=False)
    folder = tmp_path / "out"
    written = export(report, folder, [Format.CSV])
    assert all(path.parent == folder for path in written)
    assert len({path.name.lower() for path in written}) == len(written)
    drawn = [figure for figure in figures(report).values() if figure.rows]
    assert len(written) == len(tables(report)) + len(drawn)


# ---------------------------------------------------------------- terminals and Markdown


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
