"""A Ray cluster on loopback, with a token and one CPU per node."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from limits import ANSWER, RAY_ENVIRONMENT, START, wait_until

from creamtea.engine.executors.ray import check_address
from creamtea.errors import InputError

# Ray's own environment is not that of the steps here, which would leave its first workers unused
NO_IDLE_WORKERS = {"RAY_prestart_worker_first_driver": "0"}
# Ray's own command, which would give a node 30 seconds to start, and start processes that nobody asks
RAY = f"""
from creamtea.engine.executors.ray_internals import sparing_start
from ray.scripts.scripts import main

with sparing_start({START}):
    main()
"""


def free_port() -> int:
    """A port outside the range from which Ray takes those of its workers."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if not 10000 <= port < 20000:
            return port


@dataclass
class Cluster:
    folder: Path
    token: str
    port: int
    nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start_node(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", RAY, "start", "--block", "--num-cpus=1"]
        command += ["--node-ip-address=127.0.0.1", "--min-worker-port=0", "--max-worker-port=0"]
        command += ["--object-store-memory=80000000", "--disable-usage-stats"]
        command += [f"--node-name=node{len(self.nodes)}"]
        if self.nodes:
            command += [f"--address={self.address}"]
        else:
            command += ["--head", f"--port={self.port}", f"--temp-dir={self.folder}"]
        command += options
        environment = {
            **os.environ,
            **RAY_ENVIRONMENT,
            **NO_IDLE_WORKERS,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "CREAMTEA_DATABASE_URL": "postgresql://u:secret@h/d",  # which nodes should not have been given
            # a killed node is noticed in seconds instead of half a minute; a busy one has time to answer
            "RAY_health_check_initial_delay_ms": "1000",
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_timeout_ms": "30000",
            "RAY_health_check_failure_threshold": "3",
        }
        with (self.folder / f"node{len(self.nodes)}.log").open("wb") as output:
            node = subprocess.Popen(
                command, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        self.nodes.append(node)
        return node

    def wait_for_node(self) -> None:
        """Until the one started last has joined: of two that start at once both may take the same sockets."""
        log = self.folder / f"node{len(self.nodes) - 1}.log"

        def ready() -> bool:
            assert self.nodes[-1].poll() is None, log.read_text()[-2000:]
            return "Ray runtime started" in log.read_text()

        wait_until(ready, START, lambda: f"for a node: {log}")

    def stop(self) -> None:
        for node in self.nodes:
            kill_tree(node.pid)
            node.wait(ANSWER)


@contextmanager
def running_cluster(*head: str) -> Iterator[Cluster]:
    """With a head that was started with these options, and is ready; this process has its token."""
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # a socket's path must be short
    started = Cluster(folder, secrets.token_hex(32), free_port())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", started.token)
        try:
            started.start_node(*head)
            started.wait_for_node()
            wait_for_head(started)
            yield started
        finally:
            started.stop()
            shutil.rmtree(folder, ignore_errors=True)


def kill_tree(pid: int) -> None:
    try:
        parent = psutil.Process(pid)
        family = [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return
    for process in family:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=ANSWER)


def wait_for_head(cluster: Cluster) -> None:
    def answers() -> bool:
        try:
            check_address(cluster.address)
        except InputError:
            return False
        return True

    wait_until(
        answers,
        START,
        lambda: f"for the head: {(cluster.folder / 'node0.log').read_text(errors='replace')[-2000:]}",
    )
