"""The recurrent model: attention and gate step by step, padding, and what it cannot be built of."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES, SOURCES, VOCABULARY, encoded, random_model
from torch import Tensor

from creamtea.errors import StepError
from creamtea.methods.architectures import RnnArchitecture
from creamtea.methods.objectives import Entmax
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import BOS, EOS, UNK
from creamtea_workers.models.rnn import Rnn, RnnMemory, moved_up
from creamtea_workers.objectives import build_objective
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.translator import Translator, source_batch
from creamtea_workers.selection.tables import FullSelector

KINDS = {name: params for name, params in ARCHITECTURES.items() if params.get("kind") == "rnn"}
GATED = KINDS["rnn, gated"]
every_kind = pytest.mark.parametrize("architecture", KINDS.values(), ids=KINDS)


# ---------------------------------------------------------------- by hand


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(x: Any, h: Any, c: Any, weights: list[Any]) -> tuple[Any, Any]:
    w, u, b, d = weights
    i, f, g, o = np.split(w @ x + b + u @ h + d, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def entmax15(z: Any) -> Any:
    """By bisection of τ: Σ [z/2 - τ]²₊ = 1."""
    z = z / 2
    low, high = z.max() - 1, z.max()
    for _ in range(100):
        tau = (low + high) / 2
        low, high = (tau, high) if (np.maximum(z - tau, 0) ** 2).sum() > 1 else (low, tau)
    return np.maximum(z - tau, 0) ** 2


def sparsemax(z: Any) -> Any:
    low, high = z.max() - 1, z.max()
    for _ in range(100):
        tau = (low + high) / 2
        low, high = (tau, high) if np.maximum(z - tau, 0).sum() > 1 else (low, tau)
    return np.maximum(z - tau, 0)


def softmax(z: Any) -> Any:
    return np.exp(z - z.max()) / np.exp(z - z.max()).sum()


LSTM = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
PLAIN = {"softmax": softmax, "entmax": entmax15, "sparsemax": sparsemax}


def plain_encoder(w: dict[str, Any], name: str, rows: Any, layers: int, width: int) -> Any:
    """One word: rows (S, E) → (S, 2D), a position at a time."""
    for layer in range(layers):
        both = []
        for end, order in (("", range(len(rows))), ("_reverse", reversed(range(len(rows))))):
            weights = [w[f"{name}.{part}_l{layer}{end}"] for part in LSTM]
            h = c = np.zeros(width)
            outputs: dict[int, Any] = {}
            for place in order:
                h, c = lstm(rows[place], h, c, weights)
                outputs[place] = h
            both.append(np.stack([outputs[place] for place in range(len(rows))]))
        rows = np.concatenate(both, axis=1)
    return rows


def plain_model(model: Rnn, size: RnnArchitecture, source: list[int], target_in: list[int]) -> Any:
    """The module's docstring in NumPy, one word: (T, D)."""
    w = {name: value.double().numpy() for name, value in model.state_dict().items()}
    tags = [id_ for id_ in source[1:] if id_ < 7]
    parts = (
        [source] if not size.gated else [[id_ for n, id_ in enumerate(source) if n == 0 or id_ >= 7], tags]
    )
    language = w["language_embedding.weight"][[*source, EOS][0]]
    memories = []
    for n, part in enumerate(parts):
        rows = [np.concatenate([w["source_embedding.weight"][id_], language]) for id_ in [*part, EOS]]
        memories.append(plain_encoder(w, f"encoders.{n}", rows, size.layers, size.width))
    ends = np.concatenate([memories[0][-1, : size.width], memories[0][0, size.width :]])
    start = np.tanh(w["bridge.weight"] @ ends + w["bridge.bias"])
    states = [(start, start)] * size.layers
    feed, found = np.zeros(size.width), []
    for id_ in target_in:
        x = np.concatenate([w["embedding.weight"][id_], feed])
        for layer in range(size.layers):
            weights = [w[f"decoder.{layer}.{part}"] for part in LSTM]
            states[layer] = lstm(x, *states[layer], weights)
            x = states[layer][0]
        hidden, contexts = [], []
        for n, memory in enumerate(memories):
            scores = np.array([(w[f"attentions.{n}.keys.weight"] @ value) @ x for value in memory])
            contexts.append(PLAIN[size.attention](scores) @ memory)
            hidden.append(np.tanh(w[f"attentions.{n}.out.weight"] @ np.concatenate([x, contexts[-1]])))
        feed = hidden[0]
        if size.gated:
            gate = PLAIN[size.attention](w["gate.weight"] @ np.concatenate([x, *contexts]) + w["gate.bias"])
            feed = gate[0] * hidden[0] + gate[1] * hidden[1]
        found.append(feed)
    return np.stack(found)


