"""What a page shows of a training while it runs: its curves, its speed, and how a few translations change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from creamtea.contract.step import RUNNING_LOSS, LiveExample, LiveView, PointRow
from creamtea_workers.training.checkpoint import Position
from creamtea_workers.training.evaluate import Development

T = TypeVar("T")
EVERY = 2.0  # seconds between views
MAX_LOSSES = 300
MAX_OUTPUTS = 12  # of an example


class LiveTraining:
    """Collects what is shown; of what an attempt before this one collected, only the curves are known."""

    def __init__(self, development: Development, show: Callable[[LiveView], None]) -> None:
        self._development, self._show = development, show
        self._losses: list[tuple[int, float]] = []  # update, loss of the updates since the last one
        self._outputs: list[tuple[int, Sequence[str]]] = []  # update, a translation for each example
        self._tokens = 0  # trained on before the last loss
        self._next = 0.0

    def begin(self, position: Position) -> None:
        self._tokens = position.tokens

    def add_loss(self, position: Position, loss: float) -> float:
        """Return the mean of `loss`, the sum over the tokens since the last one."""
        tokens, self._tokens = position.tokens - self._tokens, position.tokens
        self._losses = thinned([*self._losses, (position.update, loss / tokens)], MAX_LOSSES)
        return loss / tokens

    def add_translations(self, update: int, outputs: Sequence[str]) -> None:
        self._outputs = thinned([*self._outputs, (update, outputs)], MAX_OUTPUTS)
        self._next = 0.0  # that is worth showing at once

    def refresh(self, position: Position, seconds: float) -> None:
        """Show how it is now, at most once in EVERY. `seconds`: of training, those of `position` included."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        points = [PointRow(series, update, value) for series, update, value in position.points]
        points += [PointRow(RUNNING_LOSS, update, value) for update, value in self._losses]
        self._show(LiveView(points, self._examples(), position.tokens / seconds if seconds > 0 else None))

    def _examples(self) -> list[LiveExample]:
        texts = zip(self._development.sources, self._development.references, strict=False)
        shown = min((len(outputs) for _, outputs in self._outputs), default=0)
        return [
            LiveExample(source, reference, [(update, outputs[at]) for update, outputs in self._outputs])
            for at, (source, reference) in zip(range(shown), texts, strict=False)
        ]


def thinned(items: list[T], most: int) -> list[T]:
    """Every second one where they are too many; the first and the last stay."""
    return items if len(items) <= most else [*items[:-1:2], items[-1]]
