"""Run each step as one plain Ray task, on a local Ray or on a cluster.

Ray is only an executor here. Its own retries are off, because SQL counts attempts where people see them; its
dashboard, logs and usage reports are off as well.

Each attempt has as many workers as there is room for when it starts. An attempt on several workers is a group
of Ray Train under one Ray actor. Ray Train places the workers and connects their processes
(torch.distributed, gloo or NCCL).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from creamtea.contract.step import GROUP_PATIENCE
from creamtea.engine.executors import ray_internals
from creamtea.engine.executors.base import (
    OUTCOMES,
    TASKS,
    Amounts,
    Capacity,
    FinishedAttempt,
    Names,
    Need,
    StepOutcome,
    StepTask,
)
from creamtea.engine.runner import execute
from creamtea.errors import CreamteaError, InputError
from creamtea.files import host_id, is_running, scratch_folder
from creamtea.settings import is_withheld, make_private

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

# no retries after the loss of a worker, a start without enough nodes, or a preemption; by default Ray would
# repeat the last two for ever
ONCE = {"max_failures": 0, "controller_failure_limit": 0, "max_preemption_failures": 0}
NODE_LABEL = "ray.io/node-id"  # Ray's own
LOST = "a worker of the group, or its node, was lost"


class MemberFailed(Exception):
    """Carries the error kind and message of an attempt out of one worker of a group."""

    def __init__(self, kind: str, error: str) -> None:
        super().__init__(kind, error)
        self.kind, self.error = kind, error


class Gang:
    """The Ray actor of one attempt on several workers.

    An actor and not a task, because Ray records whether the actor that placed a group of workers is alive
    (`ray_internals.release_orphans`).
    """

    def run(self, task: dict[str, Any], nodes: list[str]) -> dict[str, Any]:
        """Run the attempt with one worker on each of `nodes`; only plain values go in and out."""
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig

        resources = TASKS.validate_python(task).resources
        each: dict[str, float] = {"CPU": resources.cpus, "GPU": resources.gpus}
        if resources.memory_gb is not None:
            each["memory"] = int(resources.memory_gb * (1 << 30))
        with scratch_folder("gang") as folder:
            trainer = ray_internals.group_trainer(
                run_member,
                train_loop_config=task,
                torch_config=TorchConfig(timeout_s=GROUP_PATIENCE),
                scaling_config=ScalingConfig(
                    num_workers=len(nodes),
                    use_gpu=resources.gpus > 0,
                    resources_per_worker={name: amount for name, amount in each.items() if amount},
                    # the nodes on which the controller counts them; Ray would choose others
                    label_selector=[{NODE_LABEL: node} for node in nodes],
                ),
                run_config=RunConfig(
                    name="group",
                    storage_path=folder,
                    failure_config=FailureConfig(**ONCE),
                ),
            )
            try:
                values: dict[str, Any] = trainer.fit().return_value
            except TrainingFailedError as error:
                values = OUTCOMES.dump_python(_failure(error))
        return values


def run_member(task: dict[str, Any]) -> dict[str, Any]:
    """Run the attempt in every worker of the group; the first worker's values are the outcome."""
    from ray import train
    from ray.train.torch import get_device

    device = get_device()
    if device.type == "cuda":
        sys.modules["torch"].cuda.set_device(device)
    context = train.get_context()
    outcome = execute(TASKS.validate_python(task), rank=context.get_world_rank(), own_process=True)
    if outcome.error_kind is not None:  # the other workers wait for this one: only an error ends the group
        raise MemberFailed(outcome.error_kind, outcome.error)
    outcome.result.facts["workers"] = context.get_world_size()
    values: dict[str, Any] = OUTCOMES.dump_python(outcome, warnings=False)
    return values


def _failure(error: Exception) -> StepOutcome:
    """Return the outcome of a failed group: with the reason of the worker that failed, if it gave one."""
    # the other workers only report that this one was lost
    from ray.train import ControllerError, WorkerGroupError

    failures = list(error.worker_failures.values()) if isinstance(error, WorkerGroupError) else []
    members = [failure for failure in failures if isinstance(failure, MemberFailed)]
    if members:
        member = min(members, key=lambda member: member.kind == "infrastructure")
        return StepOutcome.failure(member.kind, member.error)
    cause = error.controller_failure if isinstance(error, ControllerError) else next(iter(failures), error)
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    return StepOutcome.failure("infrastructure", f"{LOST}: {reason}")


