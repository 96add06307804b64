"""Exact search against enumeration of every hypothesis."""

import itertools
import math
from collections.abc import Sequence

import pytest
import step_files
import torch
from forced_scores import forced_scores
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_models import OBJECTIVES, Slow, TableModel, batch_of

from creamtea_workers.models.interface import EOS
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.exact import ExactHypothesis, ExactSearch, SearchBudget, outscores
from creamtea_workers.search.translator import Translator
from creamtea_workers.selection.tables import FullSelector

FULL = list(range(5))
VOCABULARIES = [[0, 1, 2, 3, 4], [3, 4], [1, 3], [0, 2, 3, 4], [3]]  # one a sentence; EOS is 3
NUMBERS = [7, 8, 9, 10, 11]
ENOUGH = SearchBudget(expansions=10_000)


def search(
    model: TableModel,
    objective: str,
    limits: Sequence[int],
    vocabularies: Sequence[Sequence[int]] | None = None,
    numbers: Sequence[int] = NUMBERS,
    budget: SearchBudget = ENOUGH,
    depth: int | None = None,
    beam: int = 1,
) -> list[ExactHypothesis]:
    method = ExactSearch(budget, depth=depth, beam=beam)
    found = method(batch_of(model, objective, numbers, limits, vocabularies))
    assert all(isinstance(hypothesis, ExactHypothesis) for hypothesis in found)
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("vocabularies", [None, VOCABULARIES], ids=["full", "selected"])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_all_hypotheses(objective: str, vocabularies: list[list[int]] | None, seed: int) -> None:
    model, limits = TableModel(5, seed, end=-1.0), [4, 3, 4, 4, 2]
    found = search(model, objective, limits, vocabularies)
    for number, vocabulary, limit, one in zip(
        NUMBERS, vocabularies or [FULL] * 5, limits, found, strict=True
    ):
        score, tokens = max(Slow(model, OBJECTIVES[objective], number, vocabulary).enumerate(limit))
        assert one.outcome == "proved"
        if score == -math.inf:  # entmax gives no finished hypothesis any mass
            assert not one.finished
            continue
        assert (*one.tokens, EOS) == tokens
        assert one.finished
        assert one.score == pytest.approx(score, abs=1e-5)


@given(seed=st.integers(0, 10_000), objective=st.sampled_from(sorted(OBJECTIVES)), depth=st.integers(0, 3))
@settings(max_examples=30)
def test_only_hypotheses_up_to_the_depth_are_sought(seed: int, objective: str, depth: int) -> None:
    model = TableModel(5, seed, end=-2.0)
    (found,) = search(model, objective, [4], numbers=[1], depth=depth)
    score, tokens = max(Slow(model, OBJECTIVES[objective], 1, FULL).enumerate(depth + 1))
    if score > found.beam_score + 1e-5:
        assert (*found.tokens, EOS) == tokens
    else:  # the beam search's, however long
        assert found.score == pytest.approx(found.beam_score) if found.finished else score == -math.inf


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_sentence_does_not_depend_on_its_batch(objective: str) -> None:
    model, limits = TableModel(5, seed=5, end=-1.0), [6, 3, 6, 5, 2]
    budget = SearchBudget(expansions=40)  # a limit is reached for some
    together = search(model, objective, limits, VOCABULARIES, budget=budget)
    for n, one in enumerate(together):
        (alone,) = search(model, objective, [limits[n]], [VOCABULARIES[n]], [NUMBERS[n]], budget)
        assert alone == one


class Trap(TableModel):
    """A beam of 1 goes by 4 and finds no </s>; after 1 it is likelier than after 0. At most two words."""

    def vector(self, sentence: int, prefix: tuple[int, ...]) -> torch.Tensor:
        if prefix == ():
            return torch.tensor([0.2, 0.19, 1e-9, 1e-9, 0.6]).log()
        end = {(0,): 0.5, (1,): 0.9}.get(prefix, 1e-9)
        return torch.tensor([0.2, 1e-9, 1e-9, end, 0.8 - end]).clamp(min=1e-9).log()


