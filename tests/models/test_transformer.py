"""Models of Transformer layers: attention, norms, dropout, SSRUs, sizes, files. What all models promise to
search is in test_interface.py."""

import math
from pathlib import Path
from typing import Any

import pytest
import step_files
import torch
from architectures import ARCHITECTURES, LAYERS, MARIAN, OTHERS, SOURCE
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from creamtea.errors import StepError
from creamtea.methods.architectures import Layered, SsruArchitecture, TransformerArchitecture
from creamtea_workers.models.interface import BOS, EOS, PAD, AttentiveState, output_logits
from creamtea_workers.models.layers import CrossAttention, Dropout, PositionTable
from creamtea_workers.models.model import ModelConfig, build_model, load_model, save_model
from creamtea_workers.models.state import RecurrentState
from creamtea_workers.models.transformer import Recurrence, Ssru, Transformer
from creamtea_workers.objectives import build_objective

VOCABULARY = 40
SIZES = {**LAYERS, "dropout": 0.1}
SIZE = TransformerArchitecture.model_validate(SIZES)
ALPHAS = {"softmax": 1.0, "entmax": 1.5, "sparsemax": 2.0}


def alpha_entmax(scores: Tensor, alpha: float) -> Tensor:
    """p = [(α - 1) z - τ]₊^(1 / (α - 1)) over the last dimension, τ by bisection; softmax for α = 1."""
    if alpha == 1:
        return scores.softmax(-1)
    z = (alpha - 1) * scores
    low, high = z.amax(-1, keepdim=True) - 1, z.amax(-1, keepdim=True)
    for _ in range(60):
        middle = (low + high) / 2
        too_much = (z - middle).clamp(min=0).pow(1 / (alpha - 1)).sum(-1, keepdim=True) > 1
        low, high = torch.where(too_much, middle, low), torch.where(too_much, high, middle)
    return (z - low).clamp(min=0).pow(1 / (alpha - 1))


LAYERED = {name: params for name, params in ARCHITECTURES.items() if params.get("kind") != "rnn"}


@pytest.fixture(params=LAYERED.values(), ids=LAYERED)
def model(request: pytest.FixtureRequest) -> Transformer:
    return step_files.random_model(VOCABULARY, architecture=request.param)


def sources(*lengths: int) -> Tensor:
    """Random rows of these lengths (EOS included), padded."""
    rows = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in zip(rows, lengths, strict=True):
        row[: length - 1] = torch.randint(4, VOCABULARY, (length - 1,))
        row[length - 1] = EOS
    return rows


