"""Waiting for a database that has gone away: a restart, a fail-over, a lost connection, a locked file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import psycopg
from sqlalchemy.exc import DBAPIError

T = TypeVar("T")
FIRST_PAUSE = 0.5  # seconds; twice as long each time
MAX_PAUSE = 30.0
# what SQLite calls an OperationalError is mostly a mistake in a statement
SQLITE_OUTAGES = ("locked", "busy", "disk i/o", "unable to open", "is full", "readonly")
POSTGRES_OUTAGES = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,  # a replica that is not the primary yet
)


def is_outage(error: DBAPIError) -> bool:
    """Whether the same transaction can succeed later."""
    if error.connection_invalidated or isinstance(error.orig, POSTGRES_OUTAGES):
        return True
    text = str(error.orig).lower()
    return type(error.orig).__name__ == "OperationalError" and any(sign in text for sign in SQLITE_OUTAGES)


def wait_out(work: Callable[[], T], wait: Callable[[str, float], bool]) -> T:
    """The result of one transaction, tried again until the database answers.

    `wait` is called with the reason and the seconds to wait; where it returns False, the error is raised. A
    transaction whose commit was not confirmed is tried again as well: `work` must allow for that.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return work()
        except DBAPIError as error:
            lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
            if not is_outage(error) or not wait(lines[0], pause):
                raise
            pause = min(2 * pause, MAX_PAUSE)
