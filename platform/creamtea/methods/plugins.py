"""The families of methods, and the plug-ins from which a step takes methods."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import Any

from creamtea.contract.step import StepKind, StepParams, methods_in
from creamtea.errors import StepError
from creamtea.methods.analysis import ANALYSES
from creamtea.methods.architectures import ARCHITECTURES
from creamtea.methods.corpora import CORPORA
from creamtea.methods.family import Family, steps_of
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


def plugins_of(kind: StepKind[Any], params: StepParams) -> dict[str, str]:
    """Return the distributions, with their versions, from which a step of this kind takes methods."""
    if not any(family.added.kinds for family in FAMILIES):
        return {}  # none is installed
    plugins = [method.family.added.plugins.get(method.kind) for method in methods_in(params)]
    for family in FAMILIES:
        for name, method in family.added.kinds.items():
            if kind in steps_of(method):
                plugins.append(family.added.plugins[name])
    return {plugin.distribution: plugin.version for plugin in plugins if plugin is not None}


def not_here(plugins: Mapping[str, str]) -> str:
    """Name the first of these distributions that is not installed in this version; "" if all are."""
    for distribution, version in plugins.items():
        try:
            here = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            here = ""
        if here != version:
            installed = f"version {here} is installed here" if here else "it is not installed here"
            return f"planned with the plug-in {distribution} {version}, and {installed}"
    return ""


def require(plugins: Mapping[str, str]) -> None:
    """Raise StepError if one of these distributions is not installed here in this version."""
    if lacking := not_here(plugins):
        raise StepError(
            f"the study was {lacking}: install the same plug-ins on every worker as where the study is "
            "submitted"
        )
