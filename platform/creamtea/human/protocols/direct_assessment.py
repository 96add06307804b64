"""Direct assessment: every output gets a score, alone or beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from creamtea.human.protocols.base import MAX_OUTPUTS, MIN_SYSTEMS, Protocol
from creamtea.human.protocols.scale import Scale


class Da(Protocol):
    """One output at a time, 0 to 100 (WMT 2017 to 2022)."""

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


class DaSqm(Da):
    """DA+SQM: with the labelled points of scalar quality metrics (WMT 2022, 2023)."""

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


class ContrastiveDa(Protocol):
    """All outputs side by side, each from 1 to 6 by 0.2 (Domhan et al. 2022)."""

    name = "contrastive-da"
    title = "contrastive direct assessment"
    summary = "contrastive DA: 2 to 8 outputs at once, 1 to 6 by 0.2"
    welcome = (
        "You will see one sentence at a time and several translations of it, and give each a score from 1 "
        "to 6."
    )
    task = "How good is each translation of the source? 1 is worst, 6 is best."
    scale = Scale(26, Fraction(1), Fraction(1, 5), decimals=1)
    # half a step: about 2 % of a mean of 4.5 to 5, the half-width of the intervals in their Table 5
    usual_delta = 0.1
    bin_width = 0.2
    scores_documents = True
    ratio_note = (
        "A ratio on a scale from 1 to 6 depends on its zero point: the worst score counts as 1 of 6, so that "
        "a difference in points gives a smaller percentage than it would on 0 to 5. Read the points beside "
        "it."
    )
    min_outputs, max_outputs = MIN_SYSTEMS, MAX_OUTPUTS
    page_steps = 5
    typing_help = "the score: 4, or 4.6"
    page_help = "a whole point down or up"

    def shown_together(self, outputs: Sequence[str], pairs: str, baseline: int) -> list[tuple[int, ...]]:
        return [tuple(range(len(outputs)))]
