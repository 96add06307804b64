"""The section of characteristic n-grams: in whole reports only, and only where there are any."""

from dataclasses import replace

import pytest
from filled_study import fill_study, lines

from creamtea.report.build import build_report
from creamtea.report.cells import Measured, StudyResults
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
