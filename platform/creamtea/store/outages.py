"""Waiting for a database that has gone away: a restart, a fail-over, a lost connection, a locked file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError

T = TypeVar("T")
FIRST_PAUSE = 0.5  # seconds; twice as long each time
MAX_PAUSE = 30.0
# what SQLite calls an OperationalError is mostly a mistake in a statement
SQLITE_OUTAGES = ("locked", "busy", "disk i/o", "unable to open", "is full", "readonly")
# how their SQLSTATE begins (PostgreSQL's manual, appendix A); psycopg also calls mistakes OperationalErrors
POSTGRES_OUTAGES = (
    "08",  # the connection is lost
    "25006",  # read-only: a replica that is not the primary yet
    "40",  # undone for the sake of another transaction
    "53",  # no space, memory or connections left
    "55P03",  # a lock was not to be had in time
    "57P0",  # the server is shutting down or starting
    "58030",  # the disk failed
)


def is_outage(error: SQLAlchemyError) -> bool:
    """Whether the same transaction can succeed later."""
    if isinstance(error, TimeoutError):  # all connections of the pool are in use
        return True
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        text = str(cause).lower()
        return isinstance(cause, sqlite3.OperationalError) and any(sign in text for sign in SQLITE_OUTAGES)
    sqlstate = getattr(cause, "sqlstate", None)
    if sqlstate is not None:
        return str(sqlstate).startswith(POSTGRES_OUTAGES)
    # not an answer of the server. By name, because importing psycopg takes a moment that SQLite does not need
    return not {"OperationalError", "InterfaceError"}.isdisjoint(
        kind.__name__ for kind in type(cause).__mro__
    )


def reason_of(error: SQLAlchemyError) -> str:
    """What the database says, in one line."""
    if isinstance(error, TimeoutError):
        return "all connections to it are in use"
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__


def wait_out(work: Callable[[], T], wait: Callable[[str, float], bool]) -> T:
    """The result of one transaction, tried again until the database answers.

    `wait` is called with the reason and the seconds to wait; where it returns False, the error is raised. A
    transaction whose commit was not confirmed is tried again as well: `work` must allow for that.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return work()
        except SQLAlchemyError as error:
            if not is_outage(error) or not wait(reason_of(error), pause):
                raise
            pause = min(2 * pause, MAX_PAUSE)
