"""What Ray is asked in a process of its own.

Ray reads the environment when it is imported, so importing it into pytest's process would decide for every
later test whether a cluster asks for a token and where a local Ray listens.
"""

import inspect
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from creamtea.engine.executors.base import GAVE_WAY
from creamtea.engine.executors.ray import MemberFailed, _failure
from creamtea.engine.executors.ray_internals import NEEDLESS

ALONE = MemberFailed("infrastructure", "another worker of this step was lost: connection closed")
LARGER = MemberFailed(GAVE_WAY, "it goes on with more workers")
WRONG = MemberFailed("deterministic", "the training loss is nan at update 3")


def asked_elsewhere() -> tuple[dict[str, tuple[str | None, str]], list[str]]:
    """Return `outcomes` and `missing_names`."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(outcomes).result(), pool.submit(missing_names).result()


def outcomes() -> dict[str, tuple[str | None, str]]:
    """The kind and message that a group of workers reports of each error of Ray Train."""
    from ray.train import ControllerError, WorkerGroupError

    gone = RuntimeError("The actor died unexpectedly\nand more")
    errors = {
        "alone": WorkerGroupError("", {0: ALONE, 1: gone}),
        "wrong": WorkerGroupError("", {0: ALONE, 1: WRONG}),
        "gone": WorkerGroupError("", {1: gone}),
        "larger": WorkerGroupError("", {0: ALONE, 1: LARGER}),
        "no room": ControllerError(OSError("no room")),
    }
    reported = {name: _failure(error) for name, error in errors.items()}
    return {name: (outcome.error_kind, outcome.error) for name, outcome in reported.items()}


def missing_names() -> list[str]:
    """The private names that ray_internals.py uses and this Ray lacks."""
    from ray._private import ray_constants, services, worker
    from ray._private.authentication.authentication_token_setup import (
        AuthenticationTokenLoader,
        maybe_enable_token_auth_if_token_available,
    )
    from ray._private.grpc_utils import init_grpc_channel
    from ray._private.node import Node
    from ray._private.state import state
    from ray._raylet import Config
    from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc
    from ray.core.generated.gcs_pb2 import PlacementGroupTableData
    from ray.train.torch import TorchTrainer
    from ray.train.v2._internal.callbacks.datasets import DatasetsCallback
    from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
    from ray.train.v2._internal.constants import ENABLE_PREEMPTION_WATCHER_ENV_VAR
    from ray.train.v2._internal.execution.controller import TrainController
    from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy

    imported = (init_grpc_channel, DatasetsCallback, PlacementGroupCleanerCallback)
    assert all((*imported, ENABLE_PREEMPTION_WATCHER_ENV_VAR))
    names: dict[Any, tuple[str, ...]] = {
        worker: ("_worker_logs_enabled", "_global_node"),
        ray_constants: ("ENABLE_RAY_CLUSTER", "PROCESS_TYPE_DASHBOARD_AGENT"),
        services: ("get_node", "_build_python_executable_command_memory_profileable"),
        Node: (*NEEDLESS, "dead_processes"),
        Config: ("initialize",),
        AuthenticationTokenLoader: ("instance", "reset_cache", "has_token"),
        state: ("_connect_and_get_accessor",),
        gcs_service_pb2: ("GetClusterIdRequest",),
        gcs_service_pb2_grpc: ("NodeInfoGcsServiceStub",),
        PlacementGroupTableData: ("REMOVED", "FromString"),
        TorchTrainer: ("_create_default_callbacks", "_initialize_and_run_controller"),
        TrainController: ("run", "get_result"),
        FixedScalingPolicy: ("after_controller_start", "_maybe_send_resource_request"),
    }
    missing = [
        f"{owner}: {name}" for owner, wanted in names.items() for name in wanted if not hasattr(owner, name)
    ]
    # of a message: which of protobuf's implementations makes them attributes of the class is its own affair
    fields = PlacementGroupTableData.DESCRIPTOR.fields_by_name
    wanted = ("creator_actor_dead", "creator_job_id", "placement_group_id", "state")
    missing += [f"PlacementGroupTableData: {name}" for name in wanted if name not in fields]
    parameters = {
        AuthenticationTokenLoader.has_token: "ignore_auth_mode",
        maybe_enable_token_auth_if_token_available: "warn_if_disabled",
        TrainController.__init__: "scaling_policy",
        FixedScalingPolicy.after_controller_start: "train_run_context",
    }
    for function, name in parameters.items():
        if name not in inspect.signature(function).parameters:
            missing.append(f"{function}: {name}")
    for function in (
        TorchTrainer._initialize_and_run_controller,
        *(getattr(Node, name) for name in NEEDLESS),
    ):
        inspect.signature(function)
    if not inspect.iscoroutinefunction(TrainController.run):
        missing.append("TrainController.run as a coroutine")
    return missing
