"""Local Ray: a study with a lost worker, a Ray that dies, and a cancel.

A killed controller is in tests/e2e/test_whole_study.py.
"""

import importlib.util
import os
import signal
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from subprocess import PIPE, Popen
from types import SimpleNamespace

import psutil
import pytest
from limits import START, wait_until
from toy_cluster import NO_IDLE_WORKERS, free_port
from toy_controller import runtime_env
from toy_steps import counts
from toy_study import ToyStudy

from creamtea.engine import state
from creamtea.engine.events import EngineEvent, Notice, StepFailed, StepProgressed, StepRetried
from creamtea.engine.executors import ray as ray_executor
from creamtea.engine.executors import ray_without_agent
from creamtea.engine.executors.ray import RayExecutor, check_address
from creamtea.engine.executors.ray_internals import sparing_start
from creamtea.errors import InputError
from creamtea.orders.submission import cancel


@pytest.fixture(autouse=True)
def short_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creamtea.engine.state.BACK_OFF", state.BACK_OFF / 20)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "t" * 32)  # set by the executor otherwise, and then left behind
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")  # likewise; a Ray of our own overrides it


SECRETS = {"CREAMTEA_DATABASE_URL": "postgresql://u:p@h/d", "PGPASSWORD": "p", "CREAMTEA_OIDC_ISSUER": "i"}


def descendants() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def looked_at(others: set[psutil.Process]) -> tuple[set[str], set[str], set[str]]:
    """Return the addresses on which our Ray listens, and the variables and titles of its processes.

    `others`: what earlier tests of this process have left running, such as the web server that tests share.
    """
    addresses: set[str] = set()
    variables: set[str] = set()
    titles: set[str] = set()
    for process in descendants() - others:
        with suppress(psutil.NoSuchProcess):  # it has ended since, or is a zombie
            listening = [socket for socket in process.net_connections("tcp") if socket.status == "LISTEN"]
            addresses.update(str(socket.laddr.ip).removeprefix("::ffff:") for socket in listening)
            variables.update(process.environ())
            titles.add(process.cmdline()[0])
    return addresses, variables, titles


