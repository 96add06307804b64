"""The recurrent model: attention and gate step by step, searches, padding, and what it cannot be built of."""

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from forced_scores import forced_scores
from torch import Tensor

from creamtea.errors import StepError
from creamtea.methods.architectures import RnnArchitecture
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import BOS, EOS, UNK
from creamtea_workers.models.model import ModelConfig, build_model
from creamtea_workers.models.rnn import Rnn, RnnMemory, moved_up
from creamtea_workers.objectives import build_objective
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.exact import ExactSearch, SearchBudget
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.translator import Translator, source_batch
from creamtea_workers.selection.tables import FullSelector

SMALL = {"kind": "rnn", "layers": 2, "width": 6, "embedding": 5, "language_embedding": 2, "dropout": 0.0}
# ids 4, 5, 6 are a language and two tags; letters begin at 7
SOURCES = [[4, 7, 8, 9, 5, 6], [4, 10], [4, 8, 8, 8, 8, 8, 6], []]
TARGETS = 9
KINDS = {
    "softmax": {"attention": "softmax"},
    "entmax": {},
    "gated": {"gated": True},
    "sparsemax": {"gated": True, "attention": "sparsemax", "layers": 1},
}


def config(**changes: Any) -> ModelConfig:
    parts = {"objective": {"kind": "entmax", "alpha": 1.5}, "nvs": None, "vocabulary_size": TARGETS}
    source = {"size": 11, "bracketed": 3}
    return ModelConfig.model_validate(
        {**parts, "architecture": {**SMALL, **changes}, "source_vocabulary": source}
    )


def rnn(**changes: Any) -> Rnn:
    torch.manual_seed(4)
    model = build_model(config(**changes))
    assert isinstance(model, Rnn)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0)  # so that attention is not nearly even
    return model.eval()


