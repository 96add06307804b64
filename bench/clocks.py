"""How long something takes: by the clock, and in processor time of this process and of a PostgreSQL server.

On a busy machine the first says how busy it is; the other two are what the work costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import psutil

Result = TypeVar("Result")


@dataclass
class Clocks:
    """Milliseconds of several calls of one thing; `server` is the process id of PostgreSQL's postmaster."""

    server: int
    wall: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)  # processor time of this process
    servers: float = 0.0  # processor time of all of the server's processes, of all calls: it counts in 10 ms

    def time(self, work: Callable[[], Result]) -> Result:
        before, own, wall = self._of_server(), time.process_time(), time.perf_counter()
        result = work()
        self.wall.append(1000 * (time.perf_counter() - wall))
        self.own.append(1000 * (time.process_time() - own))
        self.servers += self._of_server() - before
        return result

    def processor_times(self) -> dict[str, float]:
        """The median of this process, the mean of the server."""
        return {
            "own CPU": sorted(self.own)[len(self.own) // 2],
            "server CPU": self.servers / len(self.wall),
        }

    def _of_server(self) -> float:
        postmaster = psutil.Process(self.server)
        times = postmaster.cpu_times()
        total = times.user + times.system + times.children_user + times.children_system
        for process in postmaster.children():
            try:
                of_child = process.cpu_times()
            except psutil.NoSuchProcess:  # it has just ended
                continue
            total += of_child.user + of_child.system
        return 1000 * total
