"""Find out if a controller is running; until one is, requests wait."""

from __future__ import annotations

import os
import re
import socket
from datetime import datetime
from pathlib import Path

import psutil
from sqlalchemy import select

from creamtea.files import is_running
from creamtea.store.database import Database
from creamtea.store.tables import Controller

PROC = Path("/proc")  # only Linux has it
OWNER = re.compile(
    r"(?P<host>[^/]*)(/(?P<boot>[^/]*)/(?P<namespace>[^/]*)/(?P<ticks>\d+))?:(?P<pid>\d+):(?P<start>-?\d+)"
)
START_FIELD = 19  # index of the start time in /proc/PID/stat, counted from the field after the name


def live_controller(database: Database) -> Controller | None:
    with database.session() as session:
        row = session.scalar(select(Controller))
        return row if row is not None and is_alive(row, database.now(session)) else None


def is_alive(row: Controller, now: datetime) -> bool:
    """Return False if the controller's lease has expired, or its process ran on this host and is gone."""
    if row.lease_until <= now:
        return False
    if (owner := OWNER.fullmatch(row.owner)) is None or owner["host"] != socket.gethostname():
        return True
    pid = int(owner["pid"])
    if owner["ticks"] is not None:
        # the owner may run elsewhere: in another container, or on another machine with this host name. If
        # this machine was only restarted, the lease soon expires
        if (owner["boot"], owner["namespace"]) != (boot_id(), pid_namespace()):
            return True
        started_now = start_ticks(pid)  # another value: a later process has this pid
        return is_running(pid) if started_now is None else started_now == owner["ticks"]
    started = started_at(pid)
    # correcting the clock can move the reported start time by a second
    return started is not None and abs(started - int(owner["start"])) <= 2


# ---------------------------------------------------------------- who a process is


def own_name() -> str:
    """Return this process as host:pid:start; on Linux as host/boot/namespace/ticks:pid:start.

    The start tells the process from a later one with the same pid. `start`, in seconds since 1970, is for
    people and moves when the clock is set; `ticks` since the boot never move. Containers may share a host
    name and still see different processes: each has its own pid namespace.
    """
    pid = os.getpid()
    place = socket.gethostname()
    if (since := start_ticks(pid)) is not None:
        place = f"{place}/{boot_id()}/{pid_namespace()}/{since}"
    return f"{place}:{pid}:{started_at(pid)}"


def started_at(pid: int) -> int | None:
    """Return when the process started, in seconds since 1970; None if it is gone."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return int(process.create_time())
    except psutil.Error:
        return None


def start_ticks(pid: int) -> str | None:
    """Return when the process started, in ticks since the boot.

    "" for a zombie. None if the process is gone, if /proc hides it (another user's process, with hidepid), or
    if there is no /proc.
    """
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return "" if fields[0] in (b"Z", b"X") else fields[START_FIELD].decode()
    except (OSError, IndexError):
        return None


def boot_id() -> str:
    """Return an identifier of the machine's present boot; "" if it has none."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return the number of this process's pid namespace; "" if it has none."""
    try:
        return "".join(filter(str.isdigit, str((PROC / "self/ns/pid").readlink())))
    except OSError:
        return ""
