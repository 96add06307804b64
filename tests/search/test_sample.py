"""Sampling: frequencies against probabilities, the same samples in every batch, the scorer's scores."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from forced_scores import score_hypotheses
from scipy import stats
from toy_models import OBJECTIVES, Slow, TableModel, batch_of, memory_of

from creamtea.errors import StepError
from creamtea.methods.searches import Sample
from creamtea_workers.models.interface import EOS
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.output import output_layer
from creamtea_workers.search.sample import Sampler, SampleSearch, draws

LIMIT = 3
DRAWS = 4000
LOWEST = float(Sample.model_json_schema()["properties"]["temperature"]["minimum"])


def draw(
    sampler: Sampler,
    model: TableModel,
    objective: str,
    numbers: list[int],
    limits: list[int],
    count: int,
    vocabularies: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    return sampler.draw(batch_of(model, objective, numbers, limits, vocabularies), count)


def token_probabilities(slow: Slow, prefix: tuple[int, ...], sampler: Sampler) -> dict[int, float]:
    scores = slow.log_scores(prefix)
    best = sorted(scores, key=lambda w: (-scores[w], w))[: sampler.top_k]
    kept = normalised({w: math.exp(scores[w] / sampler.temperature) for w in best})
    if sampler.top_p is not None:
        sizes = range(1, len(best) + 1)
        size = next((n for n in sizes if sum(kept[w] for w in best[:n]) >= sampler.top_p), len(best))
        kept = normalised({w: kept[w] for w in best[:size]})
    if sampler.epsilon is not None:
        kept = normalised({w: p for w, p in kept.items() if p > sampler.epsilon} or {best[0]: 1.0})
    return kept


def normalised(weights: dict[int, float]) -> dict[int, float]:
    return {w: weight / sum(weights.values()) for w, weight in weights.items()}


def probabilities(slow: Slow, sampler: Sampler) -> dict[tuple[int, ...], float]:
    """Of every sequence of at most `LIMIT` tokens, by enumeration."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(LIMIT):
        longer = {}
        for prefix, mass in found.items():
            if prefix[-1:] == (EOS,):
                longer[prefix] = mass
                continue
            for word, p in token_probabilities(slow, prefix, sampler).items():
                longer[*prefix, word] = mass * p
        found = longer
    return found


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"top_k": 2},
        {"temperature": 0.5},
        {"top_k": 3, "temperature": 2.0},
        {"top_p": 0.7},
        {"epsilon": 0.15},
        {"epsilon": 0.999},
        {"top_k": 4, "top_p": 0.8, "epsilon": 0.2, "temperature": 1.3},
    ],
    ids=str,
)
@pytest.mark.parametrize("vocabulary", [[0, 1, 2, 3, 4], [1, 3, 4]], ids=["full", "selected"])
def test_frequencies_are_the_probabilities(
    objective: str, settings: dict[str, Any], vocabulary: list[int]
) -> None:
    model = TableModel(5, seed=4, spread=1.0)
    # a second sentence with a larger selection: this one's is padded
    vocabularies = None if len(vocabulary) == 5 else [vocabulary, [0, 1, 2, 3]]
    sampler = Sampler(**settings, seed=11)
    samples = draw(sampler, model, objective, [7, 8], [LIMIT] * 2, DRAWS, vocabularies)[0]
    expected = probabilities(Slow(model, OBJECTIVES[objective], 7, vocabulary), sampler)
    assert sum(expected.values()) == pytest.approx(1.0)
    counted = Counter((*h.tokens, *[EOS] * h.finished) for h in samples)
    assert {tokens for tokens in counted if not expected.get(tokens)} == set()

    common = [tokens for tokens, p in expected.items() if p * DRAWS >= 5]
    observed = [counted[tokens] for tokens in common]
    wanted = [expected[tokens] * DRAWS for tokens in common]
    if (rare := DRAWS - sum(wanted)) > 1e-6:
        observed, wanted = [*observed, DRAWS - sum(observed)], [*wanted, rare]
    assert len(common) == 1 or stats.chisquare(observed, wanted).pvalue > 0.001


