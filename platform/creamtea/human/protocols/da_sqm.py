"""Direct assessment with the labelled points of scalar quality metrics: DA+SQM (WMT 2022, 2023)."""

from __future__ import annotations

from typing import ClassVar

from creamtea.human.protocols.da import Da


class DaSqm(Da):
    name = "da-sqm"
    title = "direct assessment with labelled points (DA+SQM)"
    summary = "DA+SQM: one output, 0 to 100 with labelled points"
    task = "How well does the translation say what the source says? Any score from 0 to 100."
    labelled_points: ClassVar[tuple[tuple[int, str], ...]] = (  # on a scale of 0 to 6 in WMT 2022
        (0, "No meaning preserved"),
        (33, "Some meaning preserved"),
        (67, "Most meaning preserved and few grammar mistakes"),
        (100, "Perfect meaning and grammar"),
    )