def test_the_kept_attention_is_the_last_layers(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = sources(3, 7, 5), prefixes(3, 6)
    seen: list[tuple[Tensor, ...]] = []
    cross = model.decoder_layers()[-1].cross
    plain = cross.weigh
    monkeypatch.setattr(cross, "weigh", lambda *parts: (seen.append(parts), plain(*parts))[1])
    with torch.inference_mode():
        memory = model.encode(source)
        model.decode(memory, target)
        ((query, key, _, _),) = seen
        scores = torch.einsum("bhte,bhse->bhts", query.double(), key.double()) / query.shape[3] ** 0.5
        scores[~memory.mask[:, None, None, :].expand_as(scores)] = -math.inf
        expected = alpha_entmax(scores, ALPHAS[model.size.attention]).mean(1)  # (B, T, S)
        state = model.start(memory, 6)
        assert isinstance(state, AttentiveState)
        state.keeps_attention = True
        for place in range(6):
            model.step(target[:, place], state)
            torch.testing.assert_close(state.attention.double(), expected[:, place], atol=1e-5, rtol=1e-4)


def prefixes(rows: int, length: int) -> Tensor:
    ids = torch.randint(4, VOCABULARY, (rows, length))
    ids[:, 0] = BOS
    return ids


@torch.no_grad()
def test_the_beams_of_one_sentence_share_its_keys_and_values(
    model: Transformer, request: pytest.FixtureRequest
) -> None:
    """Bit for bit what rows with copies of their own compute, with one thread: two share a sum out by its
    layout."""
    threads = torch.get_num_threads()  # another test may have left two
    request.addfinalizer(lambda: torch.set_num_threads(threads))
    torch.set_num_threads(1)
    memory = model.encode(sources(7))
    shared = model.start(memory, 4)
    copies = model.start(memory.select(torch.zeros(3, dtype=torch.long)), 4)
    shared.reorder(torch.zeros(3, dtype=torch.long))
    for tokens in torch.randint(4, VOCABULARY, (4, 3)):
        assert torch.equal(model.step(tokens, shared), model.step(tokens, copies))
    assert shared.cross.shape[2] == 1
    assert copies.cross.shape[2] == 3


@torch.no_grad()
def test_a_full_cache_refuses_another_step() -> None:
    model = Transformer(VOCABULARY, SIZE).eval()
    state = model.start(model.encode(sources(4)), 2)
    for _ in range(2):
        model.step(torch.tensor([BOS]), state)
    with pytest.raises(ValueError, match="max_length 2"):
        model.step(torch.tensor([BOS]), state)


@pytest.mark.parametrize(
    ("rate", "dropped", "rough"),
    [(0.1, 26 / 256, 3e-3), (0.999, 255 / 256, 0.2)],  # of nearly everything one in 256 is kept
)
def test_dropout_keeps_the_share_and_the_mean(rate: float, dropped: float, rough: float) -> None:
    torch.manual_seed(1)
    dropout, x = Dropout(rate), torch.ones(1001, 333)
    y = dropout(x)
    assert y.unique().tolist() == pytest.approx([0.0, 1 / (1 - dropped)])
    assert (y == 0).float().mean().item() == pytest.approx(dropped, abs=2e-3)
    assert y.mean().item() == pytest.approx(1.0, abs=rough)
    assert torch.equal(dropout.eval()(x), x)


@pytest.mark.parametrize("kind", [TransformerArchitecture, SsruArchitecture])
@torch.no_grad()
def test_attention_dropout_falls_on_the_weights_in_training_alone(kind: type[Layered]) -> None:
    """With one key per query the only weight is 1, and is kept and doubled or dropped."""
    sizes = SIZES | {"dropout": 0.0}
    plain, dropping = (
        Transformer(VOCABULARY, kind.model_validate(sizes | {"attention_dropout": share})).eval()
        for share in (0.0, 0.5)
    )
    dropping.load_state_dict(plain.state_dict())
    source, target = sources(7, 5), prefixes(2, 6)
    expected = plain.decode(plain.encode(source), target)
    assert torch.equal(dropping.decode(dropping.encode(source), target), expected)
    dropping.train()
    first, second = (dropping.decode(dropping.encode(source), target) for _ in range(2))
    assert not torch.equal(first, second)
    attention = dropping.decoder_layers()[0].cross
    value = torch.ones(2, 4, 1, 4)
    attended = attention.weigh(torch.randn(2, 4, 300, 4), torch.randn(2, 4, 1, 4), value, None)
    assert set(attended.unique().tolist()) == {0.0, 2.0}
    assert attended.mean().item() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("kind", ALPHAS)
@pytest.mark.parametrize("masked", ["nothing", "padding", "future", "added"])
@torch.no_grad()
def test_attention_is_that_of_its_formula(kind: str, masked: str) -> None:
    torch.manual_seed(3)
    attention = CrossAttention(16, 4, weights=kind).eval()
    query, key, value = (3 * torch.randn(2, 4, 6, 4) for _ in range(3))
    allowed = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    if masked == "future":
        allowed = allowed.tril()
    elif masked != "nothing":
        allowed[1, :, :, 4:] = False
    mask: Tensor | None = allowed if masked == "padding" else None
    if masked == "added":
        mask = torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf)
    found = attention.weigh(query, key, value, mask, causal=masked == "future")
    scores = torch.einsum("bhte,bhse->bhts", query, key).double() / 2
    weights = alpha_entmax(scores.masked_fill(~allowed, -math.inf), ALPHAS[kind])
    expected = torch.einsum("bhts,bhse->bthe", weights, value.double()).flatten(2)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
    assert kind == "softmax" or (weights[allowed.expand_as(weights)] == 0).any()


