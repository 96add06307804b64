"""Adds steps to a plan, each key once."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from creamtea.contract.step import Resources, StepKind, StepParams, step_key
from creamtea.methods.plugins import plugins_of
from creamtea.study.data_files import DataFiles
from creamtea.study.plan.model import Plan, PlannedNode, PlannedStep
from creamtea.study.spec import Study

Inputs = Mapping[str, Sequence[str]]
P = TypeVar("P", bound=StepParams)


class Builder:
    def __init__(self, study: Study, files: DataFiles) -> None:
        self.study, self.files = study, files
        self.result = Plan(study.name)
        self._plugins: dict[str, dict[str, str]] = {}  # by key: those of the step itself
        self._nodes: set[str] = set()
        self._resources: dict[tuple[Any, ...], Resources] = {}  # by what they follow from

    def add(
        self,
        kind: StepKind[P],
        place: str,
        params: P,
        inputs: Inputs,
        labels: dict[str, Any],
        paths: Sequence[str] = (),
    ) -> str:
        """A place of the study (once) with its step (once); the step's key. `paths` are the user's files."""
        roles = {role: list(keys) for role, keys in inputs.items()}
        plugins, values = plugins_of(kind, params), params.to_json()
        key = step_key(kind.name, kind.version, values, roles, plugins)
        node = f"{kind.name}/{place}" if place else kind.name
        if node not in self._nodes:
            self._nodes.add(node)
            self.result.nodes.append(PlannedNode(node, key, labels))
        if key not in self._plugins:
            self._plugins[key] = plugins
            # the key has those of its inputs by their keys; to read a model, a worker needs the same
            before = (self._plugins[one] for keys in roles.values() for one in keys)
            needed = dict(ChainMap(plugins, *before))
            step = PlannedStep(
                key=key,
                kind=kind.name,
                version=kind.version,
                params=values,
                inputs=roles,
                resources=self._resources_of(kind, needed, labels.get("variant")),
                locations=self.files.locations(paths),
            )
            self.result.steps.append(step)
        return key

    def _resources_of(self, kind: StepKind[P], plugins: dict[str, str], variant: str | None) -> Resources:
        """As the variant or the study says, or one core; a latency run has the threads that it measures
        with."""
        known = (kind.name, variant, *sorted(plugins.items()))
        if known not in self._resources:
            self._resources[known] = self._new_resources(kind, plugins, variant)
        return self._resources[known]

    def _new_resources(self, kind: StepKind[P], plugins: dict[str, str], variant: str | None) -> Resources:
        wanted: dict[str, Any] = {"exclusive": kind.exclusive, "plugins": plugins}
        if kind.name in self.study.resources:
            wanted |= self.study.resources[kind.name].model_dump()
        elif kind.name == "latency" and self.study.latency:
            wanted["cpus"] = self.study.latency.threads
        if variant is not None and kind.name in (own := self.study.variants[variant].resources):
            wanted |= own[kind.name].model_dump(exclude_unset=True)
        for limit in ("timeout_minutes", "silent_minutes"):
            if wanted.get(limit) is None:
                wanted[limit] = getattr(kind, limit)
        return Resources(**wanted)
