"""A Ray cluster of two nodes on loopback, with a token: steps on both, a lost node, what is refused."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import moto_s3
import pytest
from limits import ANSWER, START, wait_until
from toy_cluster import Cluster, free_ports, kill_tree, running_cluster
from toy_controller import runtime_env
from toy_steps import ENOUGH
from toy_study import ToyStudy, happenings

from creamtea.engine import state
from creamtea.engine.controller import Controller
from creamtea.engine.events import EngineEvent, StepProgressed
from creamtea.engine.executors.ray import GROUP_LABEL, RayExecutor, check_address
from creamtea.errors import InputError
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head and one more node, one CPU each."""
    with running_cluster() as started:
        started.start_node("--node-name=second", f"--labels={GROUP_LABEL}=spare")
        yield started


def test_steps_run_where_they_are_told_and_what_is_nowhere_gets_one_message(
    cluster: Cluster, sqlite: Database, store: ArtefactStore, study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.engine.queue.NODE_SECONDS", 0.0)
    for name, where in {
        "group": {"worker_group": "spare"},
        "node": {"node": "second"},
        "no group": {"worker_group": "spair"},
        "no node": {"node": "secund"},
        "not in the group": {"worker_group": "spare", "node": "127.0.0.2"},
        "gpus": {"gpus": 4},
        "gpus in the group": {"gpus": 4, "worker_group": "spare"},
    }.items():
        study.add(name, resources=where)
    executor = RayExecutor(cluster.address, runtime_env())
    try:
        wait_for_nodes(executor, 2)
        submission = study.submit(sqlite, store)
        Controller(sqlite, store, executor).run(submission.study_id)
    finally:
        executor.shutdown()
    rows = study.rows(sqlite)
    where = {(row.facts or {}).get("node") for name, row in rows.items() if name in ("group", "node")}
    assert len(where) == 1, "both on the second node"
    assert None not in where, [row.error for row in rows.values()]
    assert (rows["node"].facts or {})["withheld"] == [], "a step sees no password"
    errors = {name: row.error or "" for name, row in rows.items() if row.state == "failed"}
    remedy = "; change it under resources.toy in the study"
    assert {remedy in error and len(error.splitlines()) for error in errors.values()} == {1}
    asks = {name: error.removeprefix("the step asks ").removeprefix("for ") for name, error in errors.items()}
    assert asks.keys() == {"no group", "no node", "not in the group", "gpus", "gpus in the group"}
    assert asks["no group"].startswith("worker group spair, and no node is of that group (groups: spare)")
    assert asks["no node"].startswith("node secund, and no node is called that (names: ")
    assert ", second" in asks["no node"]
    assert asks["not in the group"].startswith("in worker group spare for node 127.0.0.2, and no node is ")
    assert asks["gpus"].startswith("cpus=1, gpus=4, memory_gb=0 on one node, and no node has that (nodes: ")
    assert "(nodes of worker group spare: cpus=1, gpus=0, " in asks["gpus in the group"]


def test_a_worker_without_rights_on_the_bucket_says_so(
    cluster: Cluster, sqlite: Database, study: ToyStudy, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    settings = {"AWS_ENDPOINT_URL": s3_endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
    key = moto_s3.user_with_rights(s3_endpoint, "lab-of-cluster")
    for name, value in {**settings, **key}.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    environment = runtime_env()
    stranger = {"AWS_ACCESS_KEY_ID": "stranger", "AWS_SECRET_ACCESS_KEY": "unknown"}
    environment["env_vars"] = {**environment["env_vars"], **settings, **stranger}  # type: ignore[dict-item]
    study.add("step", resources={"max_attempts": 1})
    executor = RayExecutor(cluster.address, environment)
    try:
        with moto_s3.rights_enforced(s3_endpoint):
            store = ArtefactStore("s3://lab-of-cluster/artefacts")
            store.check_writable()
            submission = study.submit(sqlite, store)
            Controller(sqlite, store, executor).run(submission.study_id)
    finally:
        executor.shutdown()
        s3fs.S3FileSystem.clear_instance_cache()
    row = study.rows(sqlite)["step"]
    assert (row.state, row.error_kind) == ("failed", "infrastructure")
    assert "no rights on bucket lab-of-cluster" in (row.error or "")
    assert len((row.error or "").splitlines()) == 1


def test_steps_run_on_both_nodes_and_go_on_when_one_is_lost(
    cluster: Cluster, sqlite: Database, store: ArtefactStore, study: ToyStudy, monkeypatch: pytest.MonkeyPatch
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
    assert {row.state for row in rows.values()} == {"succeeded"}, [row.error for row in rows.values()]
    ran_on = {row.facts["node"] for name, row in rows.items() if row.facts and name not in ("left", "right")}
    assert len(ran_on) == 2, "both nodes had steps"
    retried = [name for name in ("left", "right") if "retry" in happenings(sqlite, study.keys[name])]
    assert len(retried) == 1, "only the step of the lost node ran again"


def wait_for_nodes(executor: RayExecutor, count: int) -> None:
    wait_until(lambda: len(executor.capacity().nodes) >= count, START, lambda: "for the second node")


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
