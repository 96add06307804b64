"""The Ray of this machine that a controller starts for itself: on loopback, in a folder that goes with it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.scratch import host_id, is_running
from creamtea.settings import is_withheld, make_private

OBJECT_STORE = 80 << 20  # bytes; only small JSON values pass through it
# seconds that Ray's processes have to start or to answer on a busy machine; by itself Ray waits 30 to 60
PATIENCE = 300
LIMITS = (
    "gcs_server_port_wait_time_s",
    "gcs_server_request_timeout_seconds",
    "gcs_rpc_server_reconnect_timeout_s",  # after which Ray ends the controller's own process
    "worker_register_timeout_seconds",
)
MAX_FOLDER = 40  # characters: below it Ray makes sockets, whose path may have 107
NEEDED = ("gcs_server", "raylet")  # without either nothing runs any more
# what Ray starts even without its dashboard, and waits seconds for: the server of the dashboard, the process
# that hands on the workers' output, and the one that asks for further nodes
NEEDLESS = ("start_api_server", "start_log_monitor", "start_monitor")
_SESSION = re.compile(r"session_.*_(?P<pid>\d+)")


def prepare() -> dict[str, Any]:
    """Set what Ray reads from the environment; returns the options of `ray.init`."""
    _stay_on_loopback()
    for limit in LIMITS:
        os.environ.setdefault(f"RAY_{limit}", str(PATIENCE))
    # a try every three seconds or more; a raylet that has ended is seen by `death`
    os.environ.setdefault("RAY_health_check_failure_threshold", str(PATIENCE // 3))
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        # a token of this run's own; Ray would write one into the home folder
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    folder = sessions()
    for place in (folder.parent, folder):
        with suppress(FileExistsError):  # as a file
            make_private(place)
        status = place.lstat()  # others may write into the folder that holds it
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
            raise InputError(
                f"{place} is not a folder of this user: remove it, or set TMPDIR to a folder of your own"
            )
    folder.parent.chmod(0o700)
    clear_sessions()
    return {
        "num_cpus": os.cpu_count(),
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE,
        "_temp_dir": str(folder),
    }


@contextmanager
def without_needless_processes() -> Iterator[None]:
    """For a Ray that is started meanwhile."""
    from ray._private.node import Node

    before = {name: getattr(Node, name) for name in NEEDLESS}
    for name in NEEDLESS:
        setattr(Node, name, lambda node, **options: None)
    try:
        yield
    finally:
        for name, start in before.items():
            setattr(Node, name, start)


@contextmanager
def withheld_variables() -> Iterator[None]:
    """Keep from the processes that are started meanwhile what `is_withheld`, and from their workers."""
    kept = {name: os.environ.pop(name) for name in list(os.environ) if is_withheld(name)}
    try:
        yield
    finally:
        os.environ.update(kept)


def _stay_on_loopback() -> None:
    """All ports of the next Ray on loopback, also if Ray was imported before and read its environment."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # its processes read that; the name is Ray's
    from ray._private import ray_constants

    ray_constants.ENABLE_RAY_CLUSTER = False


def sessions() -> Path:
    """Where the Rays of this user on this machine keep their sockets and logs.

    Ray opens that folder to everybody (0777), so that it lies in one that nobody else may enter.
    """
    name = f"creamtea-{host_id()}-{os.getuid()}/ray"
    folder = Path(tempfile.gettempdir()) / name
    return folder if len(str(folder)) <= MAX_FOLDER else Path("/tmp") / name  # noqa: S108  # its owner is checked


def clear_sessions(own: bool = False) -> None:
    """Remove the sessions of processes that are gone, and this one's if it has no Ray any more."""
    for folder in sessions().glob("session_*"):
        name = _SESSION.fullmatch(folder.name)
        pid = int(name["pid"]) if name else None
        if pid is not None and ((own and pid == os.getpid()) or not is_running(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def death() -> str:
    """Which of Ray's processes has ended; empty while all that it needs are alive, however busy."""
    from ray._private import worker

    node = worker._global_node
    if node is None:
        return ""
    dead = [(name, process.returncode) for name, process in node.dead_processes() if name in NEEDED]
    return ", ".join(f"{name} with code {code}" for name, code in dead)
