"""Steps that fit no node of a cluster: for how long each waits for one that may come, or come back."""

from __future__ import annotations

from dataclasses import dataclass, replace

NODE_SECONDS = 600.0  # for which a step waits for a node that it fits, such as one that restarts
NODE_PAUSE = 5.0  # between two looks for one
NODE_GAP = 15.0  # between two refusals, after which the second begins a wait of its own


@dataclass(frozen=True)
class _Absence:
    refusal: str
    since: float
    seen: float  # the last time

    def lasts(self, now: float) -> bool:
        """Whether it has gone on until now; else the step fitted a node meanwhile, or was not ready."""
        return now <= self.seen + NODE_GAP

    @property
    def reason(self) -> str:
        return f"{self.refusal}; waiting up to {NODE_SECONDS / 60:g} minutes for nodes that have it"


class AbsentNodes:
    """What the steps that wait were refused, by step. Times are of a clock that only rises, in seconds."""

    def __init__(self) -> None:
        self._absences: dict[str, _Absence] = {}

    def waits(self, key: str, refusal: str | None, now: float) -> bool:
        """Whether a step goes on waiting that was just refused, if it was. Not where that has lasted for as
        long as a step waits."""
        before = self._absences.pop(key, None)
        if refusal is None:
            return False
        if before is None or not before.lasts(now):
            before = _Absence(refusal, now, now)
        if now >= before.since + NODE_SECONDS:
            return False
        self._absences[key] = replace(before, seen=now)
        return True

    def reasons(self, now: float) -> dict[str, str]:
        """Why each step waits that waits now, for people."""
        return {key: absence.reason for key, absence in self._absences.items() if absence.lasts(now)}