def test_frequencies_differ_from_other_probabilities() -> None:
    # the test above can fail: temperature 0.8 is told from 1 by as many draws
    model = TableModel(5, seed=4, spread=1.0)
    samples = draw(Sampler(temperature=0.8), model, "softmax", [7], [1], DRAWS)[0]
    expected = token_probabilities(Slow(model, OBJECTIVES["softmax"], 7, range(5)), (), Sampler())
    counted = Counter((h.tokens or [EOS])[0] for h in samples)
    observed = [counted[word] for word in expected]
    assert stats.chisquare(observed, [p * DRAWS for p in expected.values()]).pvalue < 0.001


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("vocabularies", [None, [[3, 5], [0, 1, 2, 3], [3], [1, 2, 3], [3, 6], [0, 3, 4]]])
def test_neither_batch_nor_order_nor_number_changes_a_sample(
    objective: str, vocabularies: list[list[int]] | None
) -> None:
    model = TableModel(7, seed=2, spread=1.0)
    numbers, limits = [21, 22, 23, 24, 25, 26], [9, 4, 7, 1, 9, 30]
    order = [4, 0, 5, 2, 1, 3]
    sampler = Sampler(top_p=0.99, epsilon=0.001)
    together = draw(sampler, model, objective, numbers, limits, 8, vocabularies)
    own = [[n] for n in range(len(numbers))]
    for members, count in [(order, 8), *((one, 5) for one in own)]:
        some = None if vocabularies is None else [vocabularies[n] for n in members]
        chosen = [numbers[n] for n in members], [limits[n] for n in members]
        for n, samples in zip(members, draw(sampler, model, objective, *chosen, count, some), strict=True):
            assert [(h.tokens, h.finished) for h in samples] == [
                (h.tokens, h.finished) for h in together[n][:count]
            ]
    lengths = {len(h.tokens) for samples in together for h in samples}
    assert vocabularies is not None or len(lengths) > 4  # rows left the computation at many times


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "sampler", [Sampler(), Sampler(top_k=2, temperature=1.7), Sampler(top_p=0.9)], ids=str
)
def test_the_score_is_the_scorers_whatever_the_temperature(objective: str, sampler: Sampler) -> None:
    model = TableModel(6, seed=3, end=-1.0)
    numbers = list(range(40, 60))
    found = [one for (one,) in draw(sampler, model, objective, numbers, [5] * 20, 1)]
    memory, output = memory_of(model, numbers), output_layer(model, None)
    scores = score_hypotheses(model, OBJECTIVES[objective], memory, output, found)
    assert [h.score for h in found] == pytest.approx(scores, abs=1e-5)
    assert {h.finished for h in found} == {True, False}
    assert all(EOS not in h.tokens and len(h.tokens) + h.finished <= 5 for h in found)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "sampler",
    [Sampler(top_k=1), Sampler(temperature=LOWEST), Sampler(top_p=1e-9), Sampler(epsilon=1 - 1e-9)],
    ids=["top-1", "frozen", "top-p", "epsilon"],
)
def test_the_best_token_alone_is_greedy_search(objective: str, sampler: Sampler) -> None:
    model = TableModel(6, seed=5)
    numbers, limits = list(range(20)), [9] * 20
    batch = batch_of(model, objective, numbers, limits)
    assert [h.tokens for h in SampleSearch(sampler)(batch)] == [h.tokens for h in GreedySearch()(batch)]


def test_more_than_the_vocabulary_is_no_restriction() -> None:
    model = TableModel(6, seed=5)
    every, most = (
        draw(Sampler(top_k=top_k), model, "softmax", [1, 2], [9, 9], 20, [[1, 3], [0, 2, 3, 5]])
        for top_k in (None, 100)
    )
    assert every == most


@pytest.mark.parametrize("sampler", [Sampler(top_k=2), Sampler(top_p=0.3)], ids=["top-k", "top-p"])
def test_of_equal_tokens_the_lowest_ids_are_kept(sampler: Sampler) -> None:
    model = TableModel(6, seed=0, spread=0.0)  # every token is as likely as any other
    (samples,) = draw(sampler, model, "softmax", [1], [1], 200)
    assert {(*h.tokens, *[EOS] * h.finished) for h in samples} == {(0,), (1,)}


def test_seed_and_source_decide_the_draws() -> None:
    sources = [[5], [6], [5, 6], [6, 5], [5, 0], []]
    found = [draws(seed, source, 3, 4) for seed in (1, 2) for source in sources]
    assert all(not torch.equal(a, b) for a, b in itertools.combinations(found, 2))
    assert torch.equal(found[2], draws(1, [5, 6], 3, 4))
    assert torch.equal(found[2], draws(1, [5, 6], 9, 4)[:3])
    assert all(float(one.min()) >= 0 and float(one.max()) < 1 for one in found)


def test_the_draws_are_those_of_every_machine() -> None:
    # written down once: another stream would change what studies have drawn
    pinned = [[1180811282, 4247541477], [3265398602, 4219596342]]
    assert (draws(1, [7, 8, 9], 2, 2) * 2**32).long().tolist() == pinned


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("cut", [{}, {"top_p": 0.5}, {"epsilon": 0.5}], ids=str)
@pytest.mark.parametrize("temperature, broken", [(1e-50, False), (1.0, True)])
def test_probabilities_that_are_not_finite_are_an_error_of_their_own(
    objective: str, temperature: float, broken: bool, cut: dict[str, Any]
) -> None:
    model = TableModel(7, seed=2)
    if broken:
        model.output_bias.fill_(math.nan)
    with pytest.raises(StepError, match=r"probabilities .* not finite"):
        SampleSearch(Sampler(temperature=temperature, **cut))(batch_of(model, objective, [1, 2], [4, 4]))
