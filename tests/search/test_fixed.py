"""Decoding in tensors of fixed shape gives the translations and scores of the searches' own loops.

On a GPU its steps are replayed; here the same function runs as it is. `make gpu-check` compares a GPU with
the CPU.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import step_files
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import FIXTURES_ARE_SHARED
from torch import Tensor
from toy_models import OBJECTIVES

from creamtea_workers.models.graphs import Graphs, bucket
from creamtea_workers.models.interface import EOS, Memory
from creamtea_workers.models.model import Model
from creamtea_workers.search import fixed
from creamtea_workers.search.base import Hypothesis, SearchMethod, top_by_key
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.sample import Sampler, SampleSearch
from creamtea_workers.search.translator import Translator

VOCABULARY = 60
LAYERS = {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "transformer": LAYERS,
    "sparse": {**LAYERS, "attention": "entmax"},
    "ssru": {**LAYERS, "kind": "ssru"},
    "rnn": {"kind": "rnn", "width": 16, "embedding": 8},
}
SEARCHES: dict[str, SearchMethod] = {
    "greedy": GreedySearch(),
    "beam": BeamSearch(width=4),
    "normalised": BeamSearch(width=3, length_normalization=0.6),
    "sample": SampleSearch(Sampler(seed=3)),
    "top-5 sample": SampleSearch(Sampler(top_k=5, temperature=0.7, seed=4)),
}
SENTENCES = st.lists(st.lists(st.integers(4, VOCABULARY - 1), min_size=0, max_size=9), min_size=1, max_size=5)
Decoded = list[list[Hypothesis]]


class Chosen:
    """A selection for each sentence by its subwords: of different sizes, of one size, or too large for
    gathered weights to pay."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor] | None:
        if self.kind == "full":
            return None
        return [self._of(source) for source in sources]

    def _of(self, source: Sequence[int]) -> Tensor:
        draw = torch.Generator().manual_seed(hash(tuple(source)) % 2**31)
        size = 12 if self.kind == "equal" else int(torch.randint(1, VOCABULARY - 4, (1,), generator=draw))
        ids = torch.randperm(VOCABULARY - 4, generator=draw)[:size] + 4
        return torch.cat([torch.tensor([EOS]), ids]).unique()


@functools.cache
def model_of(architecture: str, objective: str) -> Model:
    parts = {"architecture": ARCHITECTURES[architecture], "objective": {"kind": objective}, "nvs": None}
    model = step_files.random_model(VOCABULARY, 5, **parts)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0)
        model.output_bias[EOS] += 2.0  # some end before their limit, and some do not
    return model


def translator_of(architecture: str, objective: str, selection: str, search: SearchMethod) -> Translator:
    model = model_of(architecture, objective)
    return Translator(model, OBJECTIVES[objective], Chosen(selection), search)


def both_ways(monkeypatch: pytest.MonkeyPatch, decode: Callable[[], Decoded]) -> tuple[Decoded, Decoded]:
    """What the loops decode, and what is decoded in tensors of fixed shape."""
    calls: list[Any] = []
    replay = fixed._replay

    def counted(*given: Any) -> None:
        calls.append(given)
        replay(*given)

    with monkeypatch.context() as patch:
        patch.setattr(fixed, "_replay", counted)
        by_loops = decode()
        assert not calls
        patch.setattr(fixed, "DEVICES", {"cpu"})
        replayed = decode()
        assert calls
    return by_loops, replayed


def assert_equal(expected: Decoded, found: Decoded) -> None:
    assert [[(h.tokens, h.finished) for h in row] for row in found] == [
        [(h.tokens, h.finished) for h in row] for row in expected
    ]
    before, after = ([h.score for row in decoded for h in row] for decoded in (expected, found))
    assert after == pytest.approx(before, abs=2e-4, nan_ok=True)


