"""How much outputs agree where there are no references, against sacreBLEU's own chrF."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF
from step_context import Context

from creamtea.steps.systems import AGREEMENT
from creamtea_workers.metrics.base import ratio
from creamtea_workers.steps.agreement import common_ngrams

SOURCES = ["a cup of tea", "two cups, please", "no milk"]
OUTPUTS = [
    ["eine Tasse Tee", "zwei Tassen, bitte", "keine Milch"],
    ["eine Tasse Tee", "zwei Tassen bitte", "ohne Milch"],
    ["ein Becher", "", "Milch"],
]


@given(st.lists(st.text("ab ä", max_size=12), min_size=2, max_size=4))
def test_common_ngrams_are_those_that_sacrebleu_counts(texts: list[str]) -> None:
    scorer, found = CHRF(), common_ngrams(tuple(texts))
    for i, one in enumerate(texts):
        for j, other in enumerate(texts):
            (expected,) = scorer._extract_corpus_statistics([one], [[other]])
            assert found[i, j].tolist() == expected


def test_a_ratio_to_less_than_one_is_one() -> None:
    """The other systems' mean length is half a character, say."""
    assert ratio(np.array([[1.0, 0.5], [0.0, 0.0], [3.0, 2.0]])).tolist() == [2.0, 0.0, 1.5]


def test_agreement_is_the_mean_of_chrf_in_both_directions(
    tmp_path: Path, test_set_folder: Callable[..., Any], decode_folder: Callable[..., Any]
) -> None:
    folders = [decode_folder(own, f"decode-{place}") for place, own in enumerate(OUTPUTS)]
    inputs = {"test_set": [test_set_folder([""] * 3, SOURCES)], "systems": folders}
    rows = {
        (row.name, row.subject): row
        for row in Context(AGREEMENT, {}, inputs, tmp_path / "output").run().metrics
    }
    corpus = np.array([[CHRF().corpus_score(one, [other]).score for other in OUTPUTS] for one in OUTPUTS])
    expected = (corpus + corpus.T) / 2
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert rows["agreement", f"{i}/{j}"].value == pytest.approx(expected[i, j])
    for place in range(3):
        row = rows["agreement", str(place)]
        assert row.value == pytest.approx(np.delete(expected[place], place).mean())
    characters = [sum(map(len, own)) for own in OUTPUTS]
    assert rows["length_others", "2"].value == pytest.approx(characters[2] / np.mean(characters[:2]))
    assert rows["length_source", "0"].value == pytest.approx(characters[0] / sum(map(len, SOURCES)))
