"""Direct assessment: one output at a time, 0 to 100 (WMT 2017 to 2022)."""

from __future__ import annotations

from fractions import Fraction

from creamtea.human.protocols.base import Protocol
from creamtea.human.protocols.scale import Scale


class Da(Protocol):
    name = "da"
    title = "direct assessment"
    summary = "DA: one output, 0 to 100"
    welcome = (
        "You will see one sentence and one translation of it at a time, and give it a score from 0 to 100."
    )
    task = "How well does the translation say what the source says? 0 is worst, 100 is best."
    scale = Scale(101, Fraction(0), Fraction(1), decimals=0)
    usual_delta = 2.0  # by convention
    ratio_note = (
        "A ratio depends on where the scale has its zero, which is a convention: read the points too."
    )
    usual_selection = "all"
    scores_documents = True
    reads_appraise = True