@every_kind
@torch.inference_mode()
def test_step_by_step(architecture: dict[str, Any]) -> None:
    model, target_in = random_model(architecture), [BOS, 5, 8, 4]
    hidden = model.decode(encoded(model), torch.tensor([target_in] * len(SOURCES)))
    size = RnnArchitecture.model_validate(architecture)
    for row, source in zip(hidden, SOURCES, strict=True):
        wanted = plain_model(model, size, source, target_in)
        np.testing.assert_allclose(row.numpy(), wanted, atol=2e-5)


@every_kind
def test_the_kept_attention_is_what_the_attentions_weigh_by(
    architecture: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model(architecture)
    attentions: list[Any] = list(model.attentions)
    seen: list[Tensor] = []
    for attention in attentions:
        plain = attention.weights
        monkeypatch.setattr(
            attention, "weights", lambda scores, plain=plain: (seen.append(plain(scores)), seen[-1])[1]
        )
    with torch.inference_mode():
        memory = encoded(model)
        state = model.start(memory, 4)
        state.keeps_attention = True
        for token in (BOS, 5, 6):
            seen.clear()
            model.step(torch.full((len(SOURCES),), token), state)
            assert len(seen) == 2 * len(attentions)  # those of the step, and those that are kept
            torch.testing.assert_close(state.attention, torch.cat(seen[: len(attentions)], dim=1))
            assert state.attention.shape == memory.mask.shape
            assert not state.attention[~memory.mask].any()


@pytest.mark.parametrize("precision", ["bf16", "int8"])
@every_kind
def test_it_decodes_in_less_precision(architecture: dict[str, Any], precision: Any) -> None:
    model = prepare(random_model(architecture), precision)
    objective = build_objective(Entmax(kind="entmax"))
    for translation in Translator(model, objective, FullSelector(), BeamSearch(3)).translate(SOURCES):
        assert math.isfinite(translation.hypothesis.score)


# ---------------------------------------------------------------- the parts


@every_kind
def test_more_padding_changes_nothing(architecture: dict[str, Any]) -> None:
    """A GPU's recordings pad, so that there are fewer shapes."""
    model = random_model(architecture)
    target_in = torch.tensor([[BOS, 5, 6]] * len(SOURCES))
    memory = encoded(model)
    padded = memory.padded(5)
    assert padded.first % 5 == 0
    assert padded.mask.shape[1] % 5 == 0
    assert padded.mask.sum(1).tolist() == memory.mask.sum(1).tolist()
    torch.testing.assert_close(model.decode(padded, target_in), model.decode(memory, target_in))


def test_all_weights_of_the_decoder_are_recorded() -> None:
    model = random_model(GATED)
    memory = encoded(model)
    hidden = RnnMemory(memory.hidden.detach(), memory.mask, memory.first)
    model.unrolled(hidden, torch.randn(len(SOURCES), 3, 5)).sum().backward()
    used = [weight for weight in model.parameters() if weight.grad is not None]
    assert {id(weight) for weight in used} == {id(weight) for weight in model.decoder_weights()}


def test_lemma_and_tags_are_taken_apart() -> None:
    model = random_model(GATED)
    lemma, tags = model.parts(source_batch(SOURCES, torch.device("cpu")))
    shown = lemma.tolist()
    assert shown == [[4, 7, 8, 9, 3, 0, 0], [4, 10, 3, 0, 0, 0, 0], [4, 8, 8, 8, 8, 8, 3], [3, *[0] * 6]]
    assert tags.tolist() == [[5, 6, 3], [3, 0, 0], [6, 3, 0], [3, 0, 0]]


def test_unknown_letters_are_of_the_lemma_and_unknown_tags_of_the_tags() -> None:
    lemma, tags = random_model(GATED).parts(source_batch([[4, 7, UNK, 5, UNK, 6]], torch.device("cpu")))
    assert (lemma.tolist(), tags.tolist()) == ([[4, 7, UNK, 3]], [[5, UNK, 6, 3]])


def test_moved_up_keeps_the_order() -> None:
    ids = torch.tensor([[7, 8, 9, 3], [7, 3, 0, 0]])
    kept: Tensor = torch.tensor([[False, True, False, True], [True, True, False, False]])
    assert moved_up(ids, kept).tolist() == [[8, 3], [7, 3]]


def test_a_gate_needs_symbols_of_tags() -> None:
    with pytest.raises(StepError, match="subwords of kind characters"):
        random_model(GATED, source_vocabulary=None)


def test_a_joint_vocabulary_and_a_head() -> None:
    model = random_model(KINDS["rnn"], source_vocabulary=None)
    assert model.nvs_logits(encoded(model)).shape == (4, VOCABULARY)


def test_dropout_only_while_training() -> None:
    model = random_model({**KINDS["rnn"], "dropout": 0.5})
    target_in = torch.tensor([[BOS, 5]] * len(SOURCES))
    first = model.decode(encoded(model), target_in)
    assert torch.equal(first, model.decode(encoded(model), target_in))
    model.train()
    assert not torch.equal(first, model.decode(encoded(model), target_in))
