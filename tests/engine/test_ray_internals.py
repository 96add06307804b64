"""Ray's private names, which a new version of Ray may change: all in one module, and all still there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from limits import ANSWER

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = re.compile(r"\bray\._|\bray\.core\.|\bray\.train\.v2\b")
MODULE = "platform/creamtea/engine/executors/ray_internals.py"

# In a process of its own: Ray reads the environment when it is imported (tests/engine/toys/toy_gang.py)
CHECK = """
import inspect
from ray._private import ray_constants, worker
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
from creamtea.engine.executors.ray_internals import NEEDLESS

names = {
    worker: ("_worker_logs_enabled", "_global_node"),
    ray_constants: ("ENABLE_RAY_CLUSTER",),
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
for owner, wanted in names.items():
    for name in wanted:
        if not hasattr(owner, name):
            print(owner, "has no", name)
# of a message: which of protobuf's implementations makes them attributes of the class is its own affair
fields = PlacementGroupTableData.DESCRIPTOR.fields_by_name
for name in ("creator_actor_dead", "creator_job_id", "placement_group_id", "state"):
    if name not in fields:
        print("PlacementGroupTableData has no", name)
parameters = {
    AuthenticationTokenLoader.has_token: "ignore_auth_mode",
    maybe_enable_token_auth_if_token_available: "warn_if_disabled",
    TrainController.__init__: "scaling_policy",
    FixedScalingPolicy.after_controller_start: "train_run_context",
}
for function, name in parameters.items():
    if name not in inspect.signature(function).parameters:
        print(function, "takes no", name)
for function in (TorchTrainer._initialize_and_run_controller, *(getattr(Node, name) for name in NEEDLESS)):
    inspect.signature(function)
if not inspect.iscoroutinefunction(TrainController.run):
    print("TrainController.run is not a coroutine")
"""


def test_no_other_module_uses_rays_private_names() -> None:
    folders = ("platform", "workers", "webapp", "bench")
    files = {path for folder in folders for path in (ROOT / folder).rglob("*.py")}
    users = {file.relative_to(ROOT).as_posix() for file in files if PRIVATE.search(file.read_text("utf-8"))}
    assert users == {MODULE}


@pytest.mark.slow
def test_rays_private_names_are_still_there() -> None:
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, timeout=ANSWER)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
