"""How long a rater of Pearmut was on each output, from the actions of a line (`pearmut`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from creamtea.errors import InputError
from creamtea.human.formats.files import Place
from creamtea.human.formats.pearmut import LONGEST_PAUSE, Action

Cell = tuple[int, str]  # segment of a line, system


@dataclass(frozen=True)
class Moments:
    """When an item was given and answered, and how long the rater was on it."""

    assigned_at: datetime
    rated_at: datetime
    active_ms: int | None


class Times:
    """When the cells of a line were given and answered, and how long the rater was on each: the time from one
    action to the next, at most a minute, belongs to what the next is about."""

    def __init__(self, place: Place, actions: Sequence[Action], now: datetime) -> None:
        self._place, self._now = place, now
        self._seconds: dict[Cell, float] = defaultdict(float)
        self._own: dict[Cell, Action] = {}
        self._ends = [action.time for action in actions]
        waiting = 0.0
        last: Cell | None = None
        for at, action in enumerate(actions):
            if at:
                waiting += min(max(action.time - actions[at - 1].time, 0.0), LONGEST_PAUSE)
            if action.index is not None and action.model is not None:
                last = (action.index, action.model)
            if last is not None:
                self._seconds[last] += waiting
                waiting = 0.0
                if action.creamtea:
                    self._own[last] = action

    def of(self, index: int, systems: Sequence[str]) -> Moments:
        """Of an answer; what an export says itself, or the first and the last action of the line."""
        given = rated = None
        active = None
        own = next((self._own[index, system] for system in systems if (index, system) in self._own), None)
        if own is not None and own.creamtea is not None:
            given, rated, active = own.creamtea.assigned_at, own.time, own.creamtea.active_ms
        elif self._ends:
            given, rated = self._ends[0], self._ends[-1]
            seconds = sum(self._seconds.get((index, system), 0.0) for system in systems)
            active = round(1000 * seconds) or None
        return Moments(self._moment(given), self._moment(rated), active)

    def _moment(self, seconds: float | None) -> datetime:
        try:
            return self._now if seconds is None else datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            raise InputError(
                f"{self._place}: actions: found the time {seconds}; allowed: seconds since 1970"
            ) from None
