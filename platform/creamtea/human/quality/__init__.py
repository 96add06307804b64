"""Rater reports: do a rater's answers look like those of somebody who read and judged?

`answers` reads what a campaign's raters answered, `measures` turns a rater's answers into numbers, `checks`
judges each number against a stated bound, `report` puts them together, `measured` says how often they are
wrong about people. No check excludes anybody: a flag says "look at this", and leaving ratings out is a
person's decision.
"""

from creamtea.human.quality.answers import RaterAnswer, read_answers
from creamtea.human.quality.checks import Check
from creamtea.human.quality.measured import described_in_words
from creamtea.human.quality.report import SIGNS, RaterReport, rater_reports, reports_of

__all__ = [
    "SIGNS",
    "Check",
    "RaterAnswer",
    "RaterReport",
    "described_in_words",
    "rater_reports",
    "read_answers",
    "reports_of",
]
