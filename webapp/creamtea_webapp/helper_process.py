"""Processes that work for the web app, which has neither torch nor workers.

A request is a line of JSON, and so is each row of the answer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any

from creamtea.errors import CreamteaError
from creamtea.settings import child_environment


class TookTooLong(CreamteaError):
    """The process was ended."""


@dataclass
class HelperProcess:
    """A process that the first request starts, and that keeps what it has loaded.

    It ends by itself after a long time without a request. It answers one request at a time: callers hold
    `busy` meanwhile.
    """

    process: subprocess.Popen[str] | None = None
    busy: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, command: Sequence[str], request: Any, count: int, seconds: float) -> list[dict[str, Any]]:
        """Return as many of `count` rows of JSON as the process gave: fewer if it ended early.

        Raises TookTooLong after so many seconds.
        """
        line = json.dumps(request)
        if self.process is not None:
            rows = self._ask(self.process, line, count, seconds)
            if rows or self.process is not None:
                return rows
        # there was no process, or it has just ended
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=child_environment(),
        )
        return self._ask(self.process, line, count, seconds)

    def _ask(
        self, process: subprocess.Popen[str], line: str, count: int, seconds: float
    ) -> list[dict[str, Any]]:
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process)

        watch = threading.Timer(seconds, stop)
        watch.start()
        rows: list[dict[str, Any]] = []
        try:
            with suppress(BrokenPipeError):  # it has ended; what it printed before can be read
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
            # a process that is ended while it writes leaves a partial line, which is not a row
            whole = takewhile(lambda answer: answer.endswith("\n"), islice(process.stdout, count))
            rows += (json.loads(answer) for answer in whole)
        finally:
            watch.cancel()
            if len(rows) < count:
                self.end()
        if late.is_set() and len(rows) < count:
            raise TookTooLong(f"It took more than {seconds:.0f} seconds and was ended.")
        return rows

    def end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            _kill(process)
            process.communicate()


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
