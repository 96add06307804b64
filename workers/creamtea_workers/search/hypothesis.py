"""What a search returns, and how long it may be."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One translation. `score` is NaN where the search was told not to score."""

    tokens: list[int]  # subwords, without </s>
    score: float  # sum of the tokens' log-scores; that of </s> is included where `finished`
    finished: bool  # False: cut at the length limit before </s> ("truncated")


def length_limit(ratio: float, source_subwords: int) -> int:
    """The maximum number of tokens (</s> included) of a hypothesis for a source with `source_subwords`
    (</s> not counted): ceil(ratio × source_subwords) + 10."""
    return math.ceil(ratio * source_subwords) + 10