@pytest.mark.cluster
@pytest.mark.slow
def test_a_study_on_local_ray_which_dies_on_the_way(
    study: ToyStudy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process of Ray has the controller's passwords, and no other user may enter its folder."""
    for name, value in {**SECRETS, **NO_IDLE_WORKERS}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CREAMTEA_SCORERS", "needed")
    before, older = signal.getsignal(signal.SIGTERM), descendants()
    study.add("first")
    study.add("second", before=["first"])
    study.add("killed", "die", until=1)
    study.add("broken", "error")
    study.add("huge", resources={"cpus": 1000})
    study.add("counting", "count", stop_at=3)
    study.add("last", "sleep", before=["second", "killed", "counting"])
    looks: list[tuple[set[str], set[str], set[str]]] = []

    def react(event: EngineEvent) -> None:
        if not isinstance(event, StepProgressed):
            return
        if event.name == "last":
            cancel(study.database, study.id)
        others = {state for name, state in study.states().items() if name not in ("counting", "last")}
        if counts(study.log) == ["from 0", "at 3"] and others == {"succeeded", "failed"} and not looks:
            looks.append(looked_at(older))
            for process in descendants():
                with suppress(psutil.NoSuchProcess):  # it has ended since
                    if process.name() == "raylet":
                        process.kill()

    events = study.run(RayExecutor("", runtime_env()), react)
    rows = study.rows()
    assert {name: row.state for name, row in rows.items()} == {
        "first": "succeeded",
        "second": "succeeded",
        "killed": "succeeded",
        "broken": "failed",
        "huge": "failed",
        "counting": "succeeded",
        "last": "cancelled",
    }
    assert events[0] == Notice("starting Ray on this machine", trouble=False)
    lost, died = [event for event in events if isinstance(event, StepRetried)]
    assert (lost.name, died.name) == ("killed", "counting")
    assert lost.error.startswith("the worker process or its node was lost (WorkerCrashedError)")
    assert died.error == "Ray on this machine ended (raylet with code -9); it is started again"
    for name in ("killed", "counting"):
        assert study.happened(name) == ["started", "retry", "started", "succeeded"]
    assert counts(study.log) == ["from 0", "at 3", "from 3"]
    failed = {event.name: event.error for event in events if isinstance(event, StepFailed)}
    assert failed["broken"].startswith("ValueError: the toy is broken")
    assert "asks for cpus=1000" in failed["huge"]
    assert rows["second"].facts["said"] == "first;second;"
    assert len(rows["second"].facts["node"]) == 12
    [(addresses, variables, titles)] = looks
    assert {title for title in titles if title.endswith("Agent")} == {"ray::RuntimeEnvAgent"}
    assert addresses == {"127.0.0.1"}
    assert variables & {*SECRETS, "CREAMTEA_SCORERS"} == {"CREAMTEA_SCORERS"}
    assert os.environ["PGPASSWORD"] == "p", "the controller itself still has it"
    folder = ray_executor.sessions_folder()
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert not list(folder.glob(f"session_*_{os.getpid()}"))
    assert signal.getsignal(signal.SIGTERM) == before
    assert capsys.readouterr().out == "", "what a command prints is its own"


def test_ray_has_ended_without_either_of_the_processes_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = [("log_monitor", 0), ("gcs_server", -9), ("raylet", 1)]
    monkeypatch.setattr(ray_executor.ray_internals, "dead_processes", lambda: dead)
    assert ray_executor.ended_processes() == "gcs_server with code -9, raylet with code 1"
    dead[1:] = []
    assert ray_executor.ended_processes() == ""


def test_this_ray_has_the_limits_that_are_set() -> None:
    """An unknown name in its environment would be ignored without a word."""
    [place] = importlib.util.find_spec("ray").submodule_search_locations
    files = [Path(place, "_raylet.so"), *Path(place, "_private").glob("*.py")]
    text = b"".join(file.read_bytes() for file in files)
    names = [*ray_executor.LIMITS, "health_check_failure_threshold"]
    assert [name for name in names if name.encode() not in text] == []


def test_what_ray_raises_at_its_start_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**options: object) -> None:
        raise Exception("The current node timed out during startup.\nSecond line")

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(InputError, match=r"^cannot use Ray on this machine: The current node [^\n]*$"):
        RayExecutor().capacity()


@pytest.mark.parametrize(("dead", "asked"), [([], 3), ([("raylet", 1)], 1)], ids=["busy", "ended"])
def test_a_node_that_is_slow_to_start_is_waited_for(
    dead: list[tuple[str, int]], asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [{"NodeID": "1"}, RuntimeError(), RuntimeError()]
    from ray._private import services
    from ray._private.node import Node

    def get_node(address: str, node_id: str) -> dict[str, str]:
        answer = answers.pop()
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    monkeypatch.setattr(services, "get_node", get_node)
    with sparing_start(START):
        Node.start_api_server(SimpleNamespace(dead_processes=lambda: dead))
        with pytest.raises(RuntimeError) if dead else nullcontext():
            assert services.get_node("address", "id") == {"NodeID": "1"}
    assert (3 - len(answers), services.get_node) == (asked, get_node)


def test_what_stands_in_for_an_agent_tells_its_ports_and_ends_with_the_raylet(tmp_path: Path) -> None:
    raylet = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); input()"
    agent = [
        sys.executable,
        ray_without_agent.__file__,
        "agent.py",
        "--node-id=7",
        f"--session-dir={tmp_path}",
    ]
    names = {f"{name}_port_7" for name in ("metrics_agent", "metrics_export", "dashboard_agent_listen")}
    with Popen([sys.executable, "-c", raylet, *agent], stdin=PIPE, stdout=PIPE, text=True) as process:
        stand_in = psutil.Process(int(process.stdout.readline()))
        wait_until(lambda: {file.name for file in tmp_path.iterdir()} == names)
        assert {file.read_text() for file in tmp_path.iterdir()} == {"-1"}
        assert stand_in.status() != psutil.STATUS_ZOMBIE
        process.communicate("\n")
    wait_until(lambda: not stand_in.is_running() or stand_in.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:port", "head:70000", "ray://head:10001"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match="write HOST:PORT of the Ray head"):
        check_address(address)


def test_an_address_where_nothing_answers() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(InputError, match=f"--address {address}: no Ray head answers there"):
        RayExecutor(address).check()
