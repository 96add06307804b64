"""Beam search against enumeration and a textbook beam, greedy search against a loop, in plain Python."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toy_models import OBJECTIVES, AttentiveTableModel, Slow, TableModel, batch_of

from creamtea.errors import StepError
from creamtea_workers.models.interface import EOS
from creamtea_workers.search.base import Hypothesis, length_limit, top_candidates
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.greedy import GreedySearch

FULL = list(range(5))
VOCABULARIES = [[0, 1, 2, 3, 4], [3, 4], [1, 3], [0, 2, 3, 4], [3]]  # one a sentence; EOS is 3


def decode(
    search: BeamSearch | GreedySearch,
    model: TableModel,
    objective: str,
    numbers: list[int],
    limits: list[int],
    vocabularies: list[list[int]] | None = None,
) -> list[Hypothesis]:
    return search(batch_of(model, objective, numbers, limits, vocabularies))


def with_end(hypothesis: Hypothesis) -> tuple[int, ...]:
    return (*hypothesis.tokens, *[EOS] * hypothesis.finished)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("vocabularies", [None, VOCABULARIES], ids=["full", "selected"])
@pytest.mark.parametrize("seed", range(2))
def test_the_best_of_a_wide_beam_are_those_of_all(
    objective: str, vocabularies: list[list[int]] | None, seed: int
) -> None:
    model, numbers = TableModel(5, seed), [7, 8, 9, 10, 11]
    found = BeamSearch(width=90).best(batch_of(model, objective, numbers, [4] * 5, vocabularies), 5)
    for number, vocabulary, hypotheses in zip(numbers, vocabularies or [FULL] * 5, found, strict=True):
        every = Slow(model, OBJECTIVES[objective], number, vocabulary).enumerate(4)
        best = sorted((one for one in every if one[0] > -math.inf), reverse=True)[:5]
        if not best:  # entmax never gives </s> any mass here
            assert not hypotheses[0].finished
            continue
        ended = hypotheses[: len(best)]
        assert [with_end(hypothesis) for hypothesis in ended] == [tokens for _, tokens in best]
        assert [hypothesis.score for hypothesis in ended] == pytest.approx([s for s, _ in best], abs=1e-5)
    assert vocabularies is None or len(found[-1]) == 1  # only </s> is allowed


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_first_of_several_is_the_one(objective: str, power: float) -> None:
    model = TableModel(5, seed=5, end=-0.5)
    numbers, limits = list(range(40, 60)), [7, 3, 9, 1] * 5
    search = BeamSearch(width=4, length_normalization=power)
    alone = decode(search, model, objective, numbers, limits)
    several = search.best(batch_of(model, objective, numbers, limits), 4)
    assert [best[0] for best in several] == alone
    assert max(map(len, several)) == 4
    for best in several:
        assert len({with_end(hypothesis) for hypothesis in best}) == len(best)
        ranks = [h.score / (len(h.tokens) + h.finished) ** power for h in best]
        assert ranks == sorted(ranks, reverse=True)


def test_greedy_search_has_no_second() -> None:
    with pytest.raises(ValueError, match="one hypothesis"):
        GreedySearch().best(batch_of(TableModel(5, seed=5), "softmax", [1], [3]), 2)


def compare_with_textbook(
    search: BeamSearch,
    model: TableModel,
    objective: str,
    numbers: list[int],
    limits: list[int],
    vocabularies: list[list[int]] | None = None,
) -> None:
    found = decode(search, model, objective, numbers, limits, vocabularies)
    own = vocabularies or [FULL] * len(numbers)
    for number, limit, vocabulary, hypothesis in zip(numbers, limits, own, found, strict=True):
        slow = Slow(model, OBJECTIVES[objective], number, vocabulary)
        penalties = search.length_normalization, search.gnmt, search.coverage_penalty
        score, tokens = slow.beam(search.width, limit, *penalties)
        assert with_end(hypothesis) == tokens
        assert hypothesis.score == pytest.approx(score, abs=1e-5)  # the model's, without penalties


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("power", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_a_narrow_beam_is_the_textbooks(objective: str, power: float, width: int) -> None:
    model, numbers, limits = TableModel(5, seed=width, end=-1.0), list(range(20, 25)), [6, 3, 9, 1, 7]
    compare_with_textbook(BeamSearch(width, power), model, objective, numbers, limits, VOCABULARIES)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("power", [0.6, 1.0])
@pytest.mark.parametrize("coverage", [0.0, 0.2, 5.0])
@pytest.mark.parametrize("width", [1, 3])
def test_a_beam_with_gnmts_penalties_is_the_textbooks(
    objective: str, power: float, coverage: float, width: int
) -> None:
    # hypotheses of several lengths with near scores: 5 in place of 6 in the penalty changes some
    model = AttentiveTableModel(5, seed=width, spread=1.0, end=0.5)
    numbers, limits = list(range(20, 35)), [6, 3, 9, 1, 7] * 3
    search = BeamSearch(width, power, gnmt=True, coverage_penalty=coverage)
    compare_with_textbook(search, model, objective, numbers, limits)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_a_narrow_beam_is_the_textbooks_for_many_models(power: float) -> None:
    # Rare events count here: a finished hypothesis that is pushed out of the beam, one that keeps a place
    # from an unfinished one. Log-sigmoids near 0 make them common.
    model = TableModel(5, seed=11, spread=1.0, end=1.0)
    model.output_bias += 3.0
    compare_with_textbook(BeamSearch(2, power), model, "scones", list(range(150)), [7] * 150)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("power", [0.0, 0.7])
def test_a_beam_that_narrows_is_the_textbooks(objective: str, power: float) -> None:
    # hypotheses finish at many lengths: slots become empty and are dropped, and filled again
    model = TableModel(5, seed=31, spread=1.5, end=0.5)
    compare_with_textbook(BeamSearch(20, power), model, objective, list(range(12)), [6] * 12)
    if not power:
        assert model.rows_stepped[-1] < max(model.rows_stepped)


def test_penalties_change_what_is_found() -> None:
    model, numbers = AttentiveTableModel(5, seed=3, end=-1.0), list(range(60))
    penalties: list[dict[str, Any]] = [{}, {"gnmt": True}, {"gnmt": True, "coverage_penalty": 0.5}]
    searches = [BeamSearch(4, 0.8, **own) for own in penalties]
    found = [[h.tokens for h in decode(search, model, "softmax", numbers, [7] * 60)] for search in searches]
    assert found[0] != found[1] != found[2]


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(StepError, match="coverage_penalty"):
        decode(BeamSearch(2, coverage_penalty=0.1), TableModel(5, seed=5), "softmax", [1], [3])


@given(seed=st.integers(0, 10_000), objective=st.sampled_from(sorted(OBJECTIVES)), end=st.floats(-3.0, 2.0))
def test_a_beam_of_one_is_greedy(seed: int, objective: str, end: float) -> None:
    model = TableModel(6, seed, end=end)
    numbers, limits = [3, 4, 5], [5, 8, 2]
    beam = decode(BeamSearch(width=1), model, objective, numbers, limits)
    greedy = decode(GreedySearch(), model, objective, numbers, limits)
    assert [with_end(h) for h in beam] == [with_end(h) for h in greedy]
    assert [h.score for h in beam] == pytest.approx([h.score for h in greedy], abs=1e-5)


def test_a_sentence_stops_as_soon_as_nothing_can_win() -> None:
    model = TableModel(5, seed=1, end=30.0)  # </s> has all the mass: one step decides
    (hypothesis,) = decode(BeamSearch(width=3), model, "softmax", [1], [50])
    assert (hypothesis.tokens, hypothesis.finished) == ([], True)
    assert model.rows_stepped == [1]


def test_a_sentence_that_is_done_leaves_the_batch() -> None:
    model = TableModel(5, seed=1, end=-30.0)
    decode(BeamSearch(width=3), model, "softmax", [1, 2, 3], [2, 5, 2])
    assert model.rows_stepped == [3, 9, 3, 3, 3]


def test_without_normalisation_a_short_hypothesis_may_win_and_with_it_does_not() -> None:
    class Ladder(TableModel):
        """Empty: -3. Otherwise six words of -0.51 each, then </s>: -3.6 in all, -0.51 a token."""

        def vector(self, sentence: int, prefix: tuple[int, ...]) -> torch.Tensor:
            end = {0: 0.05, 6: 0.6}.get(len(prefix), 1e-6)
            word = 1.0 if len(prefix) == 6 else 0.6
            rest = 1.0 - end - 0.6 if len(prefix) != 6 else 0.4
            return torch.tensor([1e-9, 1e-9, 1e-9, end, word if len(prefix) != 6 else 1e-9, rest]).log()

    def best(power: float) -> list[int]:
        model = Ladder(6, seed=0)
        return decode(BeamSearch(8, power), model, "softmax", [1], [12])[0].tokens

    assert best(0.0) == []
    assert best(1.0) == [4] * 6


def test_a_finished_hypothesis_that_was_pushed_out_can_still_win() -> None:
    script = {  # log σ of ids 3 (</s>), 4 and 5; all others are hopeless
        (): [-0.2, -0.1, -9.0],
        (4,): [-9.0, -0.01, -0.02],  # two better ones push the empty hypothesis out
        (4, 4): [-1.0, -9.0, -9.0],
        (4, 5): [-9.0, -9.0, -9.0],
    }

    class Scripted(TableModel):
        def vector(self, sentence: int, prefix: tuple[int, ...]) -> torch.Tensor:
            scores = torch.tensor([-20.0] * 3 + script.get(prefix, [-20.0] * 3))
            return scores - torch.log1p(-scores.exp())  # the logits of these log σ

    (hypothesis,) = decode(BeamSearch(width=2), Scripted(6, seed=0), "scones", [1], [9])
    assert hypothesis.tokens == []
    assert hypothesis.score == pytest.approx(-0.2, abs=1e-5)


def test_equal_candidates_come_by_hypothesis_then_id() -> None:
    model = TableModel(5, seed=0, spread=0.0)  # every token is as likely as any other
    (beam,) = decode(BeamSearch(width=3), model, "softmax", [1], [3])
    (greedy,) = decode(GreedySearch(), model, "softmax", [1], [3])
    assert beam.tokens == greedy.tokens == [0, 0, 0]


@given(
    rows=st.lists(
        st.lists(st.sampled_from([-math.inf, -3.0, -2.0, -1.0, 0.0]), min_size=12, max_size=12),
        min_size=1,
        max_size=4,
    ),
    width=st.integers(1, 12),
)
def test_top_candidates_against_a_stable_sort(rows: list[list[float]], width: int) -> None:
    ranks = torch.tensor(rows)
    values, indices = top_candidates(ranks, width)
    for row, some, at in zip(rows, values.tolist(), indices.tolist(), strict=True):
        expected = sorted(range(12), key=lambda i: (-row[i], i))[:width]
        assert some == [row[i] for i in expected]
        finite = sum(v > -math.inf for v in some)  # which empty candidates fill the rest is of no concern
        assert at[:finite] == expected[:finite]
        assert len(set(at)) == width


@given(seed=st.integers(0, 10_000), size=st.integers(11_000, 14_000), count=st.integers(1, 5))
def test_top_candidates_of_many_against_a_stable_sort(seed: int, size: int, count: int) -> None:
    # few distinct values, most of them far below: many ties, within blocks and across them
    draw = torch.Generator().manual_seed(seed)
    ranks = -torch.empty(3, size).geometric_(0.002, generator=draw).log().round()
    expected = ranks.sort(dim=1, descending=True, stable=True)
    values, indices = top_candidates(ranks, count)
    assert torch.equal(values, expected.values[:, :count])
    assert torch.equal(indices, expected.indices[:, :count])


# ---------------------------------------------------------------- greedy search


NUMBERS, LIMITS = [11, 12, 13, 14, 15, 16], [9, 1, 4, 9, 2, 9]
SELECTIONS = [[3, 5], [0, 1, 2, 3, 4, 5, 6], [3], [1, 2, 3], [3, 6], [0, 3, 4]]


def greedy(model: TableModel, objective: str, selected: bool, with_scores: bool = True) -> list[Hypothesis]:
    batch = batch_of(model, objective, NUMBERS, LIMITS, SELECTIONS if selected else None)
    return GreedySearch()(replace(batch, with_scores=with_scores))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("selected", [False, True], ids=["full", "selected"])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_is_the_arg_max_at_every_step(objective: str, selected: bool, seed: int) -> None:
    model = TableModel(7, seed)
    found = greedy(model, objective, selected)
    for n, hypothesis in enumerate(found):
        slow = Slow(model, OBJECTIVES[objective], NUMBERS[n], SELECTIONS[n] if selected else range(7))
        tokens = slow.greedy(LIMITS[n])
        assert with_end(hypothesis) == tokens
        score = sum(slow.log_scores(tokens[:t])[w] for t, w in enumerate(tokens))
        assert hypothesis.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("selected", [False, True], ids=["full", "selected"])
def test_without_scores_the_hypotheses_are_the_same(selected: bool) -> None:
    model = TableModel(7, seed=5)
    scored, bare = (greedy(model, "entmax", selected, with_scores) for with_scores in (True, False))
    assert [(h.tokens, h.finished) for h in bare] == [(h.tokens, h.finished) for h in scored]
    assert all(math.isnan(h.score) for h in bare)


def test_finished_rows_leave_the_computation() -> None:
    model = TableModel(7, seed=0, end=-50.0)  # nobody finishes: the limits decide
    found = greedy(model, "softmax", selected=False)
    assert model.rows_stepped == [6, 6, 4, 4, 3, 3, 3, 3, 3]  # together, a quarter or more at a time
    assert [len(h.tokens) for h in found] == LIMITS
    assert not any(h.finished for h in found)


@pytest.mark.parametrize(
    ("ratio", "subwords", "limit"), [(2.0, 0, 10), (2.0, 7, 24), (1.5, 3, 15), (0.1, 1, 11)]
)
def test_length_limit(ratio: float, subwords: int, limit: int) -> None:
    assert length_limit(ratio, subwords) == limit
