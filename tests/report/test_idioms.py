"""Idioms with the subwords that selections miss, or that only the context selects, in every printer."""

from typing import Any

import analysis_rows
import pytest
from analysis_rows import row
from blocks import in_terminal
from teatime_study import SPEC, Build

from creamtea.report.model import Document, Table


def missed(source: str, target: str, *subwords: str) -> dict[str, Any]:
    return {"source": source, "target": target, "subwords": [], "missed": subwords}


def recall(count: int, *idioms: dict[str, Any]) -> list[dict[str, Any]]:
    detail = {"missed": {"count": count, "of": 9, "idioms": idioms}}
    return [row("recall", 0.5, "idiom_words", detail=detail), row("recall", 0.9, "sentence")]


@pytest.fixture(scope="module")
def report(shared_report: Build) -> Document:
    spec = SPEC | {"analyses": {"context": analysis_rows.analyses("test")["nvs_context"]}}
    moon, pie = missed("over the <b>moon</b>", "überglücklich", "lich"), missed("pie", "Torte", "▁Tor", "te")
    found = {"segment": 3, "source": "pie", "target": "Torte", "only_in_context": ["▁Tor"]}
    detail = {"only_in_context": {"count": 1, "of": 4, "idioms": [found]}}
    context = [row("all_words_selected", 0.5, "0.9/only_sentence", detail=detail)]
    changes = {
        "recall/softmax-lexicon": {"metrics": recall(1, moon)},  # complete
        "recall/softmax-nvs": {"metrics": recall(7, pie)},  # the first of 7
        "nvs_context/context": {"metrics": context},
    }
    return shared_report(spec, changes)


def shown(table: Table) -> list[tuple[str, str, list[str]]]:
    return [(r.name, r.description, [r.cells[c.key].words for c in table.columns]) for r in table.rows]


def test_a_row_is_an_idiom_and_a_column_a_system(report: Document) -> None:
    table = report.table("systems/test/idioms-whose-subwords-are-missed")
    assert [column.title for column in table.columns] == ["softmax-lexicon", "softmax-nvs"]
    assert shown(table) == [
        ("pie", "Torte", ["none", "▁Tor, te"]),
        ("over the <b>moon</b>", "überglücklich", ["lich", "—"]),
    ]
    cut = table.rows[1].cells["softmax-nvs"]
    assert cut.state == "absent"
    assert "not among the 1 listed" in cut.note
    assert "softmax-lexicon: 1 of 9; softmax-nvs: 7 of 9" in table.about
    assert table.folded


def test_an_analysis_lists_segments_by_threshold(report: Document) -> None:
    table = report.table("context/subwords-that-only-the-context-selects")
    assert [column.title for column in table.columns] == ["softmax, λ=0.9, only in context"]
    assert shown(table) == [("pie", "Torte (segment 4)", ["▁Tor"])]


def test_long_lists_are_wrapped_in_the_terminal(build: Build) -> None:
    subwords = [f"▁subword{n}" for n in range(50)]
    shown = in_terminal(build({"recall/": {"metrics": recall(1, missed("pie", "Torte", *subwords))}}), 60)
    assert max(map(len, shown.splitlines())) <= 60
    assert all(subword in shown for subword in subwords)
    assert "…" not in shown


def test_without_lists_there_is_no_table(complete: Document) -> None:
    assert not any("missed" in path for path, _ in complete.walk())
