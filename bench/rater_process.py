"""One process of simulated raters: it works, dies, loses connections and sends things twice."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError

from creamtea.human import rating as assignment
from creamtea.human.rating import RatingRefused, Work
from creamtea.store.database import open_database

MAX_SPANS = 6  # of one answer


@dataclass(frozen=True)
class Trouble:
    """What happens to a rater's processes."""

    think: float = 2.0  # seconds on average between an item and its submit
    deaths: int = 2  # how many of its processes are killed
    lost: float = 0.05  # share of transactions whose connection closes right before the commit
    doubled: float = 0.3  # share of submits that are sent again


class Life:
    """Run some raters in one process, each in a thread of its own, as a web server does.

    The seed, the first rater and the life decide what each of them does next.
    """

    def __init__(
        self, url: str, folder: Path, raters: Sequence[int], life: int, trouble: Trouble, seed: int
    ) -> None:
        self.raters, self.trouble = raters, trouble
        self.draw = random.Random(f"{seed}/{raters[0]}/{life}")
        self.journal = os.open(folder / f"{raters[0]}.journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.database = open_database(url, migrate=False)
        event.listen(self.database.engine, "commit", self._before_commit)
        # some deaths come at any moment, the others around a commit
        self.commits_left = self.draw.randint(1, 8 * len(raters)) if life < trouble.deaths else None
        if life < trouble.deaths and self.draw.random() < 0.3:
            self.commits_left = None
            killer = threading.Timer(self.draw.uniform(0.1, 4 * trouble.think + 0.4), self._die)
            killer.daemon = True
            killer.start()

    def note(self, what: str, **facts: Any) -> None:
        """One line by one write, so that a kill leaves whole lines."""
        os.write(self.journal, (json.dumps({"what": what, **facts}) + "\n").encode())

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _dies_here(self) -> None:
        if self.commits_left is not None:
            self.commits_left -= 1
            if self.commits_left < 0:
                self._die()

    def _before_commit(self, connection: Any) -> None:
        self._dies_here()
        if self.draw.random() < self.trouble.lost:
            self.note("lost")
            driver = connection.connection.dbapi_connection
            if connection.dialect.name == "sqlite":
                driver.rollback()  # a file has no other side that would notice
            driver.close()

    @contextmanager
    def clock(self, call: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.note(call, ms=1000 * (time.perf_counter() - began))

    def next_item(self, rater: int) -> Work | None:
        while True:
            try:
                with self.clock("next_item"):
                    return assignment.next_item(self.database, rater)
            except SQLAlchemyError:  # the connection was lost: the page asks again
                continue

    def answer(self, work: Work, output: str) -> Any:
        """Any answer of the protocol, as it is stored."""
        if work.protocol.name == "contrastive-da":
            return self.draw.randrange(work.protocol.scale.steps)
        spans = []
        for _ in range(self.draw.randint(0, MAX_SPANS)):
            start = self.draw.randrange(len(output))
            end = self.draw.randrange(start, len(output))
            span = {"severity": self.draw.choice(("minor", "major"))}
            if all(end < other["start"] or other["end"] < start for other in spans):
                spans.append({"start": start, "end": end, **span})
        answer = {"score": self.draw.randint(0, 100), "spans": spans}
        return work.protocol.read_answer(answer, output).payload

    def submit(self, rater: int, work: Work, answers: list[Any]) -> None:
        # the journal has steps by system, as the database has them
        while True:
            try:
                with self.clock("submit"):
                    saved = assignment.submit(self.database, rater, work.assignment_id, answers)
            except SQLAlchemyError:
                continue
            except RatingRefused:  # the lease ran out
                return
            self._dies_here()
            self.note("saved", assignment=work.assignment_id, steps=saved.steps)
            return

    def run(self) -> None:
        with ThreadPoolExecutor(len(self.raters)) as pool:
            list(pool.map(self.rate, self.raters))

    def rate(self, rater: int) -> None:
        while (work := self.next_item(rater)) is not None:
            time.sleep(self.draw.expovariate(1 / self.trouble.think))
            times = 2 if self.draw.random() < self.trouble.doubled else 1
            for _ in range(times):
                answers = [self.answer(work, text) for text in work.outputs]
                systems = [int(text.rsplit(" ", 1)[1]) for text in work.outputs]
                order = sorted(range(len(systems)), key=systems.__getitem__)
                self.note("sent", assignment=work.assignment_id, answers=[answers[i] for i in order])
                self.submit(rater, work, answers)


def live(url: str, folder: Path, raters: Sequence[int], life: int, trouble: Trouble, seed: int) -> None:
    Life(url, folder, raters, life, trouble, seed).run()
