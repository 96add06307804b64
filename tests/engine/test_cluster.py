"""A Ray cluster of two nodes on loopback, with a token: steps on both, a lost node, refused tokens."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from limits import ANSWER, START, wait_until
from toy_controller import runtime_env
from toy_steps import ENOUGH
from toy_study import ToyStudy, happenings

from creamtea.engine import state
from creamtea.engine.controller import Controller
from creamtea.engine.events import EngineEvent, StepProgressed
from creamtea.engine.executors.ray import RayExecutor, check_address
from creamtea.errors import InputError
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def free_ports(count: int) -> list[int]:
    """Ports outside the range from which Ray takes those of its workers."""
    probes = []
    while len(probes) < count:
        probe = socket.socket()
        probe.bind(("127.0.0.1", 0))
        if not 10000 <= probe.getsockname()[1] < 20000:
            probes.append(probe)
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@dataclass
class Cluster:
    folder: Path
    token: str
    port: int
    nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start_node(self) -> subprocess.Popen[bytes]:
        agent, metrics, client = free_ports(3)
        command = [Path(sys.executable).with_name("ray"), "start", "--block", "--num-cpus=1"]
        command += ["--node-ip-address=127.0.0.1", "--min-worker-port=0", "--max-worker-port=0"]
        command += [f"--dashboard-agent-listen-port={agent}", f"--metrics-export-port={metrics}"]
        command += ["--object-store-memory=80000000", "--disable-usage-stats"]
        if self.nodes:
            command += [f"--address={self.address}"]
        else:
            command += ["--head", f"--port={self.port}", f"--ray-client-server-port={client}"]
            command += [f"--temp-dir={self.folder}", "--include-dashboard=false"]
        environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
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

    def stop(self) -> None:
        for node in self.nodes:
            kill_tree(node.pid)
            node.wait(ANSWER)


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


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head and one more node, one CPU each."""
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # a socket's path must be short
    started = Cluster(folder, secrets.token_hex(32), free_ports(1)[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", started.token)
        try:
            started.start_node()
            wait_for_head(started)
            started.start_node()
            yield started
        finally:
            started.stop()
            shutil.rmtree(folder, ignore_errors=True)


def wait_for_head(cluster: Cluster) -> None:
    # in a process of its own: Ray reads the token once in a process
    code = f"from creamtea.engine.executors.ray import check_address; check_address({cluster.address!r})"
    command = [sys.executable, "-c", code]
    wait_until(
        lambda: subprocess.run(command, capture_output=True, timeout=ANSWER).returncode == 0,
        START,
        lambda: f"for the head: {(cluster.folder / 'node0.log').read_text(errors='replace')[-2000:]}",
    )


def test_steps_run_on_both_nodes_and_go_on_when_one_is_lost(
    cluster: Cluster,
    sqlite: Database,
    store: ArtefactStore,
    study: ToyStudy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("creamtea.engine.state.BACK_OFF", state.BACK_OFF / 20)
    executor = RayExecutor(cluster.address, runtime_env())
    try:
        wait_for_nodes(executor, 2)
        for name in ("one", "two", "three", "four"):
            study.add(name, "nap", seconds=1.0)
        # these two wait on either node until one is lost; its step then needs the other's CPU to begin again
        for name in ("left", "right"):
            study.add(name, "watch", before=["one", "two", "three", "four"])
        submission = study.submit(sqlite, store)
        told: set[str] = set()
        lost: list[str] = []

        def emit(event: EngineEvent) -> None:
            if isinstance(event, StepProgressed) and event.message.startswith("tick"):
                told.add(event.key)
            if len(told) == 2 and not lost:
                lost.append(event.key)
                kill_tree(cluster.nodes[1].pid)
                (study.log / ENOUGH).touch()

        Controller(sqlite, store, executor, emit).run(submission.study_id)
    finally:
        executor.shutdown()
    rows = study.rows(sqlite)
    assert {row.state for row in rows.values()} == {"succeeded"}
    ran_on = {row.facts["node"] for name, row in rows.items() if row.facts and name not in ("left", "right")}
    assert len(ran_on) == 2, "both nodes had steps"
    retried = [name for name in ("left", "right") if "retry" in happenings(sqlite, study.keys[name])]
    assert len(retried) == 1, "only the step of the lost node ran again"


def wait_for_nodes(executor: RayExecutor, count: int) -> None:
    wait_until(lambda: len(executor.capacity().nodes) >= count, START, lambda: "for the second node")


@pytest.mark.parametrize(
    ("command", "environment", "reason"),
    [
        ("submit", {}, "and none was given"),
        ("run", {"RAY_AUTH_MODE": "token"}, "and none was given"),
        (
            "submit",
            {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64},
            "and the one given is wrong",
        ),
    ],
)
def test_without_the_token_the_command_line_is_refused(
    cluster: Cluster, command: str, environment: dict[str, str], reason: str, tmp_path: Path
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("never read: the cluster is asked first\n")
    base = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-m", "creamtea.cli.main", command, study, "--address", cluster.address],
        env={**base, "HOME": str(tmp_path), "CREAMTEA_HOME": str(tmp_path / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=ANSWER,
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    for part in (cluster.address, reason, "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN_PATH"):
        assert part in done.stderr


def test_the_right_token_is_accepted(cluster: Cluster) -> None:
    check_address(cluster.address)
    with pytest.raises(InputError, match="no Ray head answers there"):
        check_address(f"127.0.0.1:{free_ports(1)[0]}")
