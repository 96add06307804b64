"""Every method has the workers' module that its family promises."""

from __future__ import annotations

import importlib
import inspect
import typing
from typing import Any

import pytest
from pydantic import TypeAdapter

from creamtea.contract.step import OWN_STEP_KINDS
from creamtea.methods.analysis import ANALYSES
from creamtea.methods.family import Method, implementation
from creamtea.methods.objectives import Objective, Scones
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


def test_no_plugin_may_take_the_name_of_a_step_of_creamteas_own() -> None:
    assert set(STEP_KINDS) == OWN_STEP_KINDS


def test_a_bare_family_takes_any_of_its_kinds() -> None:
    read: Any = TypeAdapter(Objective).validate_python({"kind": "scones", "alpha": 0.3})
    assert read == Scones(kind="scones", alpha=0.3)


@pytest.mark.parametrize("kind", ANALYSES.kinds)
def test_an_analysis_has_its_step(kind: str) -> None:
    step = ANALYSES.kinds[kind].step
    assert step.name == kind
    assert STEP_KINDS[kind] is step
    assert callable(importlib.import_module(step.module).run)
