"""Greedy search: the most likely token at every step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from creamtea.methods.searches import Greedy
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Detokenize, Hypothesis, SearchInput, SearchMethod
from creamtea_workers.search.columns import Choice, decode_columns
from creamtea_workers.search.output import OutputLayer


@dataclass(frozen=True)
class GreedySearch(SearchMethod):
    """The arg max of the logits; of equal ones the lowest id.

    Every objective is monotone in the logits, so that the decision needs no activation (SCONES,
    footnote 7); the hypotheses are the same with `with_scores` and without.
    """

    max_length_ratio: float = 2.0

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """One hypothesis per sentence."""
        return [best for (best,) in decode_columns(batch, 1, SCORED if batch.with_scores else UNSCORED)]


def _most_likely_unscored(
    objective: Objective, output: OutputLayer, hidden: Tensor, uniforms: None
) -> tuple[Tensor, None]:
    return output.best(hidden), None


def _most_likely(
    objective: Objective, output: OutputLayer, hidden: Tensor, uniforms: None
) -> tuple[Tensor, Tensor]:
    logits = output.logits(hidden)  # (n, 1, K)
    positions = logits.argmax(-1, keepdim=True)  # the first, thus lowest, of equal ones
    scores = output.log_scores(objective, logits).gather(2, positions)
    return positions.squeeze(2), scores.squeeze(2)


SCORED, UNSCORED = Choice("greedy", _most_likely), Choice("argmax", _most_likely_unscored, scored=False)


def build(spec: Greedy, detokenize: Detokenize | None) -> GreedySearch:
    return GreedySearch(spec.max_length_ratio)
