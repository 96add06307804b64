"""All uses of Ray's private names; no other module may use them.

A new version of Ray may change any of them. `tests/engine/test_ray_internals.py` then fails and names the
change. Ray is imported inside the functions: most commands run without it, and it reads its environment when
it is imported.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Ray starts these even without its dashboard, and waits seconds for them: the dashboard's server, the process
# that forwards the workers' output, the process that requests more nodes, and the server for remote clients
NEEDLESS = ("start_api_server", "start_log_monitor", "start_monitor", "start_ray_client_server")


def silence_worker_logs() -> None:
    """Keep Ray from printing workers' messages to stdout, where a command may print JSON."""
    from ray._private import worker

    worker._worker_logs_enabled = False


def stay_on_loopback() -> None:
    """Let the next Ray open all its ports on loopback only, even if Ray is imported already."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray's processes read this; the name is Ray's
    from ray._private import ray_constants

    ray_constants.ENABLE_RAY_CLUSTER = False


@contextmanager
def sparing_start(patience: float) -> Iterator[None]:
    """Start only the processes that steps need, and give them `patience` seconds.

    Ray gives them 30 seconds. It asks for its node without a pause, and so takes the processor from them.
    """
    from ray._private import ray_constants, services
    from ray._private.node import Node

    get_node, python_command = services.get_node, services._build_python_executable_command_memory_profileable
    before = {name: getattr(Node, name) for name in NEEDLESS}
    started: list[Node] = []
    deadline = time.monotonic() + patience

    def get_node_patiently(*address: str) -> Any:
        while True:
            try:
                return get_node(*address)
            except RuntimeError:
                time.sleep(0.05)
                alive = started and not started[0].dead_processes()
                if not alive or time.monotonic() > deadline:
                    raise

    def command_without_agent(component: str, *more: Any, **options: Any) -> list[str]:
        if component == ray_constants.PROCESS_TYPE_DASHBOARD_AGENT:
            # the agent's own file follows, as an argument
            return [sys.executable, "-IS", str(Path(__file__).with_name("ray_without_agent.py"))]
        command: list[str] = python_command(component, *more, **options)
        return command

    services.get_node = get_node_patiently
    services._build_python_executable_command_memory_profileable = command_without_agent
    for name in NEEDLESS:
        setattr(Node, name, lambda node, **options: started.append(node))
    try:
        yield
    finally:
        services.get_node = get_node
        services._build_python_executable_command_memory_profileable = python_command
        for name, start in before.items():
            setattr(Node, name, start)


def dead_processes() -> list[tuple[str, int]]:
    """Return the name and exit code of each ended process of our local Ray."""
    from ray._private import worker

    node = worker._global_node
    return [] if node is None else [(name, process.returncode) for name, process in node.dead_processes()]


# ---------------------------------------------------------------- reaching a cluster


def has_token() -> bool:
    """Return True if there is a token; Ray itself reads it, and its mode, only once per process."""
    import ray
    from ray._private.authentication.authentication_token_setup import AuthenticationTokenLoader
    from ray._raylet import Config  # type: ignore[attr-defined]  # its stub lacks it

    if not ray.is_initialized():
        Config.initialize("")
    loader = AuthenticationTokenLoader.instance()
    loader.reset_cache()
    return bool(loader.has_token(ignore_auth_mode=True))


def ask_head(address: str, timeout: float) -> None:
    """Ask the head at HOST:PORT for its cluster's id; grpc.RpcError or AuthenticationError if it refuses."""
    from ray._private.authentication.authentication_token_setup import (
        maybe_enable_token_auth_if_token_available,
    )
    from ray._private.grpc_utils import init_grpc_channel
    from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc

    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    with init_grpc_channel(address) as channel:
        stub = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel)
        stub.GetClusterId(gcs_service_pb2.GetClusterIdRequest(), timeout=timeout)


# ---------------------------------------------------------------- groups of workers


def release_orphans() -> None:
    """Release the resources of groups whose actor was lost with its node, or was stopped by us.

    Ray does so only when the whole job ends; until then no other step would get these processors.
    """
    import ray
    from ray._private.state import state
    from ray.core.generated.gcs_pb2 import PlacementGroupTableData
    from ray.util.placement_group import PlacementGroup, remove_placement_group

    job = ray.get_runtime_context().get_job_id()
    for row in state._connect_and_get_accessor().get_placement_group_table():
        group = PlacementGroupTableData.FromString(row)
        orphan = group.creator_actor_dead and group.state != PlacementGroupTableData.REMOVED
        if orphan and group.creator_job_id.hex() == job:
            remove_placement_group(PlacementGroup(ray.PlacementGroupID(group.placement_group_id)))


def group_trainer(run: Callable[[dict[str, Any]], Any], **settings: Any) -> Any:
    """Return a TorchTrainer with one process per worker, and one that synchronises them.

    Ray Train itself starts four more processes per group, and each spends seconds on imports. This trainer
    controls the group from the process that calls `fit`, which must be an actor's process.
    """
    from ray.train import Result
    from ray.train.torch import TorchTrainer
    from ray.train.v2._internal.callbacks.datasets import DatasetsCallback
    from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
    from ray.train.v2._internal.constants import ENABLE_PREEMPTION_WATCHER_ENV_VAR
    from ray.train.v2._internal.execution.controller import TrainController
    from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy

    class OnPlacedNodes(FixedScalingPolicy):  # type: ignore[misc]
        """Asks no autoscaler for nodes, because the nodes of the group exist."""

        def after_controller_start(self, train_run_context: object) -> None:
            pass

        def _maybe_send_resource_request(self) -> None:
            pass

    class Trainer(TorchTrainer):  # type: ignore[misc]
        def _create_default_callbacks(self) -> list[Any]:
            # The cleaner asks Ray's dashboard, and without a dashboard it would do nothing; `release_orphans`
            # does its work. There are no Ray datasets to distribute.
            needless = (DatasetsCallback, PlacementGroupCleanerCallback)
            callbacks = super()._create_default_callbacks()
            return [callback for callback in callbacks if not isinstance(callback, needless)]

        def _initialize_and_run_controller(self, **given: Any) -> Result:
            # Without the process that warns workers of their node's end. The variable is set only here:
            # otherwise it would be a setting of the workers, and Ray would start each of them twice.
            os.environ[ENABLE_PREEMPTION_WATCHER_ENV_VAR] = "0"
            try:
                controller = TrainController(
                    **{**given, "scaling_policy": OnPlacedNodes(self.scaling_config)}
                )
            finally:
                del os.environ[ENABLE_PREEMPTION_WATCHER_ENV_VAR]
            asyncio.run(controller.run())
            return controller.get_result()

    return Trainer(run, **settings)
