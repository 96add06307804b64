"""A value that is left out of a step's parameters is the default, which a worker fills in again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from creamtea.document.values import Strict
from creamtea.steps.catalogue import STEP_KINDS

assert STEP_KINDS  # every model is imported


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


LEFT_OUT = {
    (model, name): field
    for model in _models(Strict)
    for name, field in model.model_fields.items()
    if field.exclude_if is not None
}


@pytest.mark.parametrize(
    "model, name", LEFT_OUT, ids=[f"{model.__name__}.{name}" for model, name in LEFT_OUT]
)
def test_what_is_left_out_is_the_default(model: type[BaseModel], name: str) -> None:
    field = LEFT_OUT[model, name]
    assert field.exclude_if is not None
    default = field.get_default(call_default_factory=True, validated_data={})
    assert field.exclude_if(default)
    others = [value for value in (None, 0, 0.0, 1, 1.0, "text", "loss", [], {}, True) if value != default]
    assert not any(field.exclude_if(value) for value in others if isinstance(value, type(default)))
