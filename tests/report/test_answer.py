"""What came out: the first block of a report says what its tables show."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console
from teatime_study import Fill

from creamtea.contract.columns import Column
from creamtea.report.answer import REVERSIBLE, TITLE
from creamtea.report.build import build_report
from creamtea.report.html import to_html
from creamtea.report.human.build import build_human
from creamtea.report.markdown import to_markdown
from creamtea.report.model import ONE_SEED, Cell, Figure, Notes, Row, Table
from creamtea.report.tables import ranked
from creamtea.report.terminal import render
from creamtea.report.values import to_values
from creamtea.store.database import Database


def sentences(database: Database) -> tuple[str, ...]:
    notes, *_ = build_report(database, "teatime").section("answer/test").blocks
    assert isinstance(notes, Notes)
    return notes.paragraphs


def test_the_answer_says_what_the_tables_show(tasted: Database) -> None:
    assert sentences(tasted) == (
        "scones-greedy has the highest score: 34.0 BLEU [32.5, 35.8]; against the baseline softmax-greedy "
        f"+2.0 [1.0, 3.0], {ONE_SEED}.",
        "Better than softmax-greedy: softmax-nvs.",
        "No test has compared scones-greedy with these: each was compared with the baseline.",
        "Not told apart from softmax-greedy: softmax-lexicon.",
        "People, against softmax-greedy: worse: softmax-lexicon; undecided: softmax-nvs "
        "(120 of 120 item ratings (100 %) by 2 raters).",
        "softmax-nvs is the fastest: 10.0 ms, 33 % [31, 36] of softmax-greedy; its BLEU differs from "
        "softmax-greedy by +2.0 [1.0, 3.0].",
        "Idiom recall in context: softmax-lexicon 60.0 % [55.0, 64.0]; softmax-nvs 90.0 % [85.0, 94.0].",
    )


def test_variants_with_one_seed_may_change_places(filled: Database, fill: Fill, spec: dict[str, Any]) -> None:
    for variant in spec["variants"].values():
        variant["seeds"] = [1]
    fill(filled, spec)
    assert REVERSIBLE in sentences(filled)


def test_nothing_is_said_of_scores_that_are_not_there(filled: Database, fill: Fill) -> None:
    fill(filled, changes={"score/": {"state": "pending", "metrics": []}})
    assert sentences(filled)[0] == "No system has a BLEU score yet."


def test_the_picture_has_the_best_system_first_and_marks_the_baseline(tasted: Database) -> None:
    report = build_report(tasted, "teatime")
    picture = report.section("answer/test").blocks[1]
    assert isinstance(picture, Figure)
    assert picture.spec["layer"][1]["encoding"]["y"]["scale"]["domain"] == [
        "scones-greedy",
        "softmax-nvs",
        "softmax-lexicon",
        "softmax-greedy (baseline)",
    ]
    cells = {row.name: row.cells["bleu"] for row in report.table("systems/test/systems").rows}
    for row in picture.rows:
        cell = cells[row["system"]]
        assert (row["value"], row["low"], row["high"]) == (cell.value, cell.low, cell.high)
    assert [row["system"] for row in picture.rows if row["baseline"]] == ["softmax-greedy"]


def test_the_picture_names_what_has_no_score(filled: Database, fill: Fill) -> None:
    fill(filled, changes={"score/scones-greedy": {"state": "pending", "metrics": []}})
    picture = build_report(filled, "teatime").section("answer/test").blocks[1]
    assert isinstance(picture, Figure)
    assert picture.missing == ("scones-greedy (pending)",)
    assert "scones-greedy" not in {row["system"] for row in picture.rows}


def test_every_printer_begins_with_the_answer(tasted: Database) -> None:
    report = build_report(tasted, "teatime")
    terminal = StringIO()
    render(report, Console(file=terminal, width=180))
    for shown in (terminal.getvalue(), to_markdown(report), to_html(report)):
        assert 0 < shown.index(TITLE) < shown.index("has the highest score") < shown.index("0.8125")
    assert to_values(report)["sections"][0]["key"] == "answer"


def test_the_table_has_the_best_system_first_by_a_metric_that_may_count_errors() -> None:
    def row(name: str, value: float | None) -> Row:
        return Row(name, {"m": Cell("ok", value=value)})

    rows = (row("none", None), row("b", 2.0), row("human", 9.0), row("a", 1.0))
    higher = Table("t", "", "system", (Column("m", "m", 1, "higher"),), rows)
    assert [own.name for own in ranked(higher, {"human"}).rows] == ["b", "a", "human", "none"]
    lower = replace(higher, columns=(Column("m", "m", 1, "lower"),))
    assert [own.name for own in ranked(lower, {"human"}).rows] == ["a", "b", "human", "none"]


def test_a_campaigns_own_report_begins_with_what_people_say(tasted: Database) -> None:
    notes, *_ = build_human(tasted, "tasting").sections[0].blocks
    assert isinstance(notes, Notes)
    first, verdicts = notes.paragraphs
    assert first.startswith("People put softmax-")
    assert "against softmax-greedy: worse: softmax-lexicon" in verdicts
