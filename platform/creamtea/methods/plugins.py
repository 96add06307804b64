"""Plug-ins: packages that add methods to creamtea by entry points."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Any

from creamtea.contract.kind import StepKind, StepParams, methods_in
from creamtea.errors import StepError
from creamtea.methods.analysis import ANALYSES
from creamtea.methods.architectures import ARCHITECTURES
from creamtea.methods.corpora import CORPORA
from creamtea.methods.family import BrokenPlugin, Family, Plugin
from creamtea.methods.metrics import METRICS
from creamtea.methods.objectives import OBJECTIVES
from creamtea.methods.searches import SEARCHES
from creamtea.methods.selections import SELECTIONS
from creamtea.methods.test_sets import TEST_SETS

FAMILIES: tuple[Family[Any], ...] = (
    CORPORA,
    TEST_SETS,
    OBJECTIVES,
    ARCHITECTURES,
    SELECTIONS,
    SEARCHES,
    METRICS,
    ANALYSES,
)


def installed() -> Iterator[tuple[Family[Any], str, Plugin]]:
    """The kinds that plug-ins add: family, kind, plug-in."""
    for family in FAMILIES:
        for kind in family.kinds:
            if kind in family.plugins:
                yield family, kind, family.plugins[kind]


def broken() -> list[BrokenPlugin]:
    """The entry points that cannot be loaded."""
    return [plugin for family in FAMILIES if family.kinds is not None for plugin in family.broken]


def plugins_of(kind: StepKind[Any], params: StepParams) -> dict[str, str]:
    """The distributions, with their versions, that a step of this kind takes methods from."""
    found = [method.family.plugins.get(method.kind) for method in methods_in(params)]
    found += [family.plugins[name] for family, name, _ in installed() if kind.name in family.step_kinds(name)]
    return {plugin.distribution: plugin.version for plugin in found if plugin is not None}


def require(plugins: Mapping[str, str]) -> None:
    """StepError if one of these distributions is not installed here in this version."""
    for distribution, version in plugins.items():
        try:
            here = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            here = ""
        if here != version:
            found = f"version {here} is installed here" if here else "it is not installed here"
            raise StepError(
                f"the study was planned with the plug-in {distribution} {version}, and {found}: install the "
                "same plug-ins on every worker as where the study is submitted"
            )
