"""Contrastive direct assessment: all outputs side by side, each from 1 to 6 by 0.2 (Domhan et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from creamtea.human.protocols.base import MAX_SYSTEMS, MIN_SYSTEMS, Protocol
from creamtea.human.protocols.scale import Scale


class ContrastiveDa(Protocol):
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
    min_outputs, max_outputs = MIN_SYSTEMS, MAX_SYSTEMS
    page_steps = 5
    typing_help = "the score: 4, or 4.6"
    page_help = "a whole point down or up"

    def shown_together(self, outputs: Sequence[str], pairs: str, baseline: int) -> list[tuple[int, ...]]:
        return [tuple(range(len(outputs)))]