def encoded(model: Rnn, sources: list[list[int]] = SOURCES) -> Any:
    return model.encode(source_batch(sources, torch.device("cpu")))


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
            weights = [
                w[f"{name}.{part}_l{layer}{end}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
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
            weights = [
                w[f"decoder.{layer}.{part}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
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


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
@torch.inference_mode()
def test_step_by_step(changes: dict[str, Any]) -> None:
    model = rnn(**changes)
    target_in = [BOS, 5, 8, 4]
    memory = encoded(model)
    hidden = model.decode(memory, torch.tensor([target_in] * len(SOURCES)))
    size = config(**changes).architecture
    assert isinstance(size, RnnArchitecture)
    for row, source in zip(hidden, SOURCES, strict=True):
        wanted = plain_model(model, size, source, target_in)
        np.testing.assert_allclose(row.numpy(), wanted, atol=2e-5)


# ---------------------------------------------------------------- incremental decoding


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
@torch.inference_mode()
def test_steps_are_teacher_forcing_whatever_the_rows(changes: dict[str, Any]) -> None:
    model = rnn(**changes)
    memory = encoded(model)
    state = model.start(memory, 4)
    model.step(torch.tensor([BOS] * 4), state)
    state.reorder(torch.tensor([2, 2, 0]))
    model.step(torch.tensor([4, 5, 6]), state)
    state.reorder(torch.tensor([1, 0, 2]))
    hidden = model.step(torch.tensor([7, 8, 4]), state)
    for row, (sentence, prefix) in enumerate([(2, [5, 7]), (2, [4, 8]), (0, [6, 4])]):
        forced = model.decode(memory.select(torch.tensor([sentence])), torch.tensor([[BOS, *prefix]]))
        torch.testing.assert_close(hidden[row], forced[0, -1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
@torch.inference_mode()
def test_nodes_in_any_order_are_teacher_forcing(changes: dict[str, Any]) -> None:
    model, draw = rnn(**changes), random.Random(1)
    memory = encoded(model)
    tree = model.start_tree(memory, 5)
    known: dict[int, tuple[int, list[int]]] = {n: (n, []) for n in range(len(SOURCES))}
    for _ in range(20):
        ready = [node for node, (_, prefix) in known.items() if len(prefix) < 5]
        parents = draw.choices(ready, k=draw.randint(2, 6))
        tokens = [draw.randrange(4, TARGETS) if known[parent][1] else BOS for parent in parents]
        hidden, nodes = model.step_tree(torch.tensor(tokens), torch.tensor(parents), tree)
        for row, node, parent, token in zip(hidden, nodes, parents, tokens, strict=True):
            sentence, prefix = known[parent]
            known[node] = (sentence, [*prefix, token])
            forced = model.decode(memory.select(torch.tensor([sentence])), torch.tensor([[*prefix, token]]))
            torch.testing.assert_close(row, forced[0, -1], atol=1e-5, rtol=1e-5)
        gone = draw.sample(sorted(set(known) - set(range(len(SOURCES)))), k=len(known) // 5)
        tree.free(gone)
        known = {node: entry for node, entry in known.items() if node not in gone}
    full = next(node for node, (_, prefix) in known.items() if len(prefix) == 5)
    with pytest.raises(ValueError, match="no room"):
        model.step_tree(torch.tensor([BOS]), torch.tensor([full]), tree)


def translator(model: Any, search: Any) -> Translator:
    return Translator(model, build_objective(config().objective), FullSelector(), search)


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_searches_agree_and_score_as_the_scorer(changes: dict[str, Any]) -> None:
    model = rnn(**changes)
    best = [translation.hypothesis for translation in translator(model, GreedySearch()).translate(SOURCES)]
    beam = [translation.hypothesis for translation in translator(model, BeamSearch(4)).translate(SOURCES)]
    exact = ExactSearch(SearchBudget(300), beam=4)
    proved = [translation.hypothesis for translation in translator(model, exact).translate(SOURCES)]
    for found in (best, beam, proved):
        scores = forced_scores(translator(model, GreedySearch()), SOURCES, found)
        assert [hypothesis.score for hypothesis in found] == pytest.approx(scores, abs=1e-4)
    for at_best, by_beam in zip(proved, beam, strict=True):
        assert not by_beam.finished or at_best.score >= by_beam.score - 1e-6


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_the_kept_attention_is_what_the_attentions_weigh_by(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = rnn(**changes)
    attentions: list[Any] = list(model.attentions)
    seen: list[Tensor] = []
    for attention in attentions:
        plain = attention.weights
        monkeypatch.setattr(
            attention, "weights", lambda scores, plain=plain: (seen.append(plain(scores)), seen[-1])[1]
        )
    with torch.inference_mode():
        memory = model.encode(source_batch(SOURCES, torch.device("cpu")))
        state = model.start(memory, 4)
        state.keeps_attention = True
        for token in (BOS, 5, 6):
            seen.clear()
            model.step(torch.full((len(SOURCES),), token), state)
            assert len(seen) == 2 * len(attentions)  # those of the step, and those that are kept
            torch.testing.assert_close(state.attention, torch.cat(seen[: len(attentions)], dim=1))
            assert state.attention.shape == memory.mask.shape
            assert not state.attention[~memory.mask].any()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_batch_mates_change_nothing(changes: dict[str, Any], precision: Any) -> None:
    model = prepare(rnn(**changes), precision)
    system = translator(model, BeamSearch(3))
    together = system.translate(SOURCES)
    alone = [system.translate([source])[0] for source in SOURCES]
    if precision == "fp32":
        assert [t.hypothesis.tokens for t in together] == [t.hypothesis.tokens for t in alone]
    assert all(math.isfinite(t.hypothesis.score) for t in together)


# ---------------------------------------------------------------- the parts


def test_padding_gets_no_weight_and_no_gradient() -> None:
    model = rnn().train()
    memory = encoded(model)
    memory.hidden.retain_grad()
    model.decode(memory, torch.tensor([[BOS, 5]] * len(SOURCES))).sum().backward()
    assert memory.hidden.grad[~memory.mask].abs().sum() == 0
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters() if weight.grad is not None)


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_more_padding_changes_nothing(changes: dict[str, Any]) -> None:
    """A GPU's recordings pad, so that there are fewer shapes."""
    model = rnn(**changes)
    target_in = torch.tensor([[BOS, 5, 6]] * len(SOURCES))
    memory = encoded(model)
    padded = memory.padded(5)
    assert padded.first % 5 == 0
    assert padded.mask.shape[1] % 5 == 0
    assert padded.mask.sum(1).tolist() == memory.mask.sum(1).tolist()
    torch.testing.assert_close(model.decode(padded, target_in), model.decode(memory, target_in))


def test_all_weights_of_the_decoder_are_recorded() -> None:
    model = rnn(gated=True)
    memory = encoded(model)
    hidden = RnnMemory(memory.hidden.detach(), memory.mask, memory.first)
    model.unrolled(hidden, torch.randn(len(SOURCES), 3, 5)).sum().backward()
    used = [weight for weight in model.parameters() if weight.grad is not None]
    assert {id(weight) for weight in used} == {id(weight) for weight in model.decoder_weights()}


def test_lemma_and_tags_are_taken_apart() -> None:
    model = rnn(gated=True)
    lemma, tags = model.parts(source_batch(SOURCES, torch.device("cpu")))
    shown = lemma.tolist()
    assert shown == [[4, 7, 8, 9, 3, 0, 0], [4, 10, 3, 0, 0, 0, 0], [4, 8, 8, 8, 8, 8, 3], [3, *[0] * 6]]
    assert tags.tolist() == [[5, 6, 3], [3, 0, 0], [6, 3, 0], [3, 0, 0]]


def test_unknown_letters_are_of_the_lemma_and_unknown_tags_of_the_tags() -> None:
    lemma, tags = rnn(gated=True).parts(source_batch([[4, 7, UNK, 5, UNK, 6]], torch.device("cpu")))
    assert (lemma.tolist(), tags.tolist()) == ([[4, 7, UNK, 3]], [[5, UNK, 6, 3]])


def test_moved_up_keeps_the_order() -> None:
    ids = torch.tensor([[7, 8, 9, 3], [7, 3, 0, 0]])
    kept: Tensor = torch.tensor([[False, True, False, True], [True, True, False, False]])
    assert moved_up(ids, kept).tolist() == [[8, 3], [7, 3]]


def test_a_gate_needs_symbols_of_tags() -> None:
    parts = {"objective": {"kind": "softmax"}, "nvs": None, "vocabulary_size": TARGETS}
    joint = ModelConfig.model_validate({**parts, "architecture": {**SMALL, "gated": True}})
    with pytest.raises(StepError, match="subwords of kind characters"):
        build_model(joint)


def test_a_joint_vocabulary_and_a_head() -> None:
    parts = {"objective": {"kind": "softmax"}, "nvs": {}, "vocabulary_size": 12}
    model = build_model(ModelConfig.model_validate({**parts, "architecture": SMALL})).eval()
    memory = model.encode(source_batch(SOURCES, torch.device("cpu")))
    assert model.nvs_logits(memory).shape == (4, 12)


def test_dropout_only_while_training() -> None:
    model = rnn(dropout=0.5)
    target_in = torch.tensor([[BOS, 5]] * len(SOURCES))
    first = model.decode(encoded(model), target_in)
    assert torch.equal(first, model.decode(encoded(model), target_in))
    model.train()
    assert not torch.equal(first, model.decode(encoded(model), target_in))
