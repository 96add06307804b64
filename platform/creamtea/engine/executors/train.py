"""Ray Train with fewer processes: one for each worker, and one that Ray has them wait for each other by.

By itself it starts four more for each group, each of which takes seconds to import what it needs.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ray.train import Result
from ray.train.torch import TorchTrainer
from ray.train.v2._internal.callbacks.datasets import DatasetsCallback
from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
from ray.train.v2._internal.constants import ENABLE_PREEMPTION_WATCHER_ENV_VAR
from ray.train.v2._internal.execution.controller import TrainController
from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy


class Trainer(TorchTrainer):  # type: ignore[misc]
    """Controls the group from the process that calls `fit`, which has to be an actor's."""

    def _create_default_callbacks(self) -> list[Any]:
        """Without the process that removes what a lost group holds: it asks Ray's dashboard, and without one
        does nothing for ever (`release_orphans` does it). Nor with the one that hands out Ray's datasets."""
        needless = (DatasetsCallback, PlacementGroupCleanerCallback)
        return [
            callback for callback in super()._create_default_callbacks() if not isinstance(callback, needless)
        ]

    def _initialize_and_run_controller(self, **given: Any) -> Result:
        controller = _controller(**{**given, "scaling_policy": Placed(self.scaling_config)})
        asyncio.run(controller.run())
        return controller.get_result()


class Placed(FixedScalingPolicy):  # type: ignore[misc]
    """Asks no autoscaler: the group is on nodes that are there."""

    def after_controller_start(self, train_run_context: object) -> None:
        pass

    def _maybe_send_resource_request(self) -> None:
        pass


def _controller(**given: Any) -> TrainController:
    """Without the process that tells workers of their node's end to come: nothing here asks for that."""
    # only for now, or it would go to the workers as a setting, for which Ray starts each of them twice
    os.environ[ENABLE_PREEMPTION_WATCHER_ENV_VAR] = "0"
    try:
        return TrainController(**given)
    finally:
        del os.environ[ENABLE_PREEMPTION_WATCHER_ENV_VAR]
