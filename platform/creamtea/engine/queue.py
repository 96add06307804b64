"""The controller's queue of unfinished steps: a change takes the same time in a study of any size.

The queue is only a hint, built from SQL and lost with the process: SQL decides whether a step can be claimed,
is ready or ends its study. Changes by other processes (a submission, a cancelled study) enter the queue when
it is built again.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from creamtea.contract.step import Resources
from creamtea.engine.executors.base import Capacity, Need

Place = tuple[int, bool, int, int]  # in the queue: priority (negated), exclusive, study, position in study


@dataclass
class QueuedStep:
    """An unfinished step of the studies that a controller works on."""

    state: str  # pending, ready or running
    need: Need
    place: Place = (0, False, 0, 0)
    studies: set[int] = field(default_factory=set)
    pause: float = 0.0  # seconds until it may start
    waits_for: int = 0  # number of unfinished inputs
    needed_by: list[str] = field(default_factory=list)

    def add_place(self, study: int, priority: int, position: int) -> None:
        """Add the step's place in a study; of several places the first counts."""
        # exclusive steps last: they would hold up steps that can share the machine
        place = (-priority, self.need.exclusive, study, position)
        self.place = min(self.place, place) if self.studies else place
        self.studies.add(study)


@dataclass(frozen=True)
class Choice:
    key: str
    need: Need
    nodes: list[str]  # where to start it; empty: no node can ever take it


class Queue:
    def __init__(
        self,
        studies: Iterable[int],
        steps: Mapping[str, QueuedStep],
        edges: Iterable[tuple[str, str]],
        now: float,
    ) -> None:
        """Build the queue.

        `edges`: pairs of an unfinished step and an unfinished input. `now`: by the same clock as for `next`.
        """
        self.studies = set(studies)
        self._steps = dict(steps)
        self._unfinished = Counter(study for step in steps.values() for study in step.studies)
        self._ready: dict[Need, list[tuple[Place, str]]] = defaultdict(list)
        self._paused: list[tuple[float, str]] = []
        for key, before in edges:
            self._steps[key].waits_for += 1
            self._steps[before].needed_by.append(key)
        for key, step in self._steps.items():
            if step.state == "ready":
                self.add(key, now, step.pause)

    def add(self, key: str, now: float, pause: float = 0.0) -> None:
        """Note that a step is ready, now or after `pause` seconds."""
        step = self._steps.get(key)
        if step is None:
            return
        if pause > 0:
            heapq.heappush(self._paused, (now + pause, key))
        else:
            heapq.heappush(self._ready[step.need], (step.place, key))

    def has_ready(self, now: float) -> bool:
        while self._paused and self._paused[0][0] <= now:
            self.add(heapq.heappop(self._paused)[1], now)
        for need in list(self._ready):
            waiting = self._ready[need]
            while waiting and waiting[0][1] not in self._steps:  # cancelled, or its input failed
                heapq.heappop(waiting)
            if not waiting:
                del self._ready[need]
        return bool(self._ready)

    def next(self, capacity: Capacity, now: float) -> Choice | None:
        """Take the first ready step for which a node has room, by priority and place in its study.

        A step that has to wait keeps nodes free of steps with a lower priority. A step that no node can ever
        take is returned as well, so that it fails instead of waiting for ever.
        """
        if not self.has_ready(now):
            return None
        reserved: dict[str, int] = {}  # node: negated priority of the step that waits for it
        for need, waiting in sorted(self._ready.items(), key=lambda item: item[1][0]):
            place, key = waiting[0]
            nodes = capacity.place(need, [name for name, priority in reserved.items() if priority < place[0]])
            if nodes or capacity.refusal(need):
                heapq.heappop(waiting)
                return Choice(key, need, nodes)
            reserved |= dict.fromkeys(capacity.next_to_free(need, reserved), place[0])
        return None

    def released_by(self, key: str) -> list[str]:
        """Return the steps that wait for nothing but this one."""
        needed_by = self._steps[key].needed_by if key in self._steps else []
        return [other for other in needed_by if other in self._steps and self._steps[other].waits_for == 1]

    def succeeded(self, key: str) -> list[int]:
        """Note that a step succeeded; return the studies that have no unfinished step any more."""
        for other in self._steps[key].needed_by if key in self._steps else ():
            if other in self._steps:
                self._steps[other].waits_for -= 1
        return self.remove([key])

    def remove(self, keys: Iterable[str]) -> list[int]:
        """Remove steps that will not run again; return their studies without any unfinished step."""
        touched: set[int] = set()
        for key in keys:
            if (step := self._steps.pop(key, None)) is not None:
                self._unfinished.subtract(step.studies)
                touched |= step.studies
        return [study for study in sorted(touched) if self._unfinished[study] == 0]


# ---------------------------------------------------------------- steps that no node of a cluster can take

NODE_SECONDS = 600.0  # how long a step waits for a suitable node, such as one that restarts
NODE_PAUSE = 5.0  # between two looks for such a node
NODE_GAP = 15.0  # a refusal that comes later than this after the last one begins a new wait


class AbsentNodes:
    """The refusals of waiting steps, by step. Times are in seconds, by a monotonic clock."""

    def __init__(self) -> None:
        self._absences: dict[str, tuple[str, float, float]] = {}  # key -> first refusal, its time, last time

    def waits(self, key: str, refusal: str | None, now: float) -> bool:
        """Return True while a refused step may keep waiting. `refusal` None: the step was not refused."""
        first, since, last = self._absences.pop(key, ("", 0.0, -math.inf))
        if refusal is None:
            return False
        if now > last + NODE_GAP:  # in the meantime a node could take it, or it was not ready
            first, since = refusal, now
        if now >= since + NODE_SECONDS:
            return False
        self._absences[key] = (first, since, now)
        return True

    def reasons(self, now: float) -> dict[str, str]:
        """Return for each waiting step the reason, for people."""
        waiting = f"waiting up to {NODE_SECONDS / 60:g} minutes for nodes that have it"
        return {
            key: f"{refusal}; {waiting}"
            for key, (refusal, _, last) in self._absences.items()
            if now <= last + NODE_GAP
        }


# ---------------------------------------------------------------- groups of workers that could be larger
#
# When a node has come back, or other steps have ended, the attempt is told (`room/` in the artefact store).
# At its next checkpoint it stops, and its step begins again with more workers; that costs no attempt.

GROW_AFTER = 120.0  # seconds that a group works at least, because a new start takes time


def larger_group(resources: Resources, workers: int, capacity: Capacity) -> int:
    """Return the larger number of workers that a group could have; 0 if there is none.

    `capacity`: with the room that running steps leave free. Only powers of two count, as in every group.
    """
    need, (_, most) = Need.of(resources), resources.workers
    for possible in (1 << power for power in range(most.bit_length() - 1, workers.bit_length() - 1, -1)):
        more = possible - workers
        if capacity.place(replace(need, workers=(more, more))):
            return possible
    return 0
