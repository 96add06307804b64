"""Ending a command that runs for long, by SIGINT or SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

from creamtea.cli.printing import say
from creamtea.store.engines import Outage


class Stop(Event):
    number = 0  # of the signal that has set it

    def pause(self, outage: Outage, seconds: float) -> bool:
        """Wait for the database; False if this is set."""
        say(outage.trying_again(seconds), err=True)
        return not self.wait(seconds)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """An event that is set by the first SIGINT (control-C) or SIGTERM (of a service manager).

    So the controller stops between two transactions, not inside one. A second signal stops it at once.
    """
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.number = number
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
