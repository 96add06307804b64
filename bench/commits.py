"""What it costs to sync every commit on SQLite: ratings saved with and without, one after the other.

    python bench/commits.py [--items 1000] [--folder FOLDER]

Two databases in FOLDER have the same campaign. One syncs each commit with the disk, as creamtea does, the
other only when its log is written back (`synchronous=NORMAL`), so that a power cut could undo ratings that
were acknowledged. A rater works on both in turn: other work on the machine slows both alike. Times are the
milliseconds that a call took, in processor time of this process too, and those of a bare write of 4 kB with
its sync.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from simulated_raters import fill
from sqlalchemy import event

from creamtea.human import rating as assignment
from creamtea.settings import processor_name
from creamtea.store.database import Database, open_database

T = TypeVar("T")


@dataclass
class Times:
    """Seconds of each call: by the clock, and of this process's processor time."""

    wall: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to measure"
    )
    arguments = parser.parse_args()
    times: dict[tuple[str, str], Times] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        databases = {name: opened(Path(folder) / f"{name}.db", name) for name in ("FULL", "NORMAL")}
        raters = {
            name: fill(found, raters=1, items=arguments.items, k=1)[0] for name, found in databases.items()
        }
        for _ in range(arguments.items):
            for name, database in databases.items():
                rate(database, raters[name], lambda call, name=name: times.setdefault((call, name), Times()))
        times["bare sync", ""] = bare_syncs(Path(folder) / "bare", arguments.items)
    print(f"{processor_name()}, {os.cpu_count()} cores; {arguments.items} ratings")
    print(f"{'call':<12} {'synchronous':<12} {'median':>8} {'p95':>8} {'p99':>8} {'CPU':>8}")
    for (call, name), taken in times.items():
        percentiles = statistics.quantiles([1000 * one for one in taken.wall], n=100)
        median, p95, p99 = percentiles[49], percentiles[94], percentiles[98]
        own = 1000 * statistics.median(taken.own)
        print(f"{call:<12} {name:<12} {median:>8.2f} {p95:>8.2f} {p99:>8.2f} {own:>8.2f}")


def opened(path: Path, synchronous: str) -> Database:
    database = open_database(f"sqlite:///{path}")
    database.close()

    def configure(connection: Any, record: object) -> None:
        connection.execute(f"PRAGMA synchronous={synchronous}")

    event.listen(database.engine, "connect", configure)
    return database


def rate(database: Database, rater: int, times: Callable[[str], Times]) -> None:
    work = timed(times("next item"), lambda: assignment.next_item(database, rater))
    assert work is not None
    answers = [3] * len(work.outputs)
    timed(times("submit"), lambda: assignment.submit(database, rater, work.assignment_id, answers, 1))


def timed(times: Times, call: Callable[[], T]) -> T:
    began, own = time.perf_counter(), time.process_time()
    result = call()
    times.wall.append(time.perf_counter() - began)
    times.own.append(time.process_time() - own)
    return result


def bare_syncs(path: Path, count: int) -> Times:
    times = Times()
    with path.open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(bytes(4096))
            timed(times, lambda: os.fsync(file.fileno()))
    return times


if __name__ == "__main__":
    main()
