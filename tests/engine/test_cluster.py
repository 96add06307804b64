"""A Ray cluster of two nodes on loopback, with a token: steps on both, a lost node, what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import call
from limits import START, wait_until
from toy_cluster import Cluster, free_port, kill_tree, running_cluster
from toy_controller import runtime_env
from toy_steps import ENOUGH
from toy_study import ToyStudy

from creamtea.engine import state
from creamtea.engine.events import EngineEvent, StepProgressed
from creamtea.engine.executors.ray import GROUP_LABEL, RayExecutor, check_address
from creamtea.errors import InputError

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

REFUSED = {
    "no group": {"worker_group": "spair"},
    "no node": {"node": "secund"},
    "not in the group": {"worker_group": "spare", "node": "127.0.0.2"},
    "gpus": {"gpus": 4},
    "gpus in the group": {"gpus": 4, "worker_group": "spare"},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head and one more node, one CPU each."""
    with running_cluster() as started:
        started.start_node("--node-name=second", f"--labels={GROUP_LABEL}=spare")
        yield started


def test_steps_run_where_they_are_told_and_go_on_when_a_node_is_lost(
    cluster: Cluster, study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.engine.state.BACK_OFF", state.BACK_OFF / 20)
    monkeypatch.setattr("creamtea.engine.queue.NODE_SECONDS", 0.0)
    placed, anywhere = ("group", "node"), ("one", "two", "three", "four")
    study.add("group", resources={"worker_group": "spare"})
    study.add("node", resources={"node": "second"})
    for name, resources in REFUSED.items():
        study.add(name, resources=resources)
    for name in anywhere:
        study.add(name, "nap", seconds=1.0)
    # these two wait on either node until one is lost; its step then needs the other's CPU to begin again
    for name in ("left", "right"):
        study.add(name, "watch", before=[*placed, *anywhere])
    told: set[str] = set()
    lost: list[str] = []

    def react(event: EngineEvent) -> None:
        if isinstance(event, StepProgressed) and event.message.startswith("tick"):
            told.add(event.key)
        if len(told) == 2 and not lost:
            lost.append(event.key)
            kill_tree(cluster.nodes[1].pid)
            (study.log / ENOUGH).touch()

    executor = RayExecutor(cluster.address, runtime_env())
    try:
        wait_until(lambda: len(executor.capacity().nodes) == 2, START, lambda: "for the second node")
        study.run(executor, react)
    finally:
        executor.shutdown()
    rows = study.rows()
    failed = {name: row.error or "" for name, row in rows.items() if row.state != "succeeded"}
    assert failed.keys() == REFUSED.keys(), failed
    ran_on = {name: rows[name].facts["node"] for name in (*placed, *anywhere)}
    assert ran_on["group"] == ran_on["node"], "both on the second node"
    assert len({ran_on[name] for name in anywhere}) == 2, "both nodes had steps"
    assert rows["node"].facts["withheld"] == [], "a step sees no password"
    retried = [name for name in ("left", "right") if "retry" in study.happened(name)]
    assert len(retried) == 1, "only the step of the lost node ran again"

    remedy = "; change it under resources.toy in the study"
    assert {remedy in error and len(error.splitlines()) for error in failed.values()} == {1}
    asks = {name: error.removeprefix("the step asks ").removeprefix("for ") for name, error in failed.items()}
    assert asks["no group"].startswith("worker group spair, and no node is in that group (groups: spare)")
    assert asks["no node"].startswith("node secund, and no node is called that (names: ")
    assert ", second" in asks["no node"]
    assert asks["not in the group"].startswith("in worker group spare for node 127.0.0.2, and no node is ")
    assert asks["gpus"].startswith("cpus=1, gpus=4, memory_gb=0 on one node, and no node has that (nodes: ")
    assert "(nodes of worker group spare: cpus=1, gpus=0, " in asks["gpus in the group"]


@pytest.mark.parametrize(
    ("command", "environment", "reason"),
    [
        ("run", {}, "and none was given"),
        ("submit", {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}, "and the one given is wrong"),
    ],
)
def test_without_the_token_the_command_line_is_refused(
    cluster: Cluster, command: str, environment: dict[str, str], reason: str, tmp_path: Path
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("never read: the cluster is asked first\n")
    home = {"HOME": str(tmp_path), "CREAMTEA_HOME": str(tmp_path / "home")}
    done = call({**home, **environment}, command, study, "--address", cluster.address)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    for part in (cluster.address, reason, "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN_PATH"):
        assert part in done.stderr


def test_the_right_token_is_accepted(cluster: Cluster) -> None:
    check_address(cluster.address)
    with pytest.raises(InputError, match="no Ray head answers there"):
        check_address(f"127.0.0.1:{free_port()}")