def test_positions_beyond_the_table_continue_it() -> None:
    table = PositionTable(8)
    late = table(250, 20)
    assert torch.equal(late[:6], PositionTable(8)(250, 6))
    rate = 10000 ** (-torch.arange(0, 8, 2) / 8)
    torch.testing.assert_close(late[10, 0::2], (260 * rate).sin(), atol=1e-4, rtol=0)
    torch.testing.assert_close(late[10, 1::2], (260 * rate).cos(), atol=1e-4, rtol=0)


def test_heads_that_do_not_divide_the_width() -> None:
    with pytest.raises(StepError, match=r"architecture\.width 16 is not a multiple of architecture\.heads 3"):
        build_model(step_files.model_config(VOCABULARY, architecture={"width": 16, "heads": 3}))


def test_a_model_without_a_head_has_no_nvs_logits() -> None:
    model = Transformer(VOCABULARY, SIZE).eval()
    with pytest.raises(ValueError, match="without an NVS head"):
        model.nvs_logits(model.encode(sources(3)))


@pytest.mark.parametrize(
    ("objective", "deviation"),
    [
        ({"kind": "softmax"}, 1.0),
        ({"kind": "scones"}, 1.0),
        ({"kind": "entmax"}, 2000**-0.5),
        ({"kind": "entmax", "alpha": 1.2}, 2000**-0.2),
        ({"kind": "entmax", "alpha": 2}, 0.01),
        ({"kind": "entmax", "initial_scale": 0.5}, 0.5),
    ],
    ids=str,
)
def test_logits_start_as_large_as_the_objective_can_use(objective: dict[str, Any], deviation: float) -> None:
    torch.manual_seed(1)
    config = step_files.model_config(2000, architecture={"width": 64}, nvs=None, objective=objective)
    model = build_model(config).eval()
    memory = model.encode(torch.randint(4, 2000, (3, 7)))
    logits = output_logits(model, model.decode(memory, torch.randint(4, 2000, (3, 5))))
    assert logits.std().item() == pytest.approx(deviation, rel=0.1)
    # the words that share the probability, as many as softmax' of a deviation of 1: V exp(-1/2)
    if objective in ({"kind": "softmax"}, {"kind": "entmax"}, {"kind": "entmax", "alpha": 1.2}):
        log_p = build_objective(config.objective).log_scores(logits.flatten(0, 1).detach())
        entropy = -(log_p.exp() * log_p.clamp(min=-100)).sum(1)
        assert entropy.exp().mean().item() == pytest.approx(2000 * math.exp(-0.5), rel=0.15)


def test_settings_that_are_left_out_change_no_key() -> None:
    assert SIZE.model_dump(mode="json", exclude_defaults=False).keys() == {*SIZES, "kind"}
    words = TransformerArchitecture.model_validate({**SIZES, **MARIAN}).describe()
    assert words == "2+2, width 16, post-norm, SiLU, MarianMT's positions, embeddings not scaled"


def test_post_norm_is_that_of_torch() -> None:
    """Vaswani et al. (2017): x ← norm(x + sublayer(x)), here of torch's own layer."""
    torch.manual_seed(2)
    size = TransformerArchitecture.model_validate({**SIZES, "encoder_layers": 1, "norm": "post"})
    model = Transformer(VOCABULARY, size).eval()
    (layer,) = model.encoder
    theirs = torch.nn.TransformerEncoderLayer(16, 4, 24, batch_first=True).eval()
    state = {
        "self_attn.in_proj": layer.attention.qkv, "self_attn.out_proj": layer.attention.out,
        "linear1": layer.feed.inner, "linear2": layer.feed.out,
        "norm1": layer.attention_norm, "norm2": layer.feed_norm,
    }  # fmt: skip
    separator = {"self_attn.in_proj": "_"}
    theirs.load_state_dict(
        {
            f"{name}{separator.get(name, '.')}{kind}": getattr(own, kind)
            for name, own in state.items()
            for kind in ("weight", "bias")
        }
    )
    source = sources(7)
    with torch.no_grad():
        expected = theirs(model.embed(source))
        torch.testing.assert_close(model.encode(source).hidden, expected, atol=1e-5, rtol=1e-5)


