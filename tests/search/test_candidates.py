"""MBR against brute force over sacreBLEU's sentence scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from toy_models import OBJECTIVES, TableModel, batch_of

from creamtea.methods.searches import Mbr
from creamtea_workers.metrics.sacrebleu_metrics import ngram_matches
from creamtea_workers.search import build_search
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.candidates import (
    MbrSearch,
    Utility,
    expected_utilities,
    pairwise_utilities,
)
from creamtea_workers.search.sample import Sampler

SACREBLEU = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}
WORDS = ["the", "a", "cat", "cats,", "sat", "on", "mat.", "dog's", "ran", "ran", "ß日本", "  "]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=8)


def sacrebleu(utility: Utility, rows: list[str]) -> list[list[float]]:
    scorer = SACREBLEU[utility]
    return [[scorer.sentence_score(own, [other]).score for other in rows] for own in rows]


def spelled(tokens: object) -> str:
    return " ".join("xabycdef"[token] * 2 for token in tokens)  # type: ignore[attr-defined]


@pytest.mark.parametrize("utility", SACREBLEU)
@given(rows=texts)
def test_utilities_are_sacrebleus(utility: Utility, rows: list[str]) -> None:
    np.testing.assert_allclose(pairwise_utilities(rows, utility), sacrebleu(utility, rows), atol=1e-9)


def test_repeated_ngrams_match_as_often_as_both_have_them() -> None:
    counts, matched = ngram_matches([np.array(list(row)) for row in ("aaab", "aab", "ba")], 2)
    assert counts.tolist() == [[4, 3], [3, 2], [2, 1]]
    assert matched[:, :, 0].tolist() == [[4, 3, 2], [3, 3, 2], [2, 2, 2]]
    assert matched[:, :, 1].tolist() == [[3, 2, 0], [2, 2, 0], [0, 0, 1]]


def test_features_in_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["a cat sat on a mat", "the cat sat", "on the mat a cat sat", ""]
    whole = pairwise_utilities(rows, "chrf")
    monkeypatch.setattr("creamtea_workers.search.candidates._CELLS", 12)
    monkeypatch.setattr("creamtea_workers.metrics.sacrebleu_metrics._CELLS", 12)
    np.testing.assert_array_equal(pairwise_utilities(rows, "chrf"), whole)


def test_expected_utility_counts_every_sample() -> None:
    rows, counts = ["a cat", "a dog", "the cat"], [1, 3, 2]
    wanted = np.array(sacrebleu("chrf", rows)) @ np.array(counts) / 6
    np.testing.assert_allclose(expected_utilities(rows, counts, "chrf"), wanted)


@pytest.mark.parametrize("utility", SACREBLEU)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_choice_is_that_of_brute_force(utility: Utility, objective: str) -> None:
    model, sampler, numbers = TableModel(8, seed=1, spread=1.0), Sampler(seed=3), list(range(10))
    search = MbrSearch(sampler, 12, utility, spelled)
    batch = batch_of(model, objective, numbers, [6] * 10)
    for samples, chosen in zip(sampler.draw(batch, 12), search(batch), strict=True):
        rows = sacrebleu(utility, [spelled(sample.tokens) for sample in samples])
        expected = {sample: sum(row) / 12 for sample, row in zip(map(id, samples), rows, strict=True)}
        assert any(chosen == sample for sample in samples)
        best = max(expected.values())
        assert any(chosen == one and expected[id(one)] == pytest.approx(best) for one in samples)


def test_of_equal_utilities_the_higher_score_wins_then_the_first() -> None:
    search = MbrSearch(Sampler(), 2, "chrf", spelled)
    low, high = Hypothesis([1], -2.0, True), Hypothesis([2], -1.0, True)
    assert search.choose([low, high]) == high  # nothing in common: both have half
    first, second = Hypothesis([1], -1.0, True), Hypothesis([2], -1.0, True)
    assert search.choose([first, second]) == first
    same = [Hypothesis([1, 4], -3.0, True), Hypothesis([1, 4], -1.0, False), Hypothesis([5], -0.5, True)]
    assert search.choose(same) == same[1]  # one text drawn twice beats a likelier one


def test_without_a_way_to_text_mbr_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="detokenize"):
        build_search(Mbr(kind="mbr"))
