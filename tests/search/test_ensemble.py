"""Ensembles against enumeration with the mean of the members' probabilities, and as systems of a study."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import step_files
import torch
from forced_scores import score_hypotheses
from step_context import Context
from toy_models import OBJECTIVES, TableModel

from creamtea.steps.systems import DECODE
from creamtea_workers.models.ensemble import Ensemble, EnsembleObjective
from creamtea_workers.models.interface import BOS, EOS
from creamtea_workers.models.model import ModelConfig, build_model
from creamtea_workers.search.base import SearchInput, SearchMethod
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.exact import ExactSearch, SearchBudget
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.output import output_layer
from creamtea_workers.search.translator import TrainedModel, source_batch

VOCABULARY, LIMIT, SENTENCES = 6, 4, [5, 4, 3]


def members() -> list[TableModel]:
    return [TableModel(VOCABULARY, seed, spread=1.5, end=-0.5) for seed in (1, 2, 3)]


def batch(objective: str) -> SearchInput:
    ensemble = Ensemble(members(), OBJECTIVES[objective])
    memory = ensemble.encode(torch.tensor([[sentence, EOS] for sentence in SENTENCES]))
    limits = [LIMIT] * len(SENTENCES)
    return SearchInput(ensemble, EnsembleObjective(), memory, output_layer(ensemble, None), limits)


def mean_scores(objective: str, sentence: int, prefix: tuple[int, ...]) -> list[float]:
    """log 1/k Σ p_k of every token."""
    scores = [OBJECTIVES[objective].log_scores(own.logits(sentence, prefix)).tolist() for own in members()]
    means = [sum(map(math.exp, column)) / len(column) for column in zip(*scores, strict=True)]
    return [math.log(mean) if mean > 0 else -math.inf for mean in means]


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


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_greedy_search_takes_the_best_token_of_the_mean(objective: str) -> None:
    for sentence, hypothesis in zip(SENTENCES, GreedySearch()(batch(objective)), strict=True):
        tokens: tuple[int, ...] = ()
        while len(tokens) < LIMIT and EOS not in tokens:
            scores = mean_scores(objective, sentence, tokens)
            tokens += (scores.index(max(scores)),)
        assert (*hypothesis.tokens, *[EOS] * hypothesis.finished) == tokens


@pytest.mark.parametrize("selection", [[EOS], [2, EOS, 5]], ids=["an empty source", "a selection"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_few_ids_are_scored_among_themselves(objective: str, selection: list[int]) -> None:
    ensemble = Ensemble(members(), OBJECTIVES[objective])
    allowed = torch.tensor(sorted(selection))
    memory = ensemble.encode(torch.tensor([[sentence, EOS] for sentence in SENTENCES]))
    output = output_layer(ensemble, [allowed] * len(SENTENCES))
    found = GreedySearch()(
        SearchInput(ensemble, EnsembleObjective(), memory, output, [LIMIT] * len(SENTENCES))
    )
    for sentence, hypothesis in zip(SENTENCES, found, strict=True):
        tokens, score = (), 0.0
        while len(tokens) < LIMIT and EOS not in tokens:
            own = [OBJECTIVES[objective].log_scores(m.logits(sentence, tokens)[allowed]) for m in members()]
            best = torch.stack(own).exp().mean(dim=0).max(dim=0)
            tokens += (int(allowed[best.indices]),)
            score += math.log(best.values)
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
    parts = {
        "objective": {"kind": "softmax"},
        "nvs": None,
        "vocabulary_size": 9,
        "architecture": architecture,
    }
    models = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        models.append(build_model(ModelConfig.model_validate(parts)).eval())
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
    subwords = step_files.subwords_folder(tmp_path)
    size = step_files.vocabulary_size(subwords)
    folders = [step_files.model_folder(tmp_path, size, f"train{seed}", seed) for seed in (1, 2)]
    segments = [{"source": text, "reference": "x"} for text in [*step_files.TEXT[:3], ""]]
    inputs = {"test_set": [step_files.test_set_folder(tmp_path, segments)], "subwords": [subwords]}
    params = {
        "selection": {"kind": "full"},
        "search": {"kind": "beam", "width": 2},
        "precision": "fp32",
        "batch_size": 2,
    }
    texts = []
    for number, models in enumerate((folders, folders[:1], [folders[0], folders[0]])):
        context = Context(DECODE, params, {**inputs, "train": models}, tmp_path / f"out{number}")
        context.run()
        texts.append(step_files.read_rows(context.output / "hypotheses.jsonl"))
    both, alone, twice = texts
    assert [row["text"] for row in twice] == [row["text"] for row in alone]  # a model with itself
    assert [row["score"] for row in twice] == pytest.approx([row["score"] for row in alone], abs=1e-4)
    assert [row["score"] for row in both] != pytest.approx([row["score"] for row in alone], abs=1e-4)
    loaded = TrainedModel.of_step(Context(DECODE, params, {"train": folders}))
    assert isinstance(loaded.model, Ensemble)
