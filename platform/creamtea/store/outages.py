"""Failures of the database that are not mistakes: those that pass, and those that need a person.

A restart, a fail-over, a lost connection or a locked file passes: it is waited for, up to PASSING_SECONDS in
all. A full or read-only disk and missing rights need a person: whoever waits for them says what to do, and
gives up after LASTING_SECONDS. A damaged database is not waited for.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError

T = TypeVar("T")
FIRST_PAUSE = 0.5  # seconds; twice as long each time
MAX_PAUSE = 30.0
LASTING_SECONDS = 300.0  # for which a person has time to mend what does not pass
PASSING_SECONDS = (
    6 * 3600.0
)  # for which a database may be away: a night's maintenance, not a server that fails

PASSES = ""
FREE = "free some space on its disk (then `creamtea gc` may free more)"
# (what SQLite says, what a person has to do). What else it calls an OperationalError is mostly a mistake in a
# statement
SQLITE = (
    ("locked", PASSES),
    ("busy", PASSES),
    ("is full", FREE),
    ("readonly", "check its rights, those of its folder, and whether its disk is read-only"),
    ("unable to open", "check that its folder is there, that this user may write both, and `ulimit -n`"),
    ("disk i/o", f"{FREE}; if it is not full, it fails: see the machine's log"),
)
SQLITE_DAMAGED = ("malformed", "not a database")
RESTORE = "restore it from a backup (docs/how-to/backup.md), or name another in CREAMTEA_DATABASE_URL"
LOGIN = "correct the user, the password or the database in CREAMTEA_DATABASE_URL"
# (how the SQLSTATE begins, what a person has to do), by PostgreSQL's manual, appendix A; psycopg also calls
# mistakes OperationalErrors
POSTGRES = (
    ("08", PASSES),  # the connection is lost
    ("25006", "name the primary server in CREAMTEA_DATABASE_URL, unless this one is about to become it"),
    ("28", LOGIN),
    ("3D000", LOGIN),
    ("40", PASSES),  # undone for the sake of another transaction
    ("42501", "grant its user the rights, or name another in CREAMTEA_DATABASE_URL"),
    ("53100", "free some space on the server's disk"),
    ("53", PASSES),  # no memory or connections left
    ("55P03", PASSES),  # a lock was not to be had in time
    ("57P0", PASSES),  # the server is shutting down or starting
    ("58030", "see the server's log: its disk fails"),
)
POSTGRES_DAMAGED = ("XX001", "XX002")
# a refused connection has no SQLSTATE
POSTGRES_REFUSES = re.compile(r"FATAL:\s+(password authentication|role|no pg_hba|database .* does not exist)")


@dataclass(frozen=True)
class Outage:
    """Why a transaction failed that can succeed once the database is back, or mended."""

    place: str  # of the database, for people
    reason: str  # what it says, in one line
    remedy: str = PASSES  # what a person has to do
    patience: float = PASSING_SECONDS  # seconds for which it is worth trying again

    def __str__(self) -> str:
        if self.remedy:
            return f"{self.place}: {self.reason}; {self.remedy}"
        return f"{self.place} does not answer ({self.reason})"

    def trying_again(self, pause: float) -> str:
        minutes = self.patience / 60
        limit = (
            f", for {minutes / 60:g} hours in all" if minutes > 60 else f", for {minutes:g} minutes in all"
        )
        return f"{self}; trying again in {pause:.2g} s{limit}"


class Waited:
    """How long the database has been away, less the time for which it has answered.

    So a server that comes back for a moment and falls over again uses up the patience, too.
    """

    def __init__(self) -> None:
        self._seconds, self._last, self._away = 0.0, time.monotonic(), False

    def failed(self) -> float:
        """Note that it is away, and return the seconds."""
        self._count(True)
        return self._seconds

    def answered(self) -> None:
        if self._away:
            self._count(False)

    def _count(self, away: bool) -> None:
        now = time.monotonic()
        passed = now - self._last
        self._seconds = self._seconds + passed if self._away else max(0.0, self._seconds - passed)
        self._last, self._away = now, away


def outage_of(error: BaseException) -> Outage | None:
    """Return what is the matter with the database; None if the error is not about it."""
    if not isinstance(error, SQLAlchemyError):
        return None
    outage = _outage(error)
    if outage is None:
        return None
    remedy, patience = outage
    return Outage(getattr(error, "place", "the database"), reason_of(error), remedy, patience)


def _outage(error: SQLAlchemyError) -> tuple[str, float] | None:
    """The remedy and the patience."""
    if isinstance(error, TimeoutError):  # all connections of the pool are in use
        return PASSES, PASSING_SECONDS
    if not isinstance(error, DBAPIError):
        return None
    cause, remedy = error.orig, None
    if isinstance(cause, sqlite3.DatabaseError):
        text = str(cause).lower()
        if any(sign in text for sign in SQLITE_DAMAGED):
            return RESTORE, 0.0
        if isinstance(cause, sqlite3.OperationalError):
            remedy = next((remedy for sign, remedy in SQLITE if sign in text), None)
    elif (sqlstate := getattr(cause, "sqlstate", None)) is not None:
        if str(sqlstate).startswith(POSTGRES_DAMAGED):
            return RESTORE, 0.0
        remedy = next((remedy for sign, remedy in POSTGRES if str(sqlstate).startswith(sign)), None)
    # not an answer of the server. By name, because importing psycopg takes a moment that SQLite does not need
    elif {"OperationalError", "InterfaceError"} & {kind.__name__ for kind in type(cause).__mro__}:
        refused = POSTGRES_REFUSES.search(str(cause))
        remedy = LOGIN if refused else PASSES
    if remedy is None and error.connection_invalidated:
        remedy = PASSES
    return None if remedy is None else (remedy, LASTING_SECONDS if remedy else PASSING_SECONDS)


def name_place(engine: Engine, place: str) -> None:
    """Let errors of the engine know which database they are about, for `outage_of`."""

    def name_it(context: ExceptionContext) -> None:
        if context.sqlalchemy_exception is not None:
            context.sqlalchemy_exception.place = place  # type: ignore[attr-defined]

    event.listen(engine, "handle_error", name_it)


def reason_of(error: SQLAlchemyError) -> str:
    """What the database says, in one line."""
    if isinstance(error, TimeoutError):
        return "all connections to it are in use"
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__


def wait_out(work: Callable[[], T], wait: Callable[[Outage, float], bool], waited: Waited | None = None) -> T:
    """Return the result of one transaction, tried again while the database may come back.

    `wait` is called with what is the matter and the seconds to wait. If it returns False, or the patience for
    such an outage is over, the error is raised. `waited`: what earlier transactions have waited. A
    transaction whose commit was not confirmed is tried again: `work` must allow for that.
    """
    pause, began, waited = FIRST_PAUSE, time.monotonic(), waited or Waited()
    while True:
        try:
            result = work()
        except SQLAlchemyError as error:
            outage = outage_of(error)
            away = waited.failed()
            spent = time.monotonic() - began if outage is not None and outage.remedy else away
            left = 0.0 if outage is None else outage.patience - spent
            if outage is None or left <= 0 or not wait(outage, min(pause, left)):
                raise
            pause = min(2 * pause, MAX_PAUSE)
        else:
            waited.answered()
            return result
