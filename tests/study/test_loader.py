"""Reading a study: YAML's core schema, merge keys, overrides, the config hash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from creamtea.errors import InputError
from creamtea.methods.architectures import Architecture
from creamtea.methods.objectives import Scones
from creamtea.methods.searches import Beam
from creamtea.study.loader import load_study
from creamtea.study.spec import Study

Write = Callable[..., Path]


def test_the_core_schema(write: Write) -> None:
    """`no` is Norwegian, and 1e-3 a number."""
    study = load_study(write(("target: de", "target: no"), ("alpha: 0.5", "alpha: 1e-3"))).study
    assert study.languages.target == "no"
    assert study.variants["scones"].objective == Scones(kind="scones", alpha=0.001)


def test_merge_keys(write: Write) -> None:
    path = write(
        ("  softmax:\n", "  softmax: &base\n"),
        (
            "    corpus: grammar\n    subwords: joint\n    objective: {kind: scones, alpha: 0.5}",
            "    <<: *base\n    nvs: null",
        ),
    )
    variants = load_study(path).study.variants
    assert variants["scones"].objective == variants["softmax"].objective
    assert variants["softmax"].nvs is not None
    assert variants["scones"].nvs is None


def test_a_mistake_in_a_key_that_overrides_a_merged_one_is_at_its_own_line(write: Write) -> None:
    path = write(
        ("  softmax:\n", "  softmax: &base\n"),
        (
            "    corpus: grammar\n    subwords: joint\n    objective: {kind: scones, alpha: 0.5}",
            "    <<: *base\n    objective: {kind: scones, alpha: 0}",
        ),
    )
    with pytest.raises(InputError, match=r"^study\.yaml:15: variants\.scones\.objective\.alpha"):
        load_study(path)


def test_overrides_win_in_their_order(write: Write) -> None:
    study = load_study(
        write(),
        [
            "variants.softmax.training.max_epochs=2",
            "variants.softmax.training.max_epochs=3",
            "systems.greedy.search={kind: beam, width: 7}",
            "variants.softmax.nvs.positive_weight=10",
            "name=other",
        ],
    ).study
    assert study.variants["softmax"].training.max_epochs == 3
    assert study.systems["greedy"].search == Beam(kind="beam", width=7)
    assert study.variants["softmax"].nvs is not None
    assert study.variants["softmax"].nvs.positive_weight == 10.0
    assert study.name == "other"


def test_an_override_of_a_name_with_dots(write: Write) -> None:
    path = write(("  scones: {variant: scones}", "  v1.5: {variant: scones}"))
    assert load_study(path, ["systems.v1.5.batch_size=3"]).study.systems["v1.5"].batch_size == 3


@pytest.mark.parametrize("entry", ["metrics.0", "metrics[0]"])
def test_an_override_of_an_entry_as_mistakes_name_it(entry: str, write: Write) -> None:
    changed = load_study(write(), ["metrics=[{kind: bleu}]", f"{entry}={{kind: ter}}"])
    assert changed.study.metrics[0].name() == "ter"
    with pytest.raises(InputError, match="metrics: found entry 0, allowed a whole list, as this one is"):
        load_study(write(), ["metrics=[]", f"{entry}={{kind: ter}}"])
    with pytest.raises(InputError, match="metrics: found no such list in the file, allowed the whole list"):
        load_study(write(), [f"{entry}.tokenize=intl"])


def test_the_spec_is_the_study(write: Write) -> None:
    loaded = load_study(write())
    assert Study.model_validate(loaded.spec) == loaded.study


def test_the_config_hash_knows_values_not_their_spelling(write: Write) -> None:
    plain = load_study(write()).config_hash
    assert load_study(write(("vocabulary: 100", "vocabulary: +100"))).config_hash == plain
    assert load_study(write(("kind: bpe, vocabulary: 100", "vocabulary: 100"))).config_hash == plain
    assert load_study(write(("vocabulary: 100", "vocabulary: 101"))).config_hash != plain


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


def test_a_grid_in_an_analysis_stands_for_its_members(write: Write) -> None:
    path = write(
        ("alpha: 0.5}", "alpha: [0.2, 0.5]}"),
        (
            "baseline: greedy",
            "baseline: greedy\nanalyses:\n  ece: {kind: calibration, test_set: test, variants: [scones]}",
        ),
    )
    analysis = load_study(path).study.analyses["ece"]
    assert analysis.variants == ["scones+alpha=0.2", "scones+alpha=0.5"]  # type: ignore[union-attr]


def test_one_member_of_a_grid_may_have_no_smoothing(write: Write) -> None:
    path = write(
        (
            "{kind: scones, alpha: 0.5}",
            "{kind: entmax, smoothing: unigram, label_smoothing: [0.0, 0.1]}",
        )
    )
    assert len(load_study(path).study.variants) == 3
