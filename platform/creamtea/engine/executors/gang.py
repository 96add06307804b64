"""Runs one attempt of a step on several workers at once: a group of Ray Train, below one Ray actor.

Ray Train places the workers and connects their processes (torch.distributed, gloo or NCCL). It tries nothing
again: attempts are counted in SQL, and the next one has as many workers as there is room for by then.
"""

from __future__ import annotations

import sys
from typing import Any

from creamtea.contract.step import GROUP_PATIENCE, Resources
from creamtea.engine.executors.ray_internals import group_trainer
from creamtea.engine.runner import execute
from creamtea.engine.task import OUTCOMES, TASKS, StepOutcome
from creamtea.files import scratch_folder

# neither after a worker, nor after a start for which nodes are missing, nor after a preemption; the last two
# Ray would try for ever
ONCE = {"max_failures": 0, "controller_failure_limit": 0, "max_preemption_failures": 0}
NODE_LABEL = "ray.io/node-id"  # Ray's own
LOST = "a worker of the group, or its node, was lost"


class MemberFailed(Exception):
    """An attempt's error kind and message, on its way from one worker of a group."""

    def __init__(self, kind: str, error: str) -> None:
        super().__init__(kind, error)
        self.kind, self.error = kind, error


class Gang:
    """The Ray actor of one attempt. It is not a task, because Ray knows of each group of workers whether the
    actor that placed it is alive (`ray_internals.release_orphans`)."""

    def run(self, task: dict[str, Any], nodes: list[str]) -> dict[str, Any]:
        """Run the attempt with one worker on each of `nodes`. Only plain values go in and out."""
        from ray.train import FailureConfig, RunConfig, TrainingFailedError
        from ray.train.torch import TorchConfig

        resources = TASKS.validate_python(task).resources
        with scratch_folder("gang") as folder:
            trainer = group_trainer(
                run_member,
                train_loop_config=task,
                torch_config=TorchConfig(timeout_s=GROUP_PATIENCE),
                scaling_config=_scaling(resources, nodes),
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
    """Run the attempt in every worker of the group; the first one's values are the outcome."""
    from ray import train
    from ray.train.torch import get_device

    device = get_device()
    if device.type == "cuda":
        sys.modules["torch"].cuda.set_device(device)
    context = train.get_context()
    outcome = execute(TASKS.validate_python(task), rank=context.get_world_rank(), own_process=True)
    if outcome.error_kind is not None:  # the others wait for this worker: only an error ends the group
        raise MemberFailed(outcome.error_kind, outcome.error)
    outcome.result.facts["workers"] = context.get_world_size()
    values: dict[str, Any] = OUTCOMES.dump_python(outcome, warnings=False)
    return values


def _scaling(resources: Resources, nodes: list[str]) -> Any:
    from ray.train import ScalingConfig

    each: dict[str, float] = {"CPU": resources.cpus, "GPU": resources.gpus}
    if resources.memory_gb is not None:
        each["memory"] = int(resources.memory_gb * (1 << 30))
    return ScalingConfig(
        num_workers=len(nodes),
        use_gpu=resources.gpus > 0,
        resources_per_worker={name: amount for name, amount in each.items() if amount},
        # where the controller counts them, or Ray would choose nodes by itself
        label_selector=[{NODE_LABEL: node} for node in nodes],
    )


def _failure(error: Exception) -> StepOutcome:
    """A worker's own reason before that of others, which only saw it go."""
    from ray.train import ControllerError, WorkerGroupError

    failures = list(error.worker_failures.values()) if isinstance(error, WorkerGroupError) else []
    members = [failure for failure in failures if isinstance(failure, MemberFailed)]
    if members:
        member = min(members, key=lambda member: member.kind == "infrastructure")
        return StepOutcome.failure(member.kind, member.error)
    cause = error.controller_failure if isinstance(error, ControllerError) else next(iter(failures), error)
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    return StepOutcome.failure("infrastructure", f"{LOST}: {reason}")
