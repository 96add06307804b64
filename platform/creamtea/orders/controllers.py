"""Whether a controller is running that will do what is ordered."""

from __future__ import annotations

import socket
from datetime import datetime

import psutil
from sqlalchemy import select

from creamtea.store.database import Database
from creamtea.store.tables import Controller


def live_controller(database: Database) -> Controller | None:
    with database.session() as session:
        row = session.scalar(select(Controller))
        return row if row is not None and is_alive(row, database.now(session)) else None


def is_alive(row: Controller, now: datetime) -> bool:
    if row.lease_until <= now:
        return False
    host, pid, start = row.owner.rsplit(":", 2)
    if host != socket.gethostname():
        return True
    started = started_at(int(pid))
    # correcting the clock can move the reported start time by a second
    return started is not None and abs(started - int(start)) <= 2


def started_at(pid: int) -> int | None:
    """When the process started, in seconds since 1970; None if it is gone."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return int(process.create_time())
    except psutil.Error:
        return None
