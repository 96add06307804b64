"""A random Transformer: no output depends on its batch, and every score is the scorer's."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import step_files
import torch
from forced_scores import forced_scores
from torch import Tensor
from toy_models import OBJECTIVES

from creamtea.methods.searches import Beam, Greedy, Precision, Search
from creamtea.methods.selections import FullVocabulary, LexiconSelection, NvsSelection, Selection
from creamtea_workers.models import inference
from creamtea_workers.models.interface import EOS, Memory, output_logits
from creamtea_workers.models.model import Model
from creamtea_workers.search import build_search
from creamtea_workers.search import translator as translating
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.translator import Translator
from creamtea_workers.selection import SelectionResources, build_selector
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.tables import FullSelector

VOCABULARY = 1500
TINY = {"encoder_layers": 2, "decoder_layers": 2, "width": 32, "heads": 4, "feed_forward": 64}
SELECTIONS = {
    "full": FullVocabulary(),
    "lexicon": LexiconSelection(kind="lexicon", k=9),
    "nvs": NvsSelection(kind="nvs", threshold=0.9),
    "nvs_large": NvsSelection(kind="nvs", threshold=0.2),  # takes the path that gathers logits
}
SEARCHES: dict[str, Search] = {
    "greedy": Greedy(max_length_ratio=0.5),
    "beam": Beam(kind="beam", width=4, max_length_ratio=0.5),
}
ALONE = slice(None, None, 8)  # the sentences of a batch that are translated alone, too: it takes longest


def random_model() -> Model:
    model = step_files.random_model(VOCABULARY, seed=7, architecture=TINY)
    with torch.no_grad():  # peaked enough that hypotheses finish at many lengths
        model.embedding.weight.mul_(6.0)
        model.scale /= 6.0
        model.output_bias.normal_()
        model.output_bias[EOS] = 8.0
    return model


@pytest.fixture(scope="module")
def model() -> Model:
    return random_model()


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lexicon") / "lexicon.npz"
    targets = np.random.default_rng(1).integers(4, VOCABULARY, size=VOCABULARY * 10)
    starts = np.arange(0, VOCABULARY * 10 + 1, 10)
    Lexicon(starts, targets.astype(np.int32), np.full(len(targets), 0.1, dtype=np.float32)).save(path)
    return path


def translator(
    model: Model, objective: str, selection: Selection, search: Search, lexicon: Path
) -> Translator:
    selector = build_selector(selection, SelectionResources(model, lexicon))
    return Translator(model, OBJECTIVES[objective], selector, build_search(search))


def sources() -> list[list[int]]:
    draw = np.random.default_rng(5)
    lengths = [0, *draw.integers(1, 14, size=31)]
    return [draw.integers(4, VOCABULARY, size=n).tolist() for n in lengths]


def assert_batches_agree(system: Translator, selection: str) -> None:
    """Sentences of a batch of 32 and alone; the scores are those of force-decoding in fp32."""
    batch = system.translate(sources())
    alone = [system.translate([source])[0] for source in sources()[ALONE]]
    for found, expected in zip(batch[ALONE], alone, strict=True):
        assert found.hypothesis.tokens == expected.hypothesis.tokens
        assert found.hypothesis.finished == expected.hypothesis.finished
        assert found.selected_size == expected.selected_size
    scores = [t.hypothesis.score for t in batch]
    assert scores[ALONE] == pytest.approx([t.hypothesis.score for t in alone], abs=1e-4)
    assert len({len(t.hypothesis.tokens) for t in batch}) > 3  # sentences of different lengths
    assert selection == "full" or len({t.selected_size for t in batch}) > 3
    if system.model.may_pad:
        found = forced_scores(system, sources(), [t.hypothesis for t in batch])
        assert found == pytest.approx(scores, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_batches_of_1_and_32_agree_and_scores_are_the_scorers(
    model: Model, lexicon: Path, objective: str, selection: str, search: str
) -> None:
    system = translator(model, objective, SELECTIONS[selection], SEARCHES[search], lexicon)
    assert_batches_agree(system, selection)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_batches_of_1_and_32_agree_in_a_prepared_model(
    lexicon: Path, precision: Precision, selection: str, search: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, with the kernels that decode steps run: all fp32 weights packed, however small."""
    monkeypatch.setattr(inference, "MIN_PACKED", 0)
    prepared = inference.prepare(random_model(), precision)
    assert precision == "int8" or isinstance(prepared.projection, inference.PackedLinear)
    system = translator(prepared, "softmax", SELECTIONS[selection], SEARCHES[search], lexicon)
    assert_batches_agree(system, selection)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_token_outside_the_vocabulary_scores_minus_infinity(
    model: Model, lexicon: Path, objective: str
) -> None:
    system = translator(model, objective, SELECTIONS["lexicon"], SEARCHES["greedy"], lexicon)
    lines = sources()[5:8]
    outside = [
        max(set(range(4, VOCABULARY)) - set(Lexicon.load(lexicon).select(s, 9).tolist())) for s in lines
    ]
    hypotheses = [Hypothesis([token], 0.0, finished=True) for token in outside]
    assert forced_scores(system, lines, hypotheses) == [-float("inf")] * 3