def test_a_text_beyond_the_learned_positions_is_an_error() -> None:
    model = step_files.random_model(VOCABULARY, architecture={**SIZES, **OTHERS})
    with pytest.raises(StepError, match="has learned 64 positions: raise architecture"):
        model.encode(sources(65))


@pytest.mark.parametrize(("tied", "matrices"), [("all", 1), ("target", 2), ("none", 3)])
def test_embeddings_are_tied_as_asked(tied: str, matrices: int) -> None:
    model = step_files.random_model(VOCABULARY, architecture={**SIZES, "tied_embeddings": tied})
    assert sum(name.endswith("embedding.weight") for name, _ in model.named_parameters()) == matrices
    assert (model.output_weight is model.embedding.weight) == (tied != "none")


# ---------------------------------------------------------------- presets


PRESET_VOCABULARY = 32000


def by_hand(encoder: int, decoder: int, width: int, inner: int, ssru: bool) -> int:
    """One embedding for source, target and output, with an output bias; a norm before each sublayer and
    after each stack."""
    norm = 2 * width
    attention = 4 * (width * width + width)  # queries, keys, values, output
    feed = width * inner + inner + inner * width + width
    own = 2 * width * width + width if ssru else attention  # forget gate with bias, candidate without
    stacks = encoder * (attention + feed + 2 * norm) + decoder * (own + attention + feed + 3 * norm)
    return PRESET_VOCABULARY * width + PRESET_VOCABULARY + stacks + 2 * norm


@pytest.mark.parametrize(
    ("architecture", "sizes", "nvs"),
    [
        ({"preset": "small"}, (3, 3, 128, 512, False), False),
        ({"preset": "base"}, (6, 6, 512, 2048, False), False),
        ({"preset": "base", "kind": "ssru"}, (6, 6, 512, 2048, True), False),
        ({"preset": "big"}, (6, 6, 1024, 4096, False), False),
        ({"preset": "deep"}, (20, 2, 1024, 4096, True), False),
        ({"preset": "deep"}, (20, 2, 1024, 4096, True), True),  # the head is a second output layer
    ],
    ids=str,
)
def test_parameters_of_presets(
    architecture: dict[str, Any], sizes: tuple[int, int, int, int, bool], nvs: bool
) -> None:
    """Without memory for them."""
    parts = {"architecture": architecture, "nvs": {"positive_weight": 100000.0} if nvs else None}
    with torch.device("meta"):
        model = build_model(step_files.model_config(PRESET_VOCABULARY, **parts))
    found = sum(parameter.numel() for parameter in model.parameters())
    assert found == by_hand(*sizes) + nvs * (PRESET_VOCABULARY * sizes[2] + PRESET_VOCABULARY)


# ---------------------------------------------------------------- a vocabulary for the source


def config(**changes: Any) -> ModelConfig:
    return step_files.model_config(7, nvs=None, **changes)


def test_the_source_has_an_embedding_of_its_own() -> None:
    own, joint = build_model(config(source_vocabulary=SOURCE)), build_model(config())
    added = {name: value.shape for name, value in own.state_dict().items() if name not in joint.state_dict()}
    assert added == {"source_embedding.weight": (11, 16)}
    memory = own.encode(torch.tensor([[10, 9, 3]]))  # ids that the target does not have
    assert own.decode(memory, torch.tensor([[2, 6]])).shape == (1, 2, 16)


def test_source_and_target_are_not_tied() -> None:
    model = build_model(config(source_vocabulary=SOURCE)).eval()
    source, target = torch.tensor([[5, 3]]), torch.tensor([[2, 5]])
    memory = model.encode(source)
    before = model.decode(memory, target)
    with torch.no_grad():
        model.embedding.weight.mul_(2.0)
    assert torch.equal(model.encode(source).hidden, memory.hidden)
    assert not torch.equal(model.decode(memory, target), before)


