"""No selection: every sentence may use the whole vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

from creamtea_workers.models.interface import Memory


class FullSelector:
    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> None:
        return None
