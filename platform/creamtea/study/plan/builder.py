"""Adds steps to a plan, each key once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from creamtea.contract.keys import step_key
from creamtea.study.catalogue import STEP_KINDS
from creamtea.study.data_files import DataFiles
from creamtea.study.plan.model import Plan, PlannedNode, PlannedStep
from creamtea.study.spec import StepResources, Study

Inputs = Mapping[str, Sequence[str]]


def dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json")


class Builder:
    def __init__(self, study: Study, files: DataFiles) -> None:
        self.study, self.files = study, files
        self.languages = dump(study.languages)
        self.result = Plan(study.name)
        self._keys: set[str] = set()
        self._nodes: set[str] = set()

    def add(
        self,
        node: str,
        params: dict[str, Any],
        inputs: Inputs,
        labels: dict[str, Any],
        paths: Sequence[str] = (),
    ) -> str:
        """A node (once) with its step (once); the node's name begins with the step's kind. The step's key."""
        kind = STEP_KINDS[node.partition("/")[0]]
        roles = {role: list(keys) for role, keys in inputs.items()}
        key = step_key(kind.name, kind.version, params, roles)
        if node not in self._nodes:
            self._nodes.add(node)
            self.result.nodes.append(PlannedNode(node, key, labels))
        if key not in self._keys:
            self._keys.add(key)
            step = PlannedStep(
                key=key,
                kind=kind.name,
                version=kind.version,
                params=params,
                inputs=roles,
                resources=self._resources(kind.name),
                exclusive=kind.exclusive,
                locations=self.files.locations(paths),
            )
            self.result.steps.append(step)
        return key

    def _resources(self, kind: str) -> StepResources:
        """As the study says, or one core; a latency run has the threads that it measures with."""
        if kind == "latency" and self.study.latency:
            return self.study.resources.get(kind, StepResources(cpus=self.study.latency.threads))
        return self.study.resources.get(kind, StepResources())