OBJECT_STORE = 80 << 20  # bytes; only small JSON values pass through it
# seconds in which Ray's processes must start or answer on a busy machine; Ray's defaults are 30 to 60
PATIENCE = 300
LIMITS = (
    "gcs_server_port_wait_time_s",
    "gcs_server_request_timeout_seconds",
    "gcs_rpc_server_reconnect_timeout_s",  # then Ray ends the controller's own process
    "worker_register_timeout_seconds",
)
MAX_FOLDER = 40  # characters: Ray makes sockets below it, and a socket's path may have 107
NEEDED = ("gcs_server", "raylet")  # if either has ended, Ray runs nothing
_SESSION = re.compile(r"session_.*_(?P<pid>\d+)")


def prepare_local_ray() -> dict[str, Any]:
    """Set the environment variables that Ray reads; return the options of `ray.init`."""
    ray_internals.stay_on_loopback()
    for limit in LIMITS:
        os.environ.setdefault(f"RAY_{limit}", str(PATIENCE))
    # one try takes three seconds or more; `ended_processes` notices a raylet that has ended
    os.environ.setdefault("RAY_health_check_failure_threshold", str(PATIENCE // 3))
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        # a new token for this run; Ray would write one into the home folder
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    folder = sessions_folder()
    for place in (folder.parent, folder):
        with suppress(FileExistsError):  # the name is a file's
            make_private(place)
        status = place.lstat()  # other users may write to the parent folder
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
def withheld_variables() -> Iterator[None]:
    """Remove the variables of `is_withheld` from the environment of processes started in the block."""
    removed = {name: os.environ.pop(name) for name in list(os.environ) if is_withheld(name)}
    try:
        yield
    finally:
        os.environ.update(removed)


def sessions_folder() -> Path:
    """Return the folder in which this user's local Rays keep their sockets and logs.

    Ray opens that folder to everybody (0777), so it lies in a folder that no other user may enter.
    """
    name = f"creamtea-{host_id()}-{os.getuid()}/ray"
    folder = Path(tempfile.gettempdir()) / name
    return folder if len(str(folder)) <= MAX_FOLDER else Path("/tmp") / name  # noqa: S108  # its owner is checked


def clear_sessions(own: bool = False) -> None:
    """Remove the Ray sessions of processes that are gone; with `own` also this process's session."""
    for folder in sessions_folder().glob("session_*"):
        name = _SESSION.fullmatch(folder.name)
        pid = int(name["pid"]) if name else None
        if pid is not None and ((own and pid == os.getpid()) or not is_running(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def ended_processes() -> str:
    """Name the necessary processes of Ray that have ended; empty while all are alive."""
    return ", ".join(
        f"{name} with code {code}" for name, code in ray_internals.dead_processes() if name in NEEDED
    )


# ---------------------------------------------------------------- the executor

NODES_MAX_AGE = 3.0  # seconds after which the cluster's nodes are listed again
GROUP_LABEL = "ray.io/node-group"  # Ray's own; KubeRay sets it to a group's name
REACH_TIMEOUT = 15.0  # seconds in which an address must answer; a busy head may need several


class RayExecutor:
    """An executor on a Ray cluster, or on a local Ray that stops with this process.

    `address`: HOST:PORT of the head's GCS; empty for a local Ray. `runtime_env` goes to Ray: the workers'
    needs besides an installed creamtea.
    """

    def __init__(self, address: str = "", runtime_env: dict[str, Any] | None = None) -> None:
        self.address = address
        self._runtime_env = runtime_env
        self._running: dict[ObjectRef, tuple[StepTask, Sequence[str]]] = {}  # attempts and their nodes
        self._gangs: dict[ObjectRef, ActorHandle[Gang]] = {}  # actors of attempts on several workers
        self._buried: list[FinishedAttempt] = []  # attempts that ended because Ray died
        self._connected = False
        self._has_groups = False  # groups of workers run now or ran before
        self._lost = False  # the head is gone: any call to Ray would wait for it, and then end the process
        self._nodes: dict[str, Amounts] = {}
        self._names: dict[str, Names] = {}
        self._nodes_until = 0.0  # time.monotonic()
        self.opening = f"connecting to Ray at {address}" if address else "starting Ray on this machine"

    def check(self) -> None:
        if self.address:
            check_address(self.address)

    def capacity(self) -> Capacity:
        self._bury()
        self._connect()
        self._refresh_nodes()
        running = self._running.values()
        needs = ((nodes, Need.of(task.resources)) for task, nodes in running)
        return Capacity(self._nodes, needs, names=self._names)

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        resources = task.resources
        several = len(nodes) > 1
        options: dict[str, Any] = {
            "num_cpus": 0 if several else resources.cpus,
            "num_gpus": 0 if several else resources.gpus,
            # on this node or not at all: a step that waits inside Ray would exceed its time limit
            "scheduling_strategy": NodeAffinitySchedulingStrategy(nodes[0], soft=False),
        }
        name = f"{task.kind}:{task.name}"
        if resources.memory_gb is not None and not several:
            options["memory"] = int(resources.memory_gb * (1 << 30))
        plain = TASKS.dump_python(task)
        if several:
            self._has_groups = True
            gang = ray.remote(Gang).options(**options).remote()
            reference = gang.run.options(name=name).remote(plain, list(nodes))
            self._gangs[reference] = gang
        else:
            reference = ray.remote(run_in_worker).options(**options, name=name, max_retries=0).remote(plain)
        self._running[reference] = (task, nodes)

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        self._bury()
        if self._buried:
            buried, self._buried = self._buried, []
            return buried
        if not self._running:
            time.sleep(timeout)
            return []
        import ray

        self._refresh_nodes()
        references = list(self._running)
        ready, _ = ray.wait(references, num_returns=1, timeout=timeout)
        if ready:  # others may have finished in the meantime
            ready, _ = ray.wait(references, num_returns=len(references), timeout=0)
        finished = [
            FinishedAttempt(self._running.pop(reference)[0], _outcome(reference)) for reference in ready
        ]
        for reference in ready:
            self._gangs.pop(reference, None)
        if any(attempt.outcome.error_kind == "infrastructure" for attempt in finished):
            self._nodes_until = 0.0  # a node may be gone: the next attempts must not be placed there
        return finished

    def cancel(self, task: StepTask) -> None:
        import ray

        for reference in [reference for reference, (other, _) in self._running.items() if other == task]:
            del self._running[reference]
            if gang := self._gangs.pop(reference, None):
                ray.kill(gang)
            else:
                ray.cancel(reference, force=True)

    def shutdown(self) -> None:
        if not self._connected or self._lost:
            return
        import ray

        for task, _ in list(self._running.values()):
            self.cancel(task)
        ray.shutdown()
        self._connected = False
        if not self.address:
            clear_sessions(own=True)

    def _bury(self) -> None:
        """Fail the attempts of a local Ray that has died; the next `capacity` starts another Ray."""
        if self.address or not self._connected or not (ended := ended_processes()):
            return
        import ray

        error = f"Ray on this machine ended ({ended}); it is started again"
        self._buried += [
            FinishedAttempt(task, StepOutcome.failure("infrastructure", error))
            for task, _ in self._running.values()
        ]
        self._running.clear()
        self._gangs.clear()
        ray.shutdown()
        self._connected = False
        self._nodes_until = 0.0

    def _refresh_nodes(self) -> None:
        """List the cluster's nodes; raise CreamteaError if its head is gone."""
        if time.monotonic() < self._nodes_until:
            return
        try:
            self.check()
        except InputError:
            self._lost = True
            raise CreamteaError(
                f"the head of the Ray cluster at {self.address} is gone. When it is back, run the same "
                "command again: finished steps are kept, and training resumes from its last checkpoint"
            ) from None
        self._nodes, self._names = _living_nodes()
        import ray

        if self.address and ray.get_runtime_context().get_node_id() not in self._nodes:
            self._lost = True
            raise CreamteaError(
                f"the node of the Ray cluster at {self.address} that this controller works through is gone. "
                "Start the controller again: training resumes from its last checkpoint"
            )
        if self._has_groups:
            ray_internals.release_orphans()
        self._nodes_until = time.monotonic() + NODES_MAX_AGE

    def _connect(self) -> None:
        if self._connected:
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self.check()
        local = {} if self.address else prepare_local_ray()
        ray_internals.has_token()
        import ray

        ray_internals.silence_worker_logs()
        options: dict[str, Any] = {"runtime_env": self._runtime_env} if self._runtime_env else {}
        try:
            with _own_signals(), ray_internals.sparing_start(PATIENCE), withheld_variables():
                ray.init(
                    address=self.address or "local",
                    logging_level="ERROR",
                    log_to_driver=False,
                    **options,
                    **local,
                )
        except Exception as error:  # Ray raises any kind: a plain Exception if its start takes too long
            where = f"the Ray cluster at {self.address}" if self.address else "Ray on this machine"
            lines = str(error).strip().splitlines() or [type(error).__name__]
            remedy = (
                "" if self.address else "; run the command again, or with `--executor inline`, without Ray"
            )
            raise InputError(f"cannot use {where}: {lines[0].rstrip('.')}{remedy}") from error
        self._connected = True


def run_in_worker(task: dict[str, Any]) -> dict[str, Any]:
    """Run one attempt of a step as a Ray task; only plain values go in and out."""
    import ray

    outcome = execute(TASKS.validate_python(task), own_process=True)
    outcome.result.facts["node"] = ray.get_runtime_context().get_node_id()[:12]
    values: dict[str, Any] = OUTCOMES.dump_python(outcome, warnings=False)
    return values


def _outcome(reference: ObjectRef) -> StepOutcome:
    import ray
    from ray import exceptions

    try:
        return OUTCOMES.validate_python(ray.get(reference))
    except ValidationError as error:
        return StepOutcome.failure("deterministic", f"the worker's result cannot be read: {error}")
    except exceptions.OutOfMemoryError:
        return StepOutcome.failure(
            "infrastructure", "Ray stopped the step because its node ran out of memory; set memory_gb for it"
        )
    except exceptions.RayTaskError as error:  # the task failed outside the step
        return StepOutcome.failure("deterministic", f"the worker cannot run steps: {error.cause or error}")
    except exceptions.RuntimeEnvSetupError as error:
        return StepOutcome.failure("deterministic", f"the worker cannot be set up: {error}")
    except exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return StepOutcome.failure(
            "infrastructure", f"the worker process or its node was lost ({type(error).__name__}): {reason}"
        )


def _living_nodes() -> tuple[dict[str, Amounts], dict[str, Names]]:
    """Return the resources and the names of living nodes, by node id."""
    import ray

    amounts, names = {}, {}
    for node in ray.nodes():
        if node["Alive"]:
            has = node["Resources"]
            memory = has.get("memory", 0.0) / (1 << 30)
            amounts[node["NodeID"]] = Amounts(has.get("CPU", 0.0), has.get("GPU", 0.0), memory)
            own = (node.get(name) for name in ("NodeName", "NodeManagerHostname", "NodeManagerAddress"))
            group = node.get("Labels", {}).get(GROUP_LABEL, "")
            names[node["NodeID"]] = Names(frozenset(filter(None, own)), group)
    return amounts, names


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore our own handler for SIGTERM, which `ray.init` replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# ---------------------------------------------------------------- reaching a cluster


def check_address(address: str) -> None:
    """Raise InputError unless a Ray head answers at HOST:PORT within seconds and accepts our token."""
    # `ray.init` would keep trying for twenty seconds with a wrong token, and for minutes without an answer
    host, colon, port = address.rpartition(":")
    if "://" in address or not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
        raise InputError(
            f"--address {address}: write HOST:PORT of the Ray head, as `ray start --head` prints it"
        )
    import grpc
    from ray.exceptions import AuthenticationError

    ray_internals.has_token()
    try:
        ray_internals.ask_head(address, REACH_TIMEOUT)
    except AuthenticationError:
        raise InputError(_refused(address)) from None
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            raise InputError(_refused(address)) from None
        raise InputError(
            f"--address {address}: no Ray head answers there ({error.code().name.lower()}). Start one with "
            "`ray start --head`, and check that this machine can reach its port"
        ) from None


def _refused(address: str) -> str:
    problem = "the one given is wrong" if ray_internals.has_token() else "none was given"
    return (
        f"the Ray cluster at {address} requires a token, and {problem}: set RAY_AUTH_MODE=token and "
        "RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH, a file) to the token that its head was started with"
    )
