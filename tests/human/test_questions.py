"""Questions about the rater: written by the line, checked, stored and exported."""

import csv
from pathlib import Path

import pytest
from small_campaigns import add_rater, make_campaign
from sqlalchemy import select
from table_rows import one_of

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
from creamtea.store.tables import Rater

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


def test_lines_of_old_macs_are_not_one_line() -> None:
    with pytest.raises(InputError, match="questions: lines that end with CR alone"):
        read_questions("A? | x | y\rB?\r")


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
    for answers, places in (
        (["French", "nan", "x" * 501], {0, 1, 2}),
        ([], {0, 1}),
        *((["German", number, ""], {1}) for number in ("1,000", "1.000", "12,500")),  # thousands or a point?
    ):
        with pytest.raises(WrongAnswers) as wrong:
            checked_answers(QUESTIONS, answers)
        assert set(wrong.value.messages) == places


def test_answers_come_with_the_consent_go_into_exports_and_are_forgotten_where_in_own_words(
    database: Database, tmp_path: Path
) -> None:
    make_campaign(database, questions=[question.model_dump() for question in QUESTIONS])
    rater = add_rater(database, consented=False)
    add_rater(database, "ben", consented=False)
    with pytest.raises(WrongAnswers):
        raters.consent(database, rater)
    assert not raters.welcome(database, rater).consented
    raters.consent(database, rater, ["English", "4", "=1+1"])
    answers = select(Rater.answers).where(Rater.id == rater)
    chosen = {"First language?": "English", "Years of translating": 4.0}
    assert one_of(database, answers) == {**chosen, "=Else?": "=1+1"}
    export_campaign(database, "c", "csv", tmp_path / "export", "test")
    with (tmp_path / "export" / "raters.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["rater", "First language?", "Years of translating", "'=Else?"],
            ["anna", "English", "4.0", "'=1+1"],
            ["ben", "", "", ""],
        ]
    raters.forget(database, rater, "test")
    assert one_of(database, answers) == chosen


@pytest.mark.parametrize("address", ["http://x.org", "javascript:alert(1)", "https://", "https://a b"])
def test_the_return_address_is_one_with_https(address: str) -> None:
    with pytest.raises(InputError, match="completion_url"):
        settings_of({"completion_url": address})
    assert settings_of(
        {"completion_url": "https://app.prolific.com/submissions/complete?cc=C1"}
    ).completion_url
