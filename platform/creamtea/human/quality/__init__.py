"""Rater reports: do a rater's answers look like those of somebody who read and judged?

`measures` reads what a campaign's raters answered and turns each rater's answers into numbers; `reports`
judges each number against a stated bound, and puts the checks together. No check excludes anybody: a flag
says "look at this", and leaving ratings out is a person's decision.
"""

from creamtea.human.quality.measures import Answers as Answers
from creamtea.human.quality.measures import read_answers as read_answers
from creamtea.human.quality.reports import Check as Check
from creamtea.human.quality.reports import RaterReport as RaterReport
from creamtea.human.quality.reports import described_in_words as described_in_words
from creamtea.human.quality.reports import rater_reports as rater_reports
from creamtea.human.quality.reports import reports_of as reports_of
