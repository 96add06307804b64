"""Each sentence gets its own sorted set with </s>, whatever its batch mates are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import step_files
import torch

from creamtea.study.spec import FullVocabulary, LexiconSelection, NvsSelection, Selection
from creamtea_workers.models.build import build_model
from creamtea_workers.models.interface import EOS
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection import Selector, build_selector
from creamtea_workers.selection.nvs import above, logit

SIZE = 60
SOURCES = [[5, 9, 9], [], [58, 59, 4, 5, 6, 7, 8], [20]]


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(4)
    return build_model(step_files.PARAMS, SIZE).eval()


def selected(selector: Selector, model: Transformer, sources: list[list[int]]) -> list[list[int]]:
    with torch.inference_mode():
        memory = model.encode(source_batch(sources, torch.device("cpu")))
        rows = selector.select(sources, memory)
    assert rows is not None
    return [row.tolist() for row in rows]


@pytest.mark.parametrize(
    "spec",
    [
        LexiconSelection(kind="lexicon", k=1),
        LexiconSelection(kind="lexicon", k=2),
        NvsSelection(kind="nvs", threshold=0.9),
        NvsSelection(kind="nvs", threshold=0.5),
    ],
    ids=["k=1", "k=2", "0.9", "0.5"],
)
def test_sets_are_sorted_have_the_end_and_depend_on_their_sentence_only(
    model: Transformer, tmp_path: Path, spec: Selection
) -> None:
    lexicon = step_files.lexicon_folder(tmp_path, SIZE) / "lexicon.npz"
    selector = build_selector(spec, model, lexicon)
    together = selected(selector, model, SOURCES)
    assert together == [selected(selector, model, [source])[0] for source in SOURCES]
    for ids in together:
        assert ids == sorted(set(ids))
        assert EOS in ids


def test_a_lexicon_selects_the_first_k_of_each_source_subword(model: Transformer, tmp_path: Path) -> None:
    lexicon = step_files.lexicon_folder(tmp_path, SIZE) / "lexicon.npz"  # s has s and s + 1
    one, two = (build_selector(LexiconSelection(kind="lexicon", k=k), model, lexicon) for k in (1, 2))
    assert selected(one, model, SOURCES) == [[3, 5, 9], [3], [3, 4, 5, 6, 7, 8, 58, 59], [3, 20]]
    assert selected(two, model, SOURCES)[0] == [3, 5, 6, 9, 10]


def test_nvs_selects_what_exceeds_the_threshold(model: Transformer) -> None:
    threshold = 0.8
    found = selected(
        build_selector(NvsSelection(kind="nvs", threshold=threshold), model, None), model, SOURCES
    )
    for source, ids in zip(SOURCES, found, strict=True):
        with torch.inference_mode():
            memory = model.encode(source_batch([source], torch.device("cpu")))
            assert model.nvs is not None
            votes = memory.hidden[0].double() @ model.nvs.weight.double().T + model.nvs.bias.double()
        probability = 1 / (1 + np.exp(-votes.numpy().max(axis=0)))
        assert ids == sorted({*np.flatnonzero(probability > threshold).tolist(), EOS})


def test_nvs_at_threshold_0_is_the_whole_vocabulary(model: Transformer) -> None:
    selector = build_selector(NvsSelection(kind="nvs", threshold=0.0), model, None)
    assert selected(selector, model, SOURCES) == [list(range(SIZE))] * len(SOURCES)


def test_full_selects_nothing(model: Transformer) -> None:
    with torch.inference_mode():
        memory = model.encode(source_batch(SOURCES, torch.device("cpu")))
    assert build_selector(FullVocabulary(), model, None).select(SOURCES, memory) is None


@pytest.mark.parametrize("probability", [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9])
def test_logit_is_the_inverse_of_sigma(probability: float) -> None:
    assert 1 / (1 + math.exp(-logit(probability))) == pytest.approx(probability, rel=1e-9)


def test_thresholds_near_1_still_tell_logits_apart() -> None:
    # σ(20) is 1.0 in fp32: compared as probabilities, none of these would exceed 1 - 1e-9
    assert above(torch.tensor([[0.0, 20.0, 30.0, -50.0]]), 1 - 1e-9).tolist() == [[False, False, True, True]]
    assert above(torch.tensor([[0.0, 9.9, 0.0, 0.0]]), 1.0).tolist() == [[False, False, False, True]]
