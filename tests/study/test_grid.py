"""Grids: as many members as the product, in the order of the file, each with its own values."""

import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.document.mistakes import RawStudy
from creamtea.study.checks import check
from creamtea.study.grid import expand
from creamtea.study.loader import load_study

Write = Callable[..., Path]

LISTS = st.lists(st.integers(1, 999), min_size=1, max_size=4, unique=True)
AXES = st.dictionaries(
    st.sampled_from(
        [("architecture", "width"), ("architecture", "heads"), ("training", "warmup"), ("nvs", "weight")]
    ),
    LISTS,
    max_size=3,
)


def nested(values: dict[tuple[str, str], Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for (block, key), value in values.items():
        result.setdefault(block, {})[key] = value
    return result


@given(AXES, LISTS)
def test_members_are_the_product_in_order(axes: dict[tuple[str, str], list[int]], widths: list[int]) -> None:
    variant = nested(axes)
    # blocks in the order in which they were first written, keys in the order of their block
    order = [(block, key) for block, inner in variant.items() for key in inner]
    data = {
        "variants": {"v": variant, "plain": {}},
        "systems": {"s": {"variant": "v", "search": {"kind": "beam", "width": widths}}},
    }
    result = expand(data)

    combinations = list(itertools.product(*(axes[axis] for axis in order)))
    assert list(result.data["variants"].values()) == [
        *(nested(dict(zip(order, combination, strict=True))) for combination in combinations),
        {},
    ]
    variants = list(result.data["variants"])[:-1]
    assert len(variants) == math.prod(len(axes[axis]) for axis in order)
    assert [(s["variant"], s["search"]["width"]) for s in result.data["systems"].values()] == [
        (variant, width) for variant in variants for width in widths
    ]
    assert result.mistakes == []
    assert list(expand(data).data["systems"]) == list(result.data["systems"])


@given(AXES)
def test_origin_leads_to_the_value_as_written(axes: dict[tuple[str, str], list[int]]) -> None:
    written = {"variants": {"v": {**nested(axes), "corpus": "c"}}}
    result = expand(written)
    for member, value in result.data["variants"].items():
        for block, key in axes:
            section, name, *path, index = result.origin(("variants", member, block, key))
            assert (section, name, *path) == ("variants", "v", block, key)
            assert isinstance(index, int)
            assert axes[block, key][index] == value[block][key]
        assert result.origin(("variants", member, "corpus")) == ("variants", "v", "corpus")


def test_the_document_is_not_changed() -> None:
    search = {"kind": "beam", "width": [2, 4]}
    data = {"systems": {"a": {"search": search}, "b": {"search": search}}}  # an alias shares the block
    assert list(expand(data).data["systems"]) == ["a+width=2", "a+width=4", "b+width=2", "b+width=4"]
    assert search == {"kind": "beam", "width": [2, 4]}


def test_names() -> None:
    data = {
        "variants": {
            "scones": {
                "objective": {"kind": "scones", "alpha": [0.2, 1e-5]},
                "architecture": {"width": [64]},
                "training": {"max_epochs": [None, 3]},
            }
        },
        "systems": {
            "s": {"variant": "scones+alpha=0.2+width=64+max_epochs=3", "precision": ["fp32", "bf16"]}
        },
    }
    result = expand(data)
    assert list(result.data["variants"]) == [
        "scones+alpha=0.2+width=64+max_epochs=none",
        "scones+alpha=0.2+width=64+max_epochs=3",
        "scones+alpha=1e-05+width=64+max_epochs=none",
        "scones+alpha=1e-05+width=64+max_epochs=3",
    ]
    assert list(result.data["systems"]) == ["s+precision=fp32", "s+precision=bf16"]


def test_two_axes_of_one_name_are_told_apart() -> None:
    data = {
        "variants": {"v": {"architecture": {"width": [64, 128]}}},
        "systems": {"s": {"variant": "v", "search": {"kind": "beam", "width": [4]}}},
    }
    assert list(expand(data).data["systems"]) == [
        "s+architecture.width=64+search.width=4",
        "s+architecture.width=128+search.width=4",
    ]


def test_a_grid_too_large_is_one_mistake() -> None:
    values = list(range(1, 41))
    data = {"systems": {"s": {"search": {"width": values}, "selection": {"k": values}}}}
    result = expand(data)
    assert [mistake.found for mistake in result.mistakes] == ["a grid of 1,600"]


def test_a_long_list_is_searched_once_for_values_that_stand_twice() -> None:
    class Compared(str):
        times = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Compared.times += 1
            return str(self) == other

    values = [*(Compared(number) for number in range(1000)), True, 1, Compared(7)]
    result = expand({"systems": {"s": {"precision": values}}})
    assert [mistake.found for mistake in result.mistakes] == ['"7" twice in a list']
    assert Compared.times < 100


def test_a_study_with_grids(write: Write) -> None:
    more = (
        "baseline: scones+alpha=0.5\nlatency: {test_set: test, systems: [nvs, scones]}\n"
        "analyses:\n  ece: {kind: calibration, test_set: test, variants: [scones]}"
    )
    study = load_study(write(("alpha: 0.5", "alpha: [0.2, 0.5]"), ("baseline: greedy", more))).study
    members = ["scones+alpha=0.2", "scones+alpha=0.5"]
    assert list(study.variants) == ["softmax", *members]
    assert list(study.systems) == ["greedy", "lexicon", "nvs", *members]
    assert study.systems["scones+alpha=0.2"].variant == "scones+alpha=0.2"
    assert study.latency.systems == ["nvs", *members]
    assert study.analyses["ece"].variants == members


VARIANT = {"corpus": "toy", "subwords": "bpe", "objective": {"kind": "softmax"}}


def check_study(variants: dict[str, Any], systems: dict[str, Any], baseline: str) -> list[Any]:
    study = {
        "corpora": {"toy": {"kind": "synthetic"}},
        "subwords": {"bpe": {}},
        "variants": variants,
        "systems": systems,
        "test_sets": {"test": {"kind": "synthetic", "corpus": "toy"}},
        "baseline": baseline,
    }
    expansion = expand(study)
    return list(check(RawStudy(expansion.data, expansion.groups)))


@pytest.mark.parametrize("key, values", [("learning_rate", lambda n: 0.001 + n * 1e-5), ("autocast", int)])
def test_twice_as_many_members_take_about_twice_the_work(key: str, values: Callable[[int], Any]) -> None:
    """Valid ones, and ones with a mistake each; calls are counted, since times depend on the machine."""

    def calls(members: int) -> int:
        grid = {**VARIANT, "training": {key: [values(n) for n in range(members)]}}
        systems = {
            "plain": {"variant": "plain"},
            "grid": {"variant": "grid", "more_baselines": ["first", "second"]},
            "first": {"variant": "plain", "search": {"kind": "beam", "width": 2}},
            "second": {"variant": "plain", "search": {"kind": "beam", "width": 3}},
        }
        count = 0

        def counted(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(counted)
        try:
            check_study({"plain": VARIANT, "grid": grid}, systems, "plain")
        finally:
            sys.setprofile(None)
        return count

    calls(10)  # what is imported and cached once
    assert calls(200) < 2.5 * calls(100)


def test_a_long_row_of_variants_that_start_from_each_other_is_one_mistake() -> None:
    """Deeper ones would exceed Python's stack where they are planned."""
    row = {f"v{n}": VARIANT | ({"start_from": f"v{n - 1}"} if n else {}) for n in range(1000)}
    (mistake,) = check_study(row, {"last": {"variant": "v999"}}, "last")
    assert mistake.path == ("variants", "v100", "start_from")
    assert mistake.allowed == "at most 100 in a row"


def test_an_entry_that_is_no_block_stays_as_it_is() -> None:
    assert expand({"variants": {"plain": 3}}).data["variants"] == {"plain": 3}
