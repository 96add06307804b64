"""Characteristic n-grams; idioms with the subwords that selections miss, in every printer."""

from dataclasses import replace
from typing import Any

import analysis_rows
import pytest
from analysis_rows import row
from blocks import in_terminal
from filled_study import fill_study, lines
from teatime_study import SPEC, Build

from creamtea.report.build import build_report
from creamtea.report.cells import Measured, StudyResults
from creamtea.report.model import Document, Table
from creamtea.report.outputs import build_ngrams
from creamtea.store.database import Database
from creamtea.words import joined, words_of_language


@pytest.fixture
def study(database: Database) -> int:
    """Outputs of which those of one system all begin with one word more."""
    texts = [(source, [first, f"ach {first}", first, first]) for source, (first, *_) in lines(40)]
    return fill_study(database, texts)


def compared(database: Database, study: int, complete: bool = True) -> list[str]:
    """Systems with a table of n-grams."""
    report = build_report(database, study, complete=complete)
    tables = [block.key for _, block in report.walk() if getattr(block, "heading", "") == "n-gram"]
    assert ("ngrams" in {section.key for section in report.sections}) == bool(tables)
    return tables


def test_a_system_that_always_says_more_is_told_by_its_words(database: Database, study: int) -> None:
    report = build_report(database, study)
    first, *_ = report.table("ngrams/narwhal/tapir-lexicon").rows
    assert (first.name, first.description) == ("ach", "more in tapir-lexicon")
    assert (first.cells["ours"].value, first.cells["theirs"].value) == (40, 0)
    assert compared(database, study) == ["tapir-lexicon"]
    assert compared(database, study, complete=False) == []
    ngrams = build_ngrams(database, study).only("narwhal")
    assert ngrams is not None
    assert ngrams.blocks == (report.section("ngrams/narwhal"),)


def test_another_seed_does_not_stand_for_the_first(
    database: Database, study: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = StudyResults.outputs

    def with_a_seed_that_failed(material: StudyResults, system: str, test_set: str) -> list[Measured]:
        own = outputs(material, system, test_set)
        if system != "tapir-lexicon":
            return own
        return [replace(own[0], node=replace(own[0].node, state="failed")), *own]

    monkeypatch.setattr(StudyResults, "outputs", with_a_seed_that_failed)
    assert compared(database, study) == []


def test_systems_near_zero_have_none(database: Database, study: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the marks of significance: what both get wrong says nothing of either."""
    low = {"tapir-greedy": 0.1, "tapir-lexicon": 0.2}
    monkeypatch.setattr("creamtea.report.outputs.near_zero", lambda *_: low)
    assert compared(database, study) == []
    del low["tapir-greedy"]
    assert compared(database, study) == ["tapir-lexicon"]


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("I don't; it’s Bob's.", "en", ["I", "don't", ";", "it’s", "Bob's", "."]),
        ("J'aime l’eau.", "fr_FR", ["J'", "aime", "l’", "eau", "."]),
        ("食べる2杯", "ja", ["食", "べ", "る", "2", "杯"]),
        ("ขอบคุณ", "th", ["ข", "อ", "บ", "คุ", "ณ"]),
        ("पानी नहीं", "hi", ["पानी", "नहीं"]),
    ],
)
def test_words_are_those_of_the_language(text: str, language: str, words: list[str]) -> None:
    assert words_of_language(text, language) == words
    assert joined(words).replace(" ", "") == text.replace(" ", "")


def test_a_phrase_is_shown_as_its_script_writes_it() -> None:
    assert joined(["食", "べ", "る"]) == "食べる"
    assert joined(["on", "my", "2", "杯"]) == "on my 2杯"


# ---------------------------------------------------------------- idioms


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
