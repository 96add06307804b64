"""What every architecture promises to search: steps and trees are teacher forcing, whatever the rows."""

import random
from typing import Any

import pytest
import torch
from architectures import ARCHITECTURES, SOURCES, VOCABULARY, encoded, random_model
from forced_scores import forced_scores
from torch import Tensor

from creamtea.methods.objectives import Entmax
from creamtea_workers.models.interface import BOS
from creamtea_workers.models.model import Model
from creamtea_workers.objectives import build_objective
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.exact import ExactSearch, SearchBudget
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.translator import Translator
from creamtea_workers.selection.tables import FullSelector


@pytest.fixture(scope="module", params=ARCHITECTURES.values(), ids=ARCHITECTURES)
def model(request: pytest.FixtureRequest) -> Model:
    return random_model(request.param)


def prefixes(rows: int, length: int) -> Tensor:
    ids = torch.randint(4, VOCABULARY, (rows, length))
    ids[:, 0] = BOS
    return ids


def assert_near(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_steps_are_teacher_forcing_at_every_position(model: Model) -> None:
    memory, target = encoded(model), prefixes(len(SOURCES), 40)  # caches grow twice
    expected, state = model.decode(memory, target), model.start(memory, 40)
    for position in range(40):
        assert_near(model.step(target[:, position], state), expected[:, position])
    assert not torch.allclose(expected[:, 1:], expected[:, :-1], atol=1e-3)


@torch.inference_mode()
@pytest.mark.parametrize("rows", [[0, 0, 1, 1, 2, 2, 3, 3], [2, 1], [1, 1, 1, 0]], ids=str)
def test_reordered_rows_continue_as_the_rows_they_copy(model: Model, rows: list[int]) -> None:
    memory, target = encoded(model), prefixes(len(SOURCES), 4)
    state, order = model.start(memory, 10), torch.tensor(rows)
    for position in range(4):
        model.step(target[:, position], state)
    state.reorder(order)
    copied = torch.cat((target[order], torch.randint(4, VOCABULARY, (len(rows), 3))), 1)
    expected = model.decode(memory.select(order), copied)
    for position in range(4, 7):
        assert_near(model.step(copied[:, position], state), expected[:, position])


@torch.inference_mode()
def test_beams_move_within_their_sentence(model: Model) -> None:
    memory = encoded(model, SOURCES[:2])
    state = model.start(memory, 10)
    state.reorder(torch.tensor([0, 0, 1, 1]))
    ids = torch.full((4, 1), BOS)
    for rows in ([1, 0, 3, 2], [0, 0, 3, 3], [1, 1, 2, 3]):
        model.step(ids[:, -1], state)
        order = torch.tensor(rows)
        state.reorder(order)
        ids = torch.cat((ids[order], torch.randint(4, VOCABULARY, (4, 1))), 1)
    expected = model.decode(memory.select(torch.tensor([0, 0, 1, 1])), ids)[:, -1]
    assert_near(model.step(ids[:, -1], state), expected)


@torch.inference_mode()
def test_nodes_of_a_tree_in_any_order_are_teacher_forcing(model: Model) -> None:
    draw, memory = random.Random(1), encoded(model)
    tree = model.start_tree(memory, 6)
    known: dict[int, tuple[int, list[int], int]] = {n: (n, [], -1) for n in range(len(SOURCES))}
    for _ in range(30):
        inner = {parent for _, _, parent in known.values()}
        leaves = sorted(node for node, (_, prefix, _) in known.items() if prefix and node not in inner)
        gone = draw.sample(leaves, k=len(leaves) // 3)
        tree.free(gone)
        known = {node: entry for node, entry in known.items() if node not in gone}
        ready = [node for node, (_, prefix, _) in known.items() if len(prefix) < 6]
        parents = draw.choices(ready, k=draw.randint(1, 5))  # a parent may be there twice
        tokens = [draw.randrange(4, VOCABULARY) if known[parent][1] else BOS for parent in parents]
        hidden, nodes = model.step_tree(torch.tensor(tokens), torch.tensor(parents), tree)
        for row, node, parent, token in zip(hidden, nodes, parents, tokens, strict=True):
            sentence, prefix, _ = known[parent]
            known[node] = (sentence, [*prefix, token], parent)
            own = memory.select(torch.tensor([sentence]))
            assert_near(row, model.decode(own, torch.tensor([[*prefix, token]]))[0, -1])
    full = next(node for node, (_, prefix, _) in known.items() if len(prefix) == 6)
    with pytest.raises(ValueError, match="no room"):
        model.step_tree(torch.tensor([4]), torch.tensor([full]), tree)


@torch.inference_mode()
def test_a_sentence_does_not_see_its_batch(model: Model) -> None:
    memory, target = encoded(model), prefixes(len(SOURCES), 5)
    together, votes = model.decode(memory, target), model.nvs_logits(memory)
    for row, source in enumerate(SOURCES):
        alone = encoded(model, [source])
        assert_near(model.decode(alone, target[row : row + 1])[0], together[row])
        assert_near(model.nvs_logits(alone)[0], votes[row])


def test_searches_agree_and_score_as_the_scorer(model: Model) -> None:
    objective = build_objective(Entmax(kind="entmax"))

    def hypotheses(search: Any, sources: list[list[int]] = SOURCES) -> list[Any]:
        system = Translator(model, objective, FullSelector(), search)
        return [translation.hypothesis for translation in system.translate(sources)]

    system = Translator(model, objective, FullSelector(), GreedySearch())
    beam, proved = hypotheses(BeamSearch(4)), hypotheses(ExactSearch(SearchBudget(100), beam=4))
    for found in (hypotheses(GreedySearch()), beam, proved):
        scores = forced_scores(system, SOURCES, found)
        assert [hypothesis.score for hypothesis in found] == pytest.approx(scores, abs=1e-4)
    for at_best, by_beam in zip(proved, beam, strict=True):
        assert not by_beam.finished or at_best.score >= by_beam.score - 1e-6
    alone = [one for source in SOURCES for one in hypotheses(BeamSearch(4), [source])]
    assert [one.tokens for one in alone] == [one.tokens for one in beam]


def test_every_parameter_learns_and_padding_has_no_gradient(model: Model) -> None:
    model.zero_grad()
    memory = encoded(model)
    memory.hidden.retain_grad()
    hidden = model.decode(memory, prefixes(len(SOURCES), 3))
    logits = hidden @ model.output_weight.T + model.output_bias
    (logits.square().mean() + model.nvs_logits(memory).square().mean()).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    assert not memory.hidden.grad[~memory.mask].any()