@pytest.mark.parametrize("searches", [["greedy", "beam", "normalised"], ["sample", "top-5 sample"]], ids=str)
@settings(suppress_health_check=FIXTURES_ARE_SHARED)
@given(data=st.data())
def test_translations_are_those_of_the_loops(
    monkeypatch: pytest.MonkeyPatch, searches: list[str], data: st.DataObject
) -> None:
    """Of batches with and without padding: programs have room for more sentences, positions and words."""
    search = data.draw(st.sampled_from(searches))
    architecture = data.draw(st.sampled_from(list(ARCHITECTURES)))
    objective = data.draw(st.sampled_from(list(OBJECTIVES)))
    selection = data.draw(st.sampled_from(["full", "equal", "different"]))
    scored = data.draw(st.booleans())
    sentences = data.draw(SENTENCES)
    translator = translator_of(architecture, objective, selection, SEARCHES[search])

    def decode() -> Decoded:
        return [[done.hypothesis] for done in translator.translate(sentences, with_scores=scored)]

    assert_equal(*both_ways(monkeypatch, decode))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("search", ["beam", "normalised"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_best_hypotheses_are_those_of_the_loops(
    monkeypatch: pytest.MonkeyPatch, architecture: str, search: str, objective: str
) -> None:
    translator = translator_of(architecture, objective, "different", SEARCHES[search])

    def decode() -> Decoded:
        best = translator.translate_best([[7, 9, 12], [], [30, 31, 8, 8, 41, 5]], 3)
        return [[done.hypothesis for done in row] for row in best]

    assert_equal(*both_ways(monkeypatch, decode))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_several_samples_are_those_of_the_loop(monkeypatch: pytest.MonkeyPatch, architecture: str) -> None:
    sampler = Sampler(seed=6)
    translator = translator_of(architecture, "softmax", "different", SampleSearch(sampler))

    @torch.inference_mode()
    def decode() -> Decoded:
        return sampler.draw(translator._batch([[7, 9, 12], [30, 31, 8, 8, 41, 5]])[0], count=5)

    assert_equal(*both_ways(monkeypatch, decode))


def test_a_program_serves_smaller_batches_after_larger_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a larger batch has left in the tensors changes no translation of a smaller one."""
    translator = translator_of("transformer", "softmax", "different", SEARCHES["beam"])
    large = [[*range(4 + n, 12 + n)] for n in range(10)]

    def decode() -> Decoded:
        decoded = [translator.translate(part) for part in (large, large[:9], [s[:5] for s in large[3:]])]
        return [[done.hypothesis] for part in decoded for done in part]

    assert_equal(*both_ways(monkeypatch, decode))


def test_without_room_the_loops_decode_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = translator_of("transformer", "softmax", "full", SEARCHES["beam"])
    expected = translator.translate([[7, 9, 12]])

    def no_room(*given: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(Graphs, "_captured", no_room)
    monkeypatch.setattr(fixed, "DEVICES", {"cpu"})
    with pytest.warns(UserWarning, match="no room for a CUDA graph"):
        found = translator.translate([[7, 9, 12]])
    assert_equal([[done.hypothesis for done in expected]], [[done.hypothesis for done in found]])


@given(
    st.lists(st.lists(st.integers(0, 6), min_size=6, max_size=6), min_size=1, max_size=3), st.integers(1, 6)
)
def test_the_best_by_key_come_in_order_of_rank_then_index(rows: list[list[int]], count: int) -> None:
    levels = torch.tensor([0.0, -1e-30, -0.5, -3.0, -3.0000002, -1e9, -torch.inf])
    ranks = levels[torch.tensor(rows)]
    values, indices = top_by_key(ranks, count)
    expected = [sorted(range(6), key=lambda n: (-row[n], n))[:count] for row in ranks.tolist()]
    assert indices.tolist() == expected
    assert torch.equal(values, ranks.gather(1, indices))


@given(st.integers(1, 100_000), st.sampled_from([1, 8, 256]))
def test_sizes_are_rounded_up_to_few(size: int, step: int) -> None:
    rounded = bucket(size, step)
    assert rounded >= size
    assert rounded % step == 0
    assert rounded < size + max(step, math.ceil(size / 4))
    assert bucket(rounded, step) == rounded
