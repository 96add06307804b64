"""Questions about the rater: written by the line, checked, stored and exported."""

import csv
from pathlib import Path

import pytest
from small_campaigns import make_campaign
from sqlalchemy import select, update
from table_rows import one_of, row_of

from creamtea.errors import InputError
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.making.questions import (
    Question,
    WrongAnswers,
    checked_answers,
    read_questions,
    write_questions,
)
from creamtea.human.making.settings import settings_of
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Rater

TEXT = "First language? | German | English\n\nYears of translating | number\n=Else? | optional\n"
QUESTIONS = [
    Question(ask="First language?", options=["German", "English"]),
    Question(ask="Years of translating", number=True),
    Question(ask="=Else?", optional=True),
]


def test_a_line_ends_with_lf_or_cr_lf_alone() -> None:
    """U+2028 and its like are characters of a question."""
    asked = read_questions("A\u2028B? | x | y\r\nC\x85D\x0bE?\n")
    assert [question.ask for question in asked] == ["A\u2028B?", "C\x85D\x0bE?"]
    assert asked[0].options == ["x", "y"]


@pytest.fixture
def campaign(database: Database) -> str:
    """The name of a launched campaign."""
    campaign_id = make_campaign(database)
    return row_of(database, Campaign, campaign_id).name


def test_questions_are_read_and_written_by_the_line() -> None:
    assert read_questions(TEXT) == QUESTIONS
    assert read_questions(write_questions(QUESTIONS)) == QUESTIONS
    assert read_questions("") == []


@pytest.mark.parametrize(
    "text", ["| a | b", "x | a", "x | a | a", "x | number | a | b", "x\nx", "x |  | a", "x" * 301]
)
def test_what_is_no_question_is_told_with_its_line(text: str) -> None:
    with pytest.raises(InputError, match="line"):
        read_questions(text)


def test_answers_are_checked_one_by_one() -> None:
    for text, number in (("3,5", 3.5), ("0.125", 0.125)):  # no thousand begins with 0
        assert checked_answers(QUESTIONS, ["German", text, ""]) == {
            "First language?": "German",
            "Years of translating": number,
        }
    with pytest.raises(WrongAnswers) as wrong:
        checked_answers(QUESTIONS, ["French", "nan", "x" * 501])
    assert set(wrong.value.messages) == {0, 1, 2}
    with pytest.raises(WrongAnswers) as wrong:
        checked_answers(QUESTIONS, [])
    assert set(wrong.value.messages) == {0, 1}


def test_answers_come_with_the_consent_and_go_into_exports(
    database: Database, campaign: str, tmp_path: Path
) -> None:
    settings = {"questions": [one.model_dump() for one in QUESTIONS]}
    with database.transaction() as session:
        session.execute(update(Campaign).values(settings=settings))
    rater = raters.add(database, campaign, "test", pseudonym="anna")
    raters.add(database, campaign, "test", pseudonym="ben")
    with pytest.raises(WrongAnswers):
        raters.consent(database, rater)
    assert not raters.welcome(database, rater).consented
    raters.consent(database, rater, ["English", "4", "=1+1"])
    stored = one_of(database, select(Rater.answers).where(Rater.id == rater))
    assert stored == {"First language?": "English", "Years of translating": 4.0, "=Else?": "=1+1"}
    export_campaign(database, campaign, "csv", tmp_path / "export", "test")
    with (tmp_path / "export" / "raters.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["rater", "First language?", "Years of translating", "'=Else?"],
            ["anna", "English", "4.0", "'=1+1"],
            ["ben", "", "", ""],
        ]


@pytest.mark.parametrize("number", ["1,000", "1.000", "12,500"])
def test_a_mark_between_thousands_is_not_taken_for_a_decimal_point(number: str) -> None:
    with pytest.raises(WrongAnswers, match="thousands"):
        checked_answers(QUESTIONS, ["German", number, ""])


def test_a_forgotten_rater_keeps_no_answer_in_own_words(database: Database, campaign: str) -> None:
    with database.transaction() as session:
        settings = {"questions": [question.model_dump() for question in QUESTIONS]}
        session.execute(update(Campaign).values(settings=settings))
    rater = raters.add(database, campaign, "test", pseudonym="anna")
    raters.consent(database, rater, ["English", "4", "I am Anna Meier of Bonn"])
    raters.forget(database, rater, "test")
    stored = one_of(database, select(Rater.answers).where(Rater.id == rater))
    assert stored == {"First language?": "English", "Years of translating": 4.0}


@pytest.mark.parametrize("address", ["http://x.org", "javascript:alert(1)", "https://", "https://a b"])
def test_the_return_address_is_one_with_https(address: str) -> None:
    with pytest.raises(InputError, match="completion_url"):
        settings_of({"completion_url": address})
    assert settings_of(
        {"completion_url": "https://app.prolific.com/submissions/complete?cc=C1"}
    ).completion_url
