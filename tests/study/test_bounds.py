"""Values of models: every number of a study has finite bounds, and what is left out is the default."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from creamtea.document.raw import parsed
from creamtea.document.values import Strict
from creamtea.methods.corpora import CORPORA, SyntheticCorpus
from creamtea.methods.searches import Sample
from creamtea.methods.training import Training
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.study.spec import Study


def numbers(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The places of a JSON schema that hold a number, with their own schemas."""
    if isinstance(schema, dict):
        if schema.get("type") in ("number", "integer") and "const" not in schema and "enum" not in schema:
            yield place, schema
        for key, value in schema.items():
            yield from numbers(value, f"{place}/{key}")
    elif isinstance(schema, list):
        for position, value in enumerate(schema):
            yield from numbers(value, f"{place}/{position}")


def test_every_number_of_a_study_has_finite_bounds() -> None:
    found = dict(numbers(TypeAdapter(Study).json_schema()))
    assert len(found) > 80
    places = ("Training/properties/average", "Sample/properties/temperature", "StepResources/properties/gpus")
    assert all(f"/$defs/{place}" in found for place in places)
    for place, schema in found.items():
        low = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf))
        high = schema.get("maximum", schema.get("exclusiveMaximum", math.inf))
        assert -math.inf < low < high < math.inf, place


@pytest.mark.parametrize(
    "model, values",
    [
        (Training, {"average": 10**9}),
        (Training, {"clip_value": 1e300}),
        (Training, {"weight_decay": math.inf}),
        (Sample, {"kind": "sample", "temperature": 1e-50}),
        (Sample, {"kind": "sample", "max_length_ratio": 1e18}),
        (Sample, {"kind": "sample", "temperature": math.nan}),
        (SyntheticCorpus, {"kind": "synthetic", "train": 10**9}),
    ],
    ids=str,
)
def test_numbers_that_would_end_in_an_overflow_are_refused(model: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"less than or equal|greater than or equal|finite"):
        model.model_validate(values)
    assert parsed(model, values) is None


def test_the_bounds_are_of_every_kind_of_a_family() -> None:
    """A family's base stands for all of its kinds, which the schema lists."""
    listed = TypeAdapter(Study).json_schema()["$defs"]
    assert {kind.__name__ for kind in CORPORA.kinds.values()} <= listed.keys()


# ---------------------------------------------------------------- values that parameters leave out

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
    """A worker fills it in again."""
    field = LEFT_OUT[model, name]
    assert field.exclude_if is not None
    default = field.get_default(call_default_factory=True, validated_data={})
    assert field.exclude_if(default)
    others = [value for value in (None, 0, 0.0, 1, 1.0, "text", "loss", [], {}, True) if value != default]
    assert not any(field.exclude_if(value) for value in others if isinstance(value, type(default)))
