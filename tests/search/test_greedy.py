"""Greedy search against an arg max loop in plain Python."""

import math
from dataclasses import replace

import pytest
from toy_models import OBJECTIVES, Slow, TableModel, batch_of

from creamtea_workers.models.interface import EOS
from creamtea_workers.search.base import Hypothesis, length_limit
from creamtea_workers.search.greedy import GreedySearch

NUMBERS, LIMITS = [11, 12, 13, 14, 15, 16], [9, 1, 4, 9, 2, 9]
VOCABULARIES = [[3, 5], [0, 1, 2, 3, 4, 5, 6], [3], [1, 2, 3], [3, 6], [0, 3, 4]]


def decode(model: TableModel, objective: str, selected: bool, with_scores: bool = True) -> list[Hypothesis]:
    batch = batch_of(model, objective, NUMBERS, LIMITS, VOCABULARIES if selected else None)
    return GreedySearch()(replace(batch, with_scores=with_scores))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("selected", [False, True], ids=["full", "selected"])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_is_the_arg_max_at_every_step(objective: str, selected: bool, seed: int) -> None:
    model = TableModel(7, seed)
    found = decode(model, objective, selected)
    for n, hypothesis in enumerate(found):
        slow = Slow(model, OBJECTIVES[objective], NUMBERS[n], VOCABULARIES[n] if selected else range(7))
        tokens = slow.greedy(LIMITS[n])
        assert (*hypothesis.tokens, *[EOS] * hypothesis.finished) == tokens
        score = sum(slow.log_scores(tokens[:t])[w] for t, w in enumerate(tokens))
        assert hypothesis.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("selected", [False, True], ids=["full", "selected"])
def test_without_scores_the_hypotheses_are_the_same(selected: bool) -> None:
    model = TableModel(7, seed=5)
    scored, bare = (decode(model, "entmax", selected, with_scores) for with_scores in (True, False))
    assert [(h.tokens, h.finished) for h in bare] == [(h.tokens, h.finished) for h in scored]
    assert all(math.isnan(h.score) for h in bare)


def test_finished_rows_leave_the_computation() -> None:
    model = TableModel(7, seed=0, end=-50.0)  # nobody finishes: the limits decide
    found = decode(model, "softmax", selected=False)
    assert model.rows_stepped == [6, 6, 4, 4, 3, 3, 3, 3, 3]  # together, a quarter or more at a time
    assert [len(h.tokens) for h in found] == LIMITS
    assert not any(h.finished for h in found)


@pytest.mark.parametrize(
    ("ratio", "subwords", "limit"), [(2.0, 0, 10), (2.0, 7, 24), (1.5, 3, 15), (0.1, 1, 11)]
)
def test_length_limit(ratio: float, subwords: int, limit: int) -> None:
    assert length_limit(ratio, subwords) == limit
