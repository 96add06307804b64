"""How long a training will take on this machine."""

from __future__ import annotations

import importlib
import math
import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from creamtea.study.start.recipe import Recipe
from creamtea.study.survey import Survey

MAX_CPUS = 4
QUICKER, FAR_QUICKER = 1.15, 3.0  # how much quicker fp32 must be to be chosen: at rest, on a busy machine
OVERHEAD = 1.5  # validations, a busier machine


class _Speed(Protocol):
    def tokens_per_second(
        self, architecture: dict[str, Any], vocabulary: int, batch_tokens: int, length: float, threads: int
    ) -> dict[str, list[float]]: ...


@dataclass(frozen=True)
class Timing:
    """`speeds`: target subwords per second, by `autocast`, medians over rounds; empty if nothing was timed.
    `steady`: whether one was clearly quicker in every round, or in none."""

    cpus: int
    speeds: dict[str, float]
    busy: bool = False  # other programs had much of the machine when it was timed
    steady: bool = True

    @property
    def autocast(self) -> str:
        """The default unless the other is clearly quicker, in every round."""
        return "none" if self.steady and is_quicker(self.speeds, self.busy) else "bf16"

    def minutes(self, recipe: Recipe) -> tuple[float, float] | None:
        """Of the updates alone, and of a training on a busier machine; None where nothing was timed."""
        if not self.speeds:
            return None
        whole = recipe.epoch_tokens * recipe.epochs / self.speeds[self.autocast] / 60
        return whole, OVERHEAD * whole


def is_quicker(speeds: Mapping[str, float], busy: bool) -> bool:
    """Whether fp32 is clearly quicker than bf16."""
    return speeds.get("none", 0.0) > (FAR_QUICKER if busy else QUICKER) * speeds.get("bf16", 1.0)


def own_cpus() -> int:
    """What a training is given on this machine."""
    return min(MAX_CPUS, os.cpu_count() or 1)


def time_updates(recipe: Recipe, architecture: dict[str, Any], text: Survey) -> Timing:
    """Run a few updates of this shape here; none where the workers (torch) are not installed."""
    cpus = own_cpus()
    try:
        speed = cast(_Speed, importlib.import_module("creamtea_workers.training.speed"))
    except ImportError:
        return Timing(cpus, {})
    busy = os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)
    length = recipe.epoch_tokens / max(1, text.usable)
    rounds = speed.tokens_per_second(architecture, recipe.vocabulary, recipe.size.batch_tokens, length, cpus)
    pairs = zip(*rounds.values(), strict=True)
    verdicts = {is_quicker(dict(zip(rounds, pair, strict=True)), busy) for pair in pairs}
    speeds = {name: statistics.median(values) for name, values in rounds.items()}
    return Timing(cpus, speeds, busy, steady=len(verdicts) == 1)


def in_words(minutes: tuple[float, float]) -> str:
    """As "3 to 12 minutes", "2 to 7 hours", "1 to 4 days"."""
    low, high = minutes
    for unit, size in (("days", 2880.0), ("hours", 120.0)):
        if high >= size:
            each = 1440.0 if unit == "days" else 60.0
            return f"{max(1, math.floor(low / each))} to {math.ceil(high / each)} {unit}"
    return f"{max(1, math.floor(low))} to {max(2, math.ceil(high))} minutes"
