"""What selects the vocabulary that a sentence may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from creamtea_workers.models.interface import Memory


class Selector(Protocol):
    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor] | None:
        """`sources`: the subwords of B sentences, without </s>; `memory`: their encoding.

        One tensor of sorted unique ids a sentence, </s> always among them, on the memory's device; None
        for the full vocabulary. What a sentence gets depends on that sentence only.
        """