@pytest.mark.parametrize("objective", ["softmax", "scones"])
def test_softmax_renormalises_over_the_selection_and_scones_does_not(
    model: Model, lexicon: Path, objective: str
) -> None:
    full = translator(model, objective, SELECTIONS["full"], SEARCHES["greedy"], lexicon)
    some = translator(model, objective, SELECTIONS["lexicon"], SEARCHES["greedy"], lexicon)
    hypotheses = [t.hypothesis for t in some.translate(sources()[1:9])]
    restricted = [h.score for h in hypotheses]
    unrestricted = forced_scores(full, sources()[1:9], hypotheses)
    if objective == "scones":
        assert restricted == pytest.approx(unrestricted, abs=1e-4)
    else:
        assert all(r > u + 0.1 for r, u in zip(restricted, unrestricted, strict=True))


def test_bf16_weights_decode_and_score(model: Model, lexicon: Path) -> None:
    half = step_files.random_model(VOCABULARY, architecture=TINY).to(torch.bfloat16)
    system = translator(half, "softmax", SELECTIONS["nvs"], SEARCHES["beam"], lexicon)
    found = system.translate(sources()[:6])
    again = system.translate(sources()[:6])
    assert [t.hypothesis for t in found] == [t.hypothesis for t in again]
    assert all(t.hypothesis.score <= 0.0 for t in found)
    logits = output_logits(half, torch.randn(3, 32).bfloat16())
    assert logits.dtype == torch.float32  # for what follows, but no more precise than the weights
    assert torch.equal(logits.bfloat16().float(), logits)


class FixedSelector:
    """Selects the given ids."""

    def __init__(self, selections: list[list[int]]) -> None:
        self.selections = selections

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor]:
        return [torch.tensor(sorted(ids)) for ids in self.selections]


@pytest.mark.parametrize("power", [0.0, 1.0])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_beam_wider_than_a_selection_finds_the_best_of_the_words_that_are_there(
    model: Model, objective: str, power: float
) -> None:
    lines, few, many = [[5, 6, 7], [8, 9]], [EOS, 7], [EOS, *range(11, 30)]
    search = Beam(kind="beam", width=12, length_normalization=power, max_length_ratio=0.01)
    both = Translator(model, OBJECTIVES[objective], FixedSelector([few, many]), build_search(search))
    first, second = (translation.hypothesis for translation in both.translate(lines))

    alone = Translator(model, OBJECTIVES[objective], FixedSelector([few]), build_search(search))
    possible = [Hypothesis([7] * length, 0.0, finished=True) for length in range(11)]
    scores = [forced_scores(alone, lines[:1], [hypothesis])[0] for hypothesis in possible]
    best = max(range(11), key=lambda length: scores[length] / (length + 1) ** power)
    assert first.tokens == [7] * best
    assert first.score == pytest.approx(scores[best], abs=1e-4)
    assert forced_scores(both, lines, [first, second]) == pytest.approx([first.score, second.score], abs=1e-4)


# ---------------------------------------------------------------- batches


def batches_of(model: Model, search: Search, sources: list[list[int]], size: int) -> list[list[int]]:
    system = Translator(model, OBJECTIVES["softmax"], FullSelector(), build_search(search))
    return list(system.batches(sources, size))


def test_batches_have_all_sentences_once_the_longest_first(model: Model) -> None:
    found = batches_of(model, SEARCHES["greedy"], sources(), 5)
    assert sorted(n for batch in found for n in batch) == list(range(len(sources())))
    lengths = [len(sources()[n]) for batch in found for n in batch]
    assert lengths == sorted(lengths, reverse=True)
    assert [len(batch) for batch in found] == [5] * 6 + [2]


def test_a_long_sentence_shares_its_batch_with_few_and_others_theirs_with_many(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "kept", 1000)
    monkeypatch.setattr(translating, "_KEPT", 4 * 1000 * 311)  # of 100 subwords: 101 + 210 places
    found = batches_of(model, Greedy(max_length_ratio=2.0), [[4] * 100] * 5 + [[4] * 10] * 40, 32)
    assert [len(batch) for batch in found] == [4, 4, 30, 7]
    wide = Beam(kind="beam", width=8, max_length_ratio=2.0)
    assert {len(batch) for batch in batches_of(model, wide, [[4] * 100] * 3, 32)} == {1}
