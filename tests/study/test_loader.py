"""Reading a study: YAML's core schema, merge keys, overrides, the config hash."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from creamtea.document.mistakes import parsed
from creamtea.document.values import Strict
from creamtea.errors import InputError
from creamtea.methods.architectures import Architecture
from creamtea.methods.corpora import CORPORA, SyntheticCorpus
from creamtea.methods.objectives import Scones
from creamtea.methods.searches import Beam, Sample
from creamtea.methods.training import Training
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.study.loader import load_study
from creamtea.study.spec import Study

Write = Callable[..., Path]


def test_the_core_schema(write: Write) -> None:
    """`no` is Norwegian, and 1e-3 a number."""
    study = load_study(write(("target: de", "target: no"), ("alpha: 0.5", "alpha: 1e-3"))).study
    assert study.languages.target == "no"
    assert study.variants["scones"].objective == Scones(kind="scones", alpha=0.001)


def test_merge_keys(write: Write) -> None:
    """Keys beside a merge override it, and a mistake in one of them is at its own line."""
    base = ("  softmax:\n", "  softmax: &base\n")
    own = "    corpus: grammar\n    subwords: joint\n    objective: {kind: scones, alpha: 0.5}"
    variants = load_study(write(base, (own, "    <<: *base\n    nvs: null"))).study.variants
    assert variants["scones"].objective == variants["softmax"].objective
    assert variants["softmax"].nvs is not None
    assert variants["scones"].nvs is None
    path = write(base, (own, "    <<: *base\n    objective: {kind: scones, alpha: 0}"))
    with pytest.raises(InputError, match=r"^study\.yaml:15: variants\.scones\.objective\.alpha"):
        load_study(path)


def test_overrides_win_in_their_order(write: Write) -> None:
    study = load_study(
        write(("  scones: {variant: scones}", "  v1.5: {variant: scones}")),
        [
            "systems.v1.5.batch_size=3",
            "variants.softmax.training.max_epochs=2",
            "variants.softmax.training.max_epochs=3",
            "systems.greedy.search={kind: beam, width: 7}",
            "variants.softmax.nvs.positive_weight=10",
            "name=other",
        ],
    ).study
    assert study.variants["softmax"].training.max_epochs == 3
    assert study.systems["greedy"].search == Beam(kind="beam", width=7)
    assert study.variants["softmax"].nvs.positive_weight == 10.0
    assert study.name == "other"
    assert study.systems["v1.5"].batch_size == 3, "a name with dots"


@pytest.mark.parametrize("entry", ["metrics.0", "metrics[0]"])
def test_an_override_of_an_entry_as_mistakes_name_it(entry: str, write: Write) -> None:
    changed = load_study(write(), ["metrics=[{kind: bleu}]", f"{entry}={{kind: ter}}"])
    assert changed.study.metrics[0].name() == "ter"
    with pytest.raises(InputError, match="metrics: found entry 0, allowed a whole list, as this one is"):
        load_study(write(), ["metrics=[]", f"{entry}={{kind: ter}}"])
    with pytest.raises(InputError, match="metrics: found no such list in the file, allowed the whole list"):
        load_study(write(), [f"{entry}.tokenize=intl"])


def test_the_spec_is_the_study_and_its_hash_knows_values_not_their_spelling(write: Write) -> None:
    plain = load_study(write())
    assert Study.model_validate(plain.spec) == plain.study
    for spelling in (("vocabulary: 100", "vocabulary: +100"), ("kind: bpe, vocabulary", "vocabulary")):
        assert load_study(write(spelling)).config_hash == plain.config_hash
    assert load_study(write(("vocabulary: 100", "vocabulary: 101"))).config_hash != plain.config_hash


def test_a_preset_gives_sizes_and_what_is_beside_it_overrides_it(write: Write) -> None:
    path = write(
        ("    nvs: {}", "    architecture: {preset: deep, decoder_layers: 3}"),
        ("  nvs: {variant: softmax, selection: {kind: nvs}}\n", ""),
    )
    found = load_study(path).study.variants["softmax"].architecture
    sizes = {"kind": "ssru", "encoder_layers": 20, "decoder_layers": 3, "width": 1024, "heads": 16}
    assert found.model_dump(include=set(sizes)) == sizes
    assert "preset" not in found.model_dump()  # two ways to write one size are one training
    assert TypeAdapter(Architecture).validate_python(found.model_dump()) == found.model_copy(
        update={"preset": None}
    )


def test_one_member_of_a_grid_may_have_no_smoothing(write: Write) -> None:
    path = write(
        ("{kind: scones, alpha: 0.5}", "{kind: entmax, smoothing: unigram, label_smoothing: [0.0, 0.1]}")
    )
    assert len(load_study(path).study.variants) == 3


# ---------------------------------------------------------------- bounds


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
