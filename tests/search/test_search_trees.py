"""Nodes of a search tree against teacher forcing and against ordinary incremental decoding."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from creamtea_workers.models.build import ModelConfig, build_model
from creamtea_workers.models.interface import BOS, Memory, TranslationModel
from creamtea_workers.search.translator import source_batch

KINDS = ["transformer", "ssru"]
SOURCES = [[5, 6, 7], [8, 9, 10, 11, 12], [4]]
VOCABULARY = 20


def random_model(kind: str) -> TranslationModel:
    torch.manual_seed(3)
    size = {"encoder_layers": 1, "decoder_layers": 2, "width": 16, "heads": 2, "feed_forward": 32}
    parts = {"architecture": {"kind": kind, **size}, "nvs": None, "objective": {"kind": "softmax"}}
    return build_model(ModelConfig.model_validate({**parts, "vocabulary_size": VOCABULARY})).eval()


def forced(model: TranslationModel, memory: Memory, sentence: int, prefix: list[int]) -> Tensor:
    """The last hidden vector (D,) of one prefix of one sentence."""
    return model.decode(memory.select(torch.tensor([sentence])), torch.tensor([prefix]))[0, -1]


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_nodes_in_any_order_are_teacher_forcing(kind: str) -> None:
    model, draw = random_model(kind), random.Random(1)
    memory = model.encode(source_batch(SOURCES, torch.device("cpu")))
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
        tokens = [draw.randrange(VOCABULARY) if known[parent][1] else BOS for parent in parents]
        hidden, nodes = model.step_tree(torch.tensor(tokens), torch.tensor(parents), tree)
        for row, node, parent, token in zip(hidden, nodes, parents, tokens, strict=True):
            sentence, prefix, _ = known[parent]
            known[node] = (sentence, [*prefix, token], parent)
            wanted = forced(model, memory, sentence, [*prefix, token])
            torch.testing.assert_close(row, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_a_path_is_incremental_decoding(kind: str) -> None:
    model = random_model(kind)
    memory = model.encode(source_batch(SOURCES, torch.device("cpu")))
    tree, state = model.start_tree(memory, 5), model.start(memory, 5)
    tokens, parents = torch.tensor([BOS] * 3), torch.tensor([0, 1, 2])
    for depth in range(5):
        hidden, nodes = model.step_tree(tokens, parents, tree)
        torch.testing.assert_close(hidden, model.step(tokens, state), atol=1e-5, rtol=1e-5)
        tokens, parents = torch.tensor([4 + depth, 9, 10 - depth]), torch.tensor(nodes)
    with pytest.raises(ValueError, match="no room"):
        model.step_tree(tokens, parents, tree)
