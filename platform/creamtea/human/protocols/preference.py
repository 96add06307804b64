"""Pairwise preference: of two outputs one is better, or they are the same.

A score is 0 for the worse output, 1 for each of two that are the same, 2 for the better one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from creamtea.human.protocols.base import PointsFormat, Protocol, ScoredAnswer
from creamtea.human.protocols.scale import Scale

WORSE, SAME, BETTER = range(3)  # steps


class Preference(Protocol):
    name = "preference"
    title = "pairwise preference"
    summary = "preference: two outputs, the better one or the same"
    welcome = "You will see one sentence and two translations of it at a time, and say which is better."
    task = "Which translation of the source is better?"
    scale = Scale(3, Fraction(0), Fraction(1), decimals=0)
    usual_delta = 0.1  # by convention: five more wins than losses in a hundred pairs
    bin_width = 1.0
    relative = True
    mean_title = "preferred"
    ratio_note = "Preferences have no % of baseline: shares are of ratings, a tie counts half."
    min_outputs = max_outputs = 2
    selections = ("differing", "stratified", "disagreement")  # nobody can prefer one of two equal texts
    chooses_pairs = True
    widget = "choice"
    page_steps = 1

    def shown_together(self, outputs: Sequence[str], pairs: str, baseline: int) -> list[tuple[int, ...]]:
        """An item for each pair whose texts differ; with `pairs` "baseline" only those with the baseline."""
        return [
            pair
            for pair in combinations(range(len(outputs)), 2)
            if outputs[pair[0]] != outputs[pair[1]] and (pairs == "all" or baseline in pair)
        ]

    def usual_deviation(self) -> float:
        from creamtea.stats.power import preference_deviation  # scipy.stats takes a second to import

        return preference_deviation()

    def in_words(self, answers: Sequence[ScoredAnswer]) -> str:
        return ("B is better", "the same", "A is better")[answers[0].step]

    def check_together(self, steps: Sequence[int]) -> None:
        if sum(steps) != SAME * len(steps):
            raise ValueError("a preference says left, same or right: 2 and 0, 1 and 1, or 0 and 2")

    def check_accepted(self, accepted: Sequence[Sequence[int]]) -> None:
        (low, high), other = accepted
        if list(other) != [BETTER - high, BETTER - low]:
            raise ValueError(
                "one output's answer decides the other's: [2, 2] goes with [0, 0], [1, 2] with [0, 1], "
                "[1, 1] with [1, 1]"
            )

    @property
    def points(self) -> PointsFormat:
        """As a share: a win is all, a tie half."""
        return PointsFormat(1, 50.0, "%")