def test_outcomes_of_limits() -> None:
    def found(budget: SearchBudget) -> ExactHypothesis:
        return search(Trap(5, 0), "softmax", [3], numbers=[1], budget=budget)[0]

    whole = found(ENOUGH)
    assert (whole.outcome, whole.tokens, whole.beam_score) == ("proved", [1], -math.inf)
    assert found(SearchBudget(whole.expansions)) == whole
    stepwise = found(SearchBudget(100, nodes=1))
    assert (stepwise.outcome, stepwise.tokens) == ("proved", [1])
    assert stepwise.expansions < 10  # of 21 prefixes
    limited = found(SearchBudget(2))
    assert (limited.outcome, limited.expansions) == ("improved", 2)
    assert found(SearchBudget(100, seconds=1e-9, nodes=1)).expansions == 1


def test_a_limit_without_anything_better() -> None:
    model = TableModel(5, seed=2, end=-2.0)
    beam, whole = (
        search(model, "scones", [4], numbers=[1], beam=50, budget=e)[0] for e in (SearchBudget(1), ENOUGH)
    )
    assert (beam.outcome, whole.outcome) == ("limit", "proved")
    assert beam.tokens == whole.tokens  # a beam that wide has found it


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_number_of_nodes_changes_no_proof(nodes: int) -> None:
    model = TableModel(5, seed=8, end=-1.0)
    many = search(model, "scones", [5] * 5)
    few = search(model, "scones", [5] * 5, budget=SearchBudget(10_000, nodes=nodes))
    assert [(one.tokens, one.outcome) for one in many] == [(one.tokens, one.outcome) for one in few]
    assert all(rows <= 5 * nodes for rows in model.rows_stepped[-10:])


def test_nodes_are_freed() -> None:
    model = TableModel(5, seed=8, spread=1.0, end=-6.0)
    model.output_bias[:3] += 3.0
    (found,) = search(model, "scones", [7], numbers=[1], budget=SearchBudget(1000, nodes=2))
    assert found.expansions > 500
    assert model.tree.most < 40  # a stack, not a tree
    assert len(model.tree.prefixes) <= model.tree.most


def test_a_better_score_is_more_than_rounding() -> None:
    assert not outscores(Hypothesis([5] * 9, -1.0, finished=True), -1.0009)
    assert outscores(Hypothesis([5] * 9, -1.0, finished=True), -1.0011)
    assert outscores(Hypothesis([], -50.0, finished=True), -math.inf)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", ["transformer", "ssru"])
def test_a_trained_models_shape(kind: str, objective: str) -> None:
    architecture = {"kind": kind, **step_files.TINY, "decoder_layers": 2}
    model = step_files.random_model(9, 4, architecture=architecture, nvs=None, objective={"kind": objective})
    with torch.no_grad():
        model.decoder_norm.weight.fill_(3.0)
        model.output_bias[EOS] += 6.0
    translator = Translator(
        model, OBJECTIVES[objective], FullSelector(), ExactSearch(SearchBudget(20_000), depth=2)
    )
    sources = [[5, 6, 7], [8], [4, 4, 5, 6]]
    words = [w for w in range(9) if w != EOS]
    short = [list(p) for length in range(3) for p in itertools.product(words, repeat=length)]
    for source, found in zip(sources, translator.translate(sources), strict=True):
        exact = found.hypothesis
        assert isinstance(exact, ExactHypothesis)
        assert exact.outcome == "proved"
        hypotheses = [Hypothesis(tokens, 0.0, finished=True) for tokens in short]
        best = max(forced_scores(translator, [source] * len(short), hypotheses))
        assert exact.score == pytest.approx(max(best, exact.beam_score), abs=1e-4)
        assert exact.score == pytest.approx(forced_scores(translator, [source], [exact])[0], abs=1e-4)
