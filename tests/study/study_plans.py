"""The plan of a study, asked by the names of its nodes."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from creamtea.study.loader import load_study
from creamtea.study.plan import Plan, PlannedStep, plan


@dataclass
class PlannedStudy:
    plan: Plan

    @cached_property
    def keys(self) -> dict[str, str]:
        return {node.node: node.key for node in self.plan.nodes}

    @cached_property
    def steps(self) -> dict[str, PlannedStep]:
        by_key = {step.key: step for step in self.plan.steps}
        return {node.node: by_key[node.key] for node in self.plan.nodes}

    @cached_property
    def labels(self) -> dict[str, dict[str, Any]]:
        return {node.node: node.labels for node in self.plan.nodes}

    def of_kind(self, kind: str) -> list[PlannedStep]:
        return [step for step in self.plan.steps if step.kind == kind]

    def named(self, start: str) -> set[str]:
        """The nodes whose names begin like this."""
        return {node for node in self.keys if node.startswith(start)}

    def changed_from(self, other: "PlannedStudy") -> set[str]:
        """The nodes that have other keys in the other plan."""
        return {node for node in self.keys if self.keys[node] != other.keys[node]}


def planned(path: Path, *overrides: str, root: Path | None = None, files: bool = True) -> PlannedStudy:
    """Plan a study with its files in `root`, its own folder by default; without them if `files` is False."""
    loaded = load_study(path, overrides)
    return PlannedStudy(plan(loaded.study, (root or path.parent) if files else None, loaded.errors))
