"""Ensembles against enumeration with the mean of the members' probabilities, and as systems of a study."""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import step_files
import torch
from forced_scores import score_hypotheses
from toy_models import OBJECTIVES, TableModel

from creamtea_workers.models.ensemble import Ensemble, EnsembleObjective
from creamtea_workers.models.interface import BOS, EOS
from creamtea_workers.search.base import SearchInput, SearchMethod
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.exact import ExactSearch, SearchBudget
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.output import output_layer
from creamtea_workers.search.translator import TrainedModel, source_batch

VOCABULARY, LIMIT, SENTENCES = 6, 4, [5, 4, 3]


@functools.cache
def members() -> list[TableModel]:
    return [TableModel(VOCABULARY, seed, spread=1.5, end=-0.5) for seed in (1, 2, 3)]


def batch(objective: str, selection: list[int] | None = None) -> SearchInput:
    """`selection`: the ids of each sentence."""
    ensemble = Ensemble(members(), OBJECTIVES[objective])
    memory = ensemble.encode(torch.tensor([[sentence, EOS] for sentence in SENTENCES]))
    output = output_layer(ensemble, selection and [torch.tensor(selection)] * len(SENTENCES))
    return SearchInput(ensemble, EnsembleObjective(), memory, output, [LIMIT] * len(SENTENCES))


@functools.cache
def mean_scores(
    objective: str, sentence: int, prefix: tuple[int, ...], ids: Sequence[int] = range(VOCABULARY)
) -> dict[int, float]:
    """log 1/k Σ p_k of every token that is allowed."""
    logits = [own.logits(sentence, prefix)[list(ids)] for own in members()]
    scores = [OBJECTIVES[objective].log_scores(own).tolist() for own in logits]
    means = [sum(map(math.exp, column)) / len(column) for column in zip(*scores, strict=True)]
    return {id_: math.log(mean) if mean > 0 else -math.inf for id_, mean in zip(ids, means, strict=True)}


def every_hypothesis(objective: str, sentence: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    words = [word for word in range(VOCABULARY) if word != EOS]
    for length in range(LIMIT):
        for body in itertools.product(words, repeat=length):
            tokens = (*body, EOS)
            yield sum(mean_scores(objective, sentence, tokens[:t])[w] for t, w in enumerate(tokens)), body


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_exact_search_finds_the_best_of_all(objective: str) -> None:
    found = ExactSearch(SearchBudget(10**6), beam=2)(batch(objective))
    for sentence, hypothesis in zip(SENTENCES, found, strict=True):
        score, tokens = max(every_hypothesis(objective, sentence))
        assert (tuple(hypothesis.tokens), hypothesis.outcome) == (tokens, "proved")  # type: ignore[attr-defined]
        assert hypothesis.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize(
    "selection", [None, [EOS], [2, EOS, 5]], ids=["full", "an empty source", "a selection"]
)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_greedy_search_takes_the_best_token_of_the_mean(objective: str, selection: list[int] | None) -> None:
    """Few ids are scored among themselves."""
    found = GreedySearch()(batch(objective, selection))
    for sentence, hypothesis in zip(SENTENCES, found, strict=True):
        tokens: tuple[int, ...] = ()
        score = 0.0
        while len(tokens) < LIMIT and EOS not in tokens:
            means = mean_scores(objective, sentence, tokens, tuple(selection or range(VOCABULARY)))
            best = max(means, key=lambda id_: means[id_])
            tokens, score = (*tokens, best), score + means[best]
        assert (*hypothesis.tokens, *[EOS] * hypothesis.finished) == tokens
        assert hypothesis.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(3), ExactSearch(SearchBudget(50))])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_score_is_the_scorers(objective: str, search: SearchMethod) -> None:
    given = batch(objective)
    found = search(given)
    scores = score_hypotheses(given.model, given.objective, given.memory, given.output, found)
    assert [hypothesis.score for hypothesis in found] == pytest.approx(scores, abs=1e-5)


def test_what_no_member_gives_a_probability_is_impossible() -> None:
    ensemble = Ensemble(members()[:2], OBJECTIVES["entmax"])
    one = torch.full((1, VOCABULARY), -50.0)
    one[0, 4] = 50.0
    both = torch.cat([one, one], dim=1)
    assert ensemble.log_mean(both).tolist() == [[-math.inf] * 4 + [0.0, -math.inf]]
    other = torch.full((1, VOCABULARY), -50.0)
    other[0, 5] = 50.0
    mixed = ensemble.log_mean(torch.cat([one, other], dim=1))
    assert mixed[0, 4:].tolist() == pytest.approx([math.log(0.5)] * 2)


@pytest.mark.parametrize(
    "architecture",
    [step_files.TINY, {"kind": "rnn", "layers": 1, "width": 8, "embedding": 4}],
    ids=["transformer", "rnn"],
)
@torch.inference_mode()
def test_trained_models_step_by_step(architecture: dict[str, Any]) -> None:
    models = [step_files.random_model(9, seed, nvs=None, architecture=architecture) for seed in (1, 2)]
    ensemble = Ensemble(models, OBJECTIVES["softmax"])
    memory = ensemble.encode(source_batch([[5, 6], [7]], torch.device("cpu")))
    target_in = torch.tensor([[BOS, 5, 6], [BOS, 7, 8]])
    forced = ensemble.log_mean(ensemble.decode(memory, target_in))
    means = torch.stack(
        [
            torch.softmax(model.decode(own, target_in) @ model.output_weight.T + model.output_bias, dim=-1)
            for model, own in zip(models, memory.members, strict=True)
        ]
    ).mean(0)
    torch.testing.assert_close(forced, means.log(), atol=1e-5, rtol=1e-5)
    tree, state = ensemble.start_tree(memory, 3), ensemble.start(memory, 3)
    nodes = [0, 1]
    for column, wanted in zip(target_in.T, forced.unbind(1), strict=True):
        hidden, nodes = ensemble.step_tree(column, torch.tensor(nodes), tree)
        torch.testing.assert_close(ensemble.log_mean(hidden), wanted, atol=1e-5, rtol=1e-5)
        stepped = ensemble.log_mean(ensemble.step(column, state))
        torch.testing.assert_close(stepped, wanted, atol=1e-5, rtol=1e-5)
    selected = memory.select(torch.tensor([1]))
    own = ensemble.log_mean(ensemble.decode(selected, target_in[1:]))
    torch.testing.assert_close(own, forced[1:], atol=1e-5, rtol=1e-5)


def test_the_decode_step_of_several_models(tmp_path: Path) -> None:
    folders = step_files.input_folders(tmp_path, [*step_files.TEXT[:3], ""])
    one = folders["train"][0]
    other = step_files.model_folder(tmp_path, step_files.subwords_of(folders).size, "other", seed=2)
    both, alone, twice = (
        step_files.decoded({**folders, "train": models}, search={"kind": "beam", "width": 2})
        for models in ([one, other], [one], [one, one])
    )
    assert [row["text"] for row in twice] == [row["text"] for row in alone]  # a model with itself
    assert [row["score"] for row in twice] == pytest.approx([row["score"] for row in alone], abs=1e-4)
    assert [row["score"] for row in both] != pytest.approx([row["score"] for row in alone], abs=1e-4)
    loaded = TrainedModel.of_step(step_files.decoding({"train": [one, other]}))
    assert isinstance(loaded.model, Ensemble)
