"""Each sentence gets its own sorted set with </s>, whatever its batch mates are."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import step_files
import torch
from hypothesis import given
from hypothesis import strategies as st

from creamtea.methods.selections import FullVocabulary, LexiconSelection, NvsSelection, Selection
from creamtea_workers.corpora.subwords import BLANK, SubwordModel, word_starts
from creamtea_workers.models.interface import EOS
from creamtea_workers.models.model import build_model
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection import SelectionResources, Selector, build_selector, nvs
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.base import LimitedSelector
from creamtea_workers.selection.nvs import WordVotes, above, logit, words_of

SIZE = 60
SOURCES = [[5, 9, 9], [], [58, 59, 4, 5, 6, 7, 8], [20]]


class Pieces:
    """Subwords of which every third begins a word."""

    size = SIZE
    source_vocabulary = None

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [f"{BLANK}{id_}" if id_ % 3 == 0 else str(id_) for id_ in ids]


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(4)
    return build_model(step_files.model_config(SIZE)).eval()


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
        NvsSelection(kind="nvs", threshold=0.9, context="word"),
        NvsSelection(kind="nvs", threshold=0.5, context="word"),
    ],
    ids=["k=1", "k=2", "0.9", "0.5", "0.9 word", "0.5 word"],
)
def test_sets_are_sorted_have_the_end_and_depend_on_their_sentence_only(
    model: Transformer, tmp_path: Path, spec: Selection
) -> None:
    lexicon = step_files.lexicon_folder(tmp_path, SIZE) / "lexicon.npz"
    resources = SelectionResources(model, lexicon, Pieces())  # type: ignore[arg-type]
    selector = build_selector(spec, resources)
    rng = np.random.default_rng(3)
    sources = SOURCES + [rng.integers(4, SIZE, size=n).tolist() for n in range(1, 29)]
    together = selected(selector, model, sources)
    assert together == [selected(selector, model, [source])[0] for source in sources]
    for ids in together:
        assert ids == sorted(set(ids))
        assert EOS in ids


def test_a_lexicon_selects_the_first_k_of_each_source_subword(model: Transformer, tmp_path: Path) -> None:
    lexicon = step_files.lexicon_folder(tmp_path, SIZE) / "lexicon.npz"  # s has s and s + 1
    resources = SelectionResources(model, lexicon)
    one, two = (build_selector(LexiconSelection(kind="lexicon", k=k), resources) for k in (1, 2))
    assert selected(one, model, SOURCES) == [[3, 5, 9], [3], [3, 4, 5, 6, 7, 8, 58, 59], [3, 20]]
    assert selected(two, model, SOURCES)[0] == [3, 5, 6, 9, 10]


def test_a_lexicon_with_frequent_subwords_adds_the_first_of_them(model: Transformer, tmp_path: Path) -> None:
    path = step_files.lexicon_folder(tmp_path, SIZE) / "lexicon.npz"
    spec = LexiconSelection(kind="lexicon", k=1, frequent=2)
    with pytest.raises(ValueError, match="frequencies"):
        build_selector(spec, SelectionResources(model, path))
    frequent = np.array([50, 9, 40], dtype=np.int32)
    dataclasses.replace(Lexicon.load(path), frequent=frequent).save(path)
    selector = build_selector(spec, SelectionResources(model, path))
    assert selected(selector, model, SOURCES[:2]) == [[3, 5, 9, 50], [3, 9, 50]]


def test_nvs_selects_what_exceeds_the_threshold(model: Transformer) -> None:
    threshold = 0.8
    selector = build_selector(NvsSelection(kind="nvs", threshold=threshold), SelectionResources(model))
    found = selected(selector, model, SOURCES)
    for source, ids in zip(SOURCES, found, strict=True):
        with torch.inference_mode():
            memory = model.encode(source_batch([source], torch.device("cpu")))
            votes = memory.hidden[0].double() @ model.nvs.weight.double().T + model.nvs.bias.double()
        probability = 1 / (1 + np.exp(-votes.numpy().max(axis=0)))
        assert ids == sorted({*np.flatnonzero(probability > threshold).tolist(), EOS})


def test_nvs_without_context_is_the_union_of_what_its_words_select_alone(model: Transformer) -> None:
    sources = [[6, 7, 8, 9, 12, 13, 6, 7], [4, 5, 6], [9], []]
    words = [[[6, 7, 8], [9], [12, 13], [6, 7]], [[4, 5], [6]], [[9]], []]
    for threshold in (0.9, 0.5, 0.0):
        spec = NvsSelection(kind="nvs", threshold=threshold, context="word")
        alone = build_selector(NvsSelection(kind="nvs", threshold=threshold), SelectionResources(model))
        resources = SelectionResources(model, subwords=Pieces())  # type: ignore[arg-type]
        found = selected(build_selector(spec, resources), model, sources)
        expected = [
            sorted({EOS}.union(*(selected(alone, model, [word])[0] for word in own))) for own in words
        ]
        assert found == expected


@pytest.mark.parametrize("cells", [1, 2 * SIZE, 1 << 24])
def test_the_batches_of_words_change_nothing(
    model: Transformer, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes = WordVotes(model, frozenset(range(0, SIZE, 3)))
    with torch.inference_mode():
        whole = votes(SOURCES)
        monkeypatch.setattr(nvs, "_CELLS", cells)
        assert torch.allclose(votes(SOURCES), whole, atol=1e-5)


@given(st.lists(st.integers(0, 8)), st.sets(st.integers(0, 8)))
def test_words_begin_where_a_subword_says_so(source: list[int], starts: set[int]) -> None:
    words = words_of(source, starts)
    assert [id_ for word in words for id_ in word] == source
    assert all(word[0] in starts for word in words[1:])
    assert not starts & {id_ for word in words for id_ in word[1:]}


def test_a_word_of_text_is_what_stands_between_blanks(tmp_path: Path) -> None:
    subwords = SubwordModel.load(step_files.subwords_folder(tmp_path) / "subwords.model")
    text = "it rains cats and dogs"
    words = words_of(subwords.encode(text), word_starts(subwords))
    assert [subwords.decode(word) for word in words] == text.split()


def test_nvs_without_context_needs_the_subwords(model: Transformer) -> None:
    with pytest.raises(ValueError, match="needs the subwords"):
        build_selector(NvsSelection(kind="nvs", context="word"), SelectionResources(model))


def test_nvs_at_threshold_0_is_the_whole_vocabulary(model: Transformer) -> None:
    selector = build_selector(NvsSelection(kind="nvs", threshold=0.0), SelectionResources(model))
    assert selected(selector, model, SOURCES) == [list(range(SIZE))] * len(SOURCES)


def test_full_selects_nothing(model: Transformer) -> None:
    with torch.inference_mode():
        memory = model.encode(source_batch(SOURCES, torch.device("cpu")))
    assert build_selector(FullVocabulary(), SelectionResources(model)).select(SOURCES, memory) is None


@pytest.mark.parametrize("probability", [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9])
def test_logit_is_the_inverse_of_sigma(probability: float) -> None:
    assert 1 / (1 + math.exp(-logit(probability))) == pytest.approx(probability, rel=1e-9)


def test_thresholds_near_1_still_tell_logits_apart() -> None:
    # σ(20) is 1.0 in fp32: compared as probabilities, none of these would exceed 1 - 1e-9
    assert above(torch.tensor([[0.0, 20.0, 30.0, -50.0]]), 1 - 1e-9).tolist() == [[False, False, True, True]]
    assert above(torch.tensor([[0.0, 9.9, 0.0, 0.0]]), 1.0).tolist() == [[False, False, False, True]]


@pytest.mark.parametrize("context", ["sentence", "word"])
def test_nvs_says_which_threshold_would_allow_a_subword(model: Transformer, context: str) -> None:
    ids, source = list(range(4, SIZE)), SOURCES[0]

    def at(threshold: float) -> Selector:
        spec = NvsSelection.model_validate({"kind": "nvs", "threshold": threshold, "context": context})
        return build_selector(spec, SelectionResources(model, subwords=Pieces()))  # type: ignore[arg-type]

    selector = at(0.5)
    assert isinstance(selector, LimitedSelector)
    with torch.inference_mode():
        memory = model.encode(source_batch([source], torch.device("cpu")))
        limits = selector.limits(source, memory, ids)
    for id_, limit in list(zip(ids, limits, strict=True))[::9]:
        assert id_ in selected(at(limit - 1e-4), model, [source])[0]
        assert id_ not in selected(at(limit + 1e-4), model, [source])[0]


def test_the_lexicon_says_which_k_would_allow_a_subword(tmp_path: Path, model: Transformer) -> None:
    lexicon = step_files.lexicon_folder(tmp_path, SIZE) / "lexicon.npz"
    selector = build_selector(LexiconSelection(kind="lexicon", k=1), SelectionResources(model, lexicon))
    assert isinstance(selector, LimitedSelector)
    memory = model.encode(source_batch([[5, 9]], torch.device("cpu")))
    assert selector.limits([5, 9], memory, [5, 6, 9, 10, 20]) == [1, 2, 1, 2, None]
    spec = LexiconSelection(kind="lexicon", k=1)
    assert "2 or more" in spec.allowing(2)
    assert "no k" in spec.allowing(None)


def test_a_threshold_in_words_is_low_enough() -> None:
    spec = NvsSelection(kind="nvs")
    for limit in (0.36999, 0.0012345, 0.99999, 3.21e-7):
        said = float(spec.allowing(limit).rpartition(" ")[2])
        assert limit * 0.99 < said <= limit
    assert "no threshold" in spec.allowing(0.0)
