"""Rater reports: do a rater's answers look like those of somebody who read and judged?

`measures` reads what a campaign's raters answered and turns each rater's answers into numbers, `checks`
judges each number against a stated bound, `report` puts them together. No check excludes anybody: a flag says
"look at this", and leaving ratings out is a person's decision.
"""

from creamtea.human.quality.checks import Check, described_in_words
from creamtea.human.quality.measures import Answers, read_answers
from creamtea.human.quality.report import SIGNS, RaterReport, rater_reports, reports_of

__all__ = [
    "SIGNS",
    "Answers",
    "Check",
    "RaterReport",
    "described_in_words",
    "rater_reports",
    "read_answers",
    "reports_of",
]