def test_a_model_of_a_joint_vocabulary_is_written_as_before() -> None:
    assert "source_vocabulary" not in config().model_dump(mode="json")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"source_vocabulary": SOURCE},
        {"objective": {"kind": "scones", "alpha": 0.7}, "nvs": {"positive_weight": 10.0}},
    ],
    ids=str,
)
def test_a_saved_model_comes_back_ready_for_inference(tmp_path: Path, changes: dict[str, Any]) -> None:
    wanted = step_files.model_config(7, **{"nvs": None, **changes})
    model = build_model(wanted)
    save_model(tmp_path, model, wanted)
    loaded, objective, found = load_model(tmp_path)
    assert (found, objective) == (wanted, build_objective(wanted.objective))
    assert not loaded.training
    assert all(torch.equal(loaded.state_dict()[name], value) for name, value in model.state_dict().items())


# ---------------------------------------------------------------- the SSRU


CELLS = 6


def written_out(forget: Tensor, candidate: Tensor) -> Tensor:
    """c[t] = f[t] ⊙ c[t-1] + (1 - f[t]) ⊙ W x[t]; all (B, T, D)."""
    cell, cells = torch.zeros_like(candidate[:, 0]), []
    for t in range(candidate.shape[1]):
        cell = forget[:, t] * cell + (1 - forget[:, t]) * candidate[:, t]
        cells.append(cell)
    return torch.stack(cells, 1)


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(0, 1000))
def test_cells_and_gradients_are_those_of_the_loop(batch: int, length: int, seed: int) -> None:
    torch.manual_seed(seed)
    forget = torch.rand(batch, length, CELLS, dtype=torch.float64, requires_grad=True)
    candidate = torch.randn(batch, length, CELLS, dtype=torch.float64, requires_grad=True)
    arriving = torch.randn_like(candidate)
    cells, expected = Recurrence.apply(forget, candidate), written_out(forget, candidate)
    torch.testing.assert_close(cells, expected, atol=1e-12, rtol=1e-12)
    ours = torch.autograd.grad(cells, (forget, candidate), arriving)
    theirs = torch.autograd.grad(expected, (forget, candidate), arriving)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-12)


def test_the_unit_is_the_papers_equations() -> None:
    torch.manual_seed(1)
    unit = Ssru(CELLS).double()
    x = torch.randn(2, 5, CELLS, dtype=torch.float64)
    gate = 1 / (1 + torch.exp(-(x @ unit.forget.weight.T + unit.forget.bias)))
    expected = written_out(gate, x @ unit.candidate.weight.T).clamp(min=0)
    torch.testing.assert_close(unit.over_prefix(x), expected, atol=1e-12, rtol=1e-12)


def test_gates_that_are_open_or_shut_for_long_stay_exact() -> None:
    """A product of gates over a thousand positions, which a scan in logarithms would have to add up."""
    shut = torch.ones(1, 1000, 1)
    shut[0, 0] = 0.0
    cells = Recurrence.apply(shut, torch.full((1, 1000, 1), 3.0))
    assert torch.equal(cells, torch.full_like(cells, 3.0))
    passing = Recurrence.apply(1 - shut, torch.arange(1000.0)[None, :, None])
    assert torch.equal(passing[0, 1:, 0], torch.arange(1.0, 1000.0))


@pytest.mark.parametrize("autocast", [True, False], ids=["bf16 autocast", "bf16 weights"])
def test_cells_stay_in_fp32(autocast: bool) -> None:
    torch.manual_seed(1)
    dtype = torch.float32 if autocast else torch.bfloat16
    unit, x = Ssru(CELLS).to(dtype), torch.randn(2, 5, CELLS, dtype=dtype)
    state = RecurrentState(torch.zeros(1, 2, 2, 2, 3, CELLS // 2, dtype=dtype), None)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast), torch.no_grad():
        together = unit.over_prefix(x)
        alone = [unit.step(x[:, t : t + 1], state, 0) for t in range(5)]
    assert state.cell(0).dtype == torch.float32
    assert together.dtype == dtype
    torch.testing.assert_close(torch.cat(alone, 1), together, atol=0.01, rtol=0.01)  # bf16 products


def test_every_parameter_learns_under_autocast() -> None:
    torch.manual_seed(1)
    unit = Ssru(CELLS)
    x = torch.randn(2, 5, CELLS, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        unit.over_prefix(x).sum().backward()
    for leaf in (x, *unit.parameters()):
        assert leaf.grad.abs().sum() > 0
