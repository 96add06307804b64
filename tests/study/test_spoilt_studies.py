"""Whatever stands in a study, the loader and the plan take it or refuse it in words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import InputError
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

SPOILT = """
name: small
languages: {source: en, target: de}
corpora:
  grammar: {kind: synthetic}
  text: {kind: files, train: [{source: a, target: b}], dev: {source: a, target: b}}
subwords: {joint: {vocabulary: 100}}
variants:
  softmax: {corpus: grammar, subwords: joint, objective: {kind: softmax}, nvs: {}, seeds: [1, 2]}
  scones: {corpus: grammar, subwords: joint, objective: {kind: scones, alpha: [0.2, 0.5]}}
systems:
  greedy: {variant: softmax, search: {kind: beam, width: 4}, precision: fp32}
  lexicon: {variant: scones, selection: {kind: lexicon, k: 5}}
  nvs: {variant: softmax, selection: {kind: nvs}}
baseline: greedy
test_sets: {test: {kind: synthetic, corpus: grammar}}
alignment: {max_k: 1000}
metrics: [{kind: bleu}, {kind: comet}]
recall: {k: [1], thresholds: [0.5]}
latency: {test_set: test, systems: [greedy, lexicon]}
resources: {train: {cpus: 1}}
"""
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["grammar", "softmax", "greedy", "joint", "synthetic", "files", "nvs", "lexicon", ""])
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "corpus", "width", "k", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in inner for found in paths_of(child, (*path, key)))]


@pytest.mark.slow
@given(st.data())
def test_nothing_but_an_input_error_comes_of_a_wrong_value(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever stands in one or two places of a study, it is loaded or refused in words."""
    study = yaml.safe_load(SPOILT)
    for _ in range(data.draw(st.integers(1, 2))):
        *path, key = data.draw(st.sampled_from(paths_of(study)[1:]))
        parent = study
        for part in path:
            parent = parent[part]
        parent[key] = data.draw(ANYTHING)
    file = tmp_path_factory.getbasetemp() / "spoilt.yaml"
    file.write_text(yaml.safe_dump(study, allow_unicode=True), encoding="utf-8")
    with suppress(InputError):
        loaded = load_study(file)
        plan(loaded.study, None)
