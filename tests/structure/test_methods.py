"""Every method has the workers' module that its family promises."""

from __future__ import annotations

import importlib
import inspect
import typing
from typing import Any

import pytest

from creamtea.methods.analysis import ANALYSES
from creamtea.methods.family import Method, implementation
from creamtea.methods.plugins import FAMILIES
from creamtea.steps.catalogue import STEP_KINDS

METHODS = [
    pytest.param(method, family.functions, id=f"{family.noun} {kind}")
    for family in FAMILIES
    if family.functions
    for kind, method in family.kinds.items()
]


@pytest.mark.parametrize(("method", "functions"), METHODS)
def test_a_method_has_its_module_with_the_functions_of_its_family(
    method: type[Method], functions: tuple[str, ...]
) -> None:
    module = implementation(method.model_construct())
    for name in functions:
        function = getattr(module, name)
        first = next(iter(inspect.signature(function).parameters))
        taken: Any = typing.get_type_hints(function)[first]
        assert issubclass(method, taken), f"{name} is of {taken.__name__}"


@pytest.mark.parametrize("kind", ANALYSES.kinds)
def test_an_analysis_has_its_step(kind: str) -> None:
    step = ANALYSES.kinds[kind].step
    assert step.name == kind
    assert STEP_KINDS[kind] is step
    assert callable(importlib.import_module(step.module).run)
