"""Files of a report: CSV that reads back, LaTeX that escapes, figures that are drawn; bad folders."""

import csv
import errno
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from blocks import figures, systems, tables
from human_rows import add_campaign
from teatime_study import fill_study

from creamtea.contract.step import Column
from creamtea.errors import InputError
from creamtea.papers.catalogue import exhibits, papers
from creamtea.printable import text_from_cell
from creamtea.report.build import build_report
from creamtea.report.export import Format, export, figure_csv, file_stem, files_of, table_csv, to_latex
from creamtea.report.model import Cell, Delta, Document, Figure, PValue, Row, Table
from creamtea.report.tables import RECALL_IDIOM, RECALL_WORDS
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
