"""The section of characteristic n-grams: in whole reports only, and only where there are any."""

from dataclasses import replace

import pytest
from filled_study import fill_study, lines

from creamtea.report.build import build_report
from creamtea.report.cells import Measured, StudyResults
from creamtea.report.model import Section, Table
from creamtea.report.outputs import build_ngrams
from creamtea.store.database import Database
from creamtea.words import joined, words_of_language


def test_a_system_that_always_says_more_is_told_by_its_words(database: Database) -> None:
    texts = [
        (source, [outputs[0], f"ach {outputs[0]}", outputs[0], outputs[0]]) for source, outputs in lines(40)
    ]
    study = fill_study(database, texts)
    report = build_report(database, study)
    table = report.table("ngrams/narwhal/tapir-lexicon")
    assert (table.rows[0].name, table.rows[0].description) == ("ach", "more in tapir-lexicon")
    assert (table.rows[0].cells["ours"].value, table.rows[0].cells["theirs"].value) == (40, 0)
    assert [
        block.key for _, block in report.walk() if isinstance(block, Table) and block.heading == "n-gram"
    ] == ["tapir-lexicon"]
    assert "ngrams" not in {section.key for section in build_report(database, study, complete=False).sections}
    ngrams = build_ngrams(database, study).only("narwhal")
    assert ngrams is not None
    (own,) = ngrams.blocks
    assert isinstance(own, Section)
    assert own == report.section("ngrams/narwhal")


def test_another_seed_does_not_stand_for_the_first(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        (source, [outputs[0], f"ach {outputs[0]}", outputs[0], outputs[0]]) for source, outputs in lines(40)
    ]
    study = fill_study(database, texts)
    outputs = StudyResults.outputs

    def with_a_seed_that_failed(material: StudyResults, system: str, test_set: str) -> list[Measured]:
        own = outputs(material, system, test_set)
        if system != "tapir-lexicon":
            return own
        return [replace(own[0], node=replace(own[0].node, state="failed")), *own]

    monkeypatch.setattr(StudyResults, "outputs", with_a_seed_that_failed)
    assert "ngrams" not in {section.key for section in build_report(database, study).sections}


def test_systems_near_zero_have_none(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the marks of significance: what both get wrong says nothing of either."""
    texts = [(source, [outputs[0], f"ach {outputs[0]}", *outputs[2:]]) for source, outputs in lines(40)]
    study = fill_study(database, texts)
    low = {"tapir-greedy": 0.1, "tapir-lexicon": 0.2}
    monkeypatch.setattr("creamtea.report.outputs.near_zero", lambda *_: low)
    listed = [block.key for _, block in build_report(database, study).walk() if isinstance(block, Table)]
    assert "tapir-lexicon" not in listed
    del low["tapir-greedy"]
    listed = [block.key for _, block in build_report(database, study).walk() if isinstance(block, Table)]
    assert "tapir-lexicon" in listed


def test_without_differences_there_is_no_section(database: Database) -> None:
    study = fill_study(database, [(source, [outputs[0]] * 4) for source, outputs in lines(40)])
    assert "ngrams" not in {section.key for section in build_report(database, study).sections}


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
