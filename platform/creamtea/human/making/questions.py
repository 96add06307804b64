"""Questions about the rater, which a campaign asks before the first item.

An organiser writes one question per line, with the answers to choose from after bars:

    Which language did you grow up with? | German | English | another
    Years of translating | number
    What else should we know? | optional

Without answers to choose from, the rater writes a text of one line; with `number` a number from 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from creamtea.document.values import Strict
from creamtea.errors import CreamteaError, wrong
from creamtea.files import lines_of
from creamtea.store.rows import check_text
from creamtea.wording import counted

NUMBER, OPTIONAL = "number", "optional"
MAX_QUESTIONS, MAX_ANSWER = 30, 500  # questions of a campaign; characters of an answer
Answers = dict[str, str | float]  # by question
Words = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(check_text)]


class Question(Strict):
    """A question about the rater."""

    ask: Words  # the question
    options: list[Words] = Field(default_factory=list)  # answers to choose from; none: a text, or a number
    number: bool = False  # the answer is a number
    optional: bool = False  # it may be left blank


class WrongAnswers(CreamteaError):
    """Missing or invalid answers: a message for each, by the question's number from 0."""

    def __init__(self, messages: dict[int, str]) -> None:
        super().__init__("; ".join(messages.values()))
        self.messages = messages


def read_questions(text: str) -> list[Question]:
    """Read questions from a text, one per line. InputError names the line."""
    questions: list[Question] = []
    for number, line in enumerate(lines_of(text, "questions"), start=1):
        if not line.strip():
            continue
        ask, *rest = (part.strip() for part in line.split("|"))
        marks = [part for part in rest if part in (NUMBER, OPTIONAL)]
        options = [part for part in rest if part not in (NUMBER, OPTIONAL)]
        mistake = ""
        if not ask or "" in options or len(set(options)) != len(options) or len(options) == 1:
            mistake = "write the question, then after bars (|) two or more different answers, "
            mistake += "`number`, or nothing"
        elif NUMBER in marks and options:
            mistake = "a number has no answers to choose from"
        elif max(len(part) for part in (ask, *options)) > 300:
            mistake = "more than 300 characters in one part"
        elif ask in [question.ask for question in questions]:
            mistake = f"{ask!r} is asked twice"
        if mistake:
            raise wrong("raters.questions", f"line {number}: {mistake}")
        questions.append(
            Question(ask=ask, options=options, number=NUMBER in marks, optional=OPTIONAL in marks)
        )
    if len(questions) > MAX_QUESTIONS:
        raise wrong(
            "raters.questions", f"{counted(len(questions), 'question')}; at most {MAX_QUESTIONS} are allowed"
        )
    return questions


def write_questions(questions: Sequence[Question]) -> str:
    """Write questions as the text that `read_questions` reads."""
    return "\n".join(
        " | ".join(
            [question.ask, *question.options, *[NUMBER] * question.number, *[OPTIONAL] * question.optional]
        )
        for question in questions
    )


def checked_answers(questions: Sequence[Question], given: Sequence[str]) -> Answers:
    """Return the answers by question, without blank ones. WrongAnswers for missing or invalid answers."""
    answers: Answers = {}
    wrong: dict[int, str] = {}
    for number, question in enumerate(questions):
        text = given[number].strip() if number < len(given) else ""
        if not text and question.optional:
            continue
        try:
            answers[question.ask] = _checked(question, text)
        except ValueError as error:
            wrong[number] = str(error)
    if wrong:
        raise WrongAnswers(wrong)
    return answers


def _checked(question: Question, text: str) -> str | float:
    if not text:
        raise ValueError("Please answer this question.")
    if question.options and text not in question.options:
        raise ValueError("Please choose one of the answers.")
    if len(text) > MAX_ANSWER:
        raise ValueError(f"Please use at most {MAX_ANSWER} characters.")
    if question.number:
        if re.search(r"[1-9]\d*[.,]\d{3}$", text):  # 1,000 and 1.000 mean a thousand or one
            raise ValueError("Please write the number without thousands separators.")
        try:
            value = float(text.replace(",", "."))
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1e9:
            raise ValueError("Please write a number.")
        return value
    return check_text(text)
