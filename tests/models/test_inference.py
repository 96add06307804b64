"""Int8 layers against integer arithmetic written out, and prepared models against plain ones."""

import copy
import importlib
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import step_files
import torch
from forced_scores import forced_scores
from hypothesis import given
from hypothesis import strategies as st
from layer_errors import relative_errors
from torch import Tensor
from torch.nn import functional as F

from creamtea.errors import StepError
from creamtea.methods.objectives import Softmax
from creamtea_workers import models
from creamtea_workers.models import inference
from creamtea_workers.models.inference import (
    ROW_THREADS,
    Int8Linear,
    Int8Matrix,
    Int8Projection,
    PackedLinear,
    prepare,
)
from creamtea_workers.models.interface import BOS, EOS, output_logits
from creamtea_workers.models.model import Model
from creamtea_workers.objectives import build_objective
from creamtea_workers.search.base import SearchMethod
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.translator import Translator, source_batch
from creamtea_workers.selection import Selector
from creamtea_workers.selection.nvs import NvsSelector, nvs_logits
from creamtea_workers.selection.tables import FullSelector

V = 60
SIZES = {"encoder_layers": 2, "decoder_layers": 2, "width": 32, "heads": 4, "feed_forward": 64}


KINDS = {
    "transformer": {"kind": "transformer"},
    "entmax": {"kind": "transformer", "attention": "entmax"},
    "ssru": {"kind": "ssru"},
}


def plain_model(kind: str = "transformer") -> Model:
    model = step_files.random_model(V, 3, architecture={**SIZES, **KINDS[kind]})
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith("bias") and "norm" not in name:
                value.normal_(std=0.3)
    return model


def sentences(count: int = 6) -> list[list[int]]:
    draw = np.random.default_rng(4)
    return [draw.integers(4, V, size=1 + n % 5).tolist() for n in range(count)]


def by_hand(weight: Tensor, bias: Tensor, x: Tensor) -> np.ndarray:
    """Rounded weights and activations, their products summed as integers, everything else in float64."""
    w, v = weight.double().numpy(), x.double().numpy()
    per_row = np.maximum(np.abs(w).max(1), 1e-30) / inference.largest_weight()
    largest = np.maximum(np.abs(v).max(1), 1e-30)
    integers = np.rint(w / per_row[:, None]).astype(int) @ np.rint(127 * v / largest[:, None]).astype(int).T
    return integers.T * per_row * largest[:, None] / 127 + bias.double().numpy()


@given(st.integers(1, 6), st.integers(2, 40), st.integers(1, 40), st.integers(0, 1000), st.booleans())
def test_both_products_are_the_integer_ones(rows: int, ins: int, outs: int, seed: int, empty: bool) -> None:
    draw = np.random.default_rng(seed)
    # multiples of 1/64 up to 1, the largest 127/64: no quotient lies near a half, where rounding may differ
    weight, x = (draw.integers(-63, 64, size=(n, ins)) / 64 for n in (outs, rows))
    weight[:, 0], x[:, 0] = 127 / 64, 127 / 64
    if empty:
        x[0] = 0.0
    w, v, b = (torch.tensor(part, dtype=torch.float32) for part in (weight, x, draw.normal(size=outs)))
    expected = by_hand(w, b, v)
    matrix = Int8Matrix.of(w, b)
    np.testing.assert_allclose(Int8Linear(matrix)(v).numpy(), expected, atol=2e-5)
    np.testing.assert_allclose(matrix(v).numpy(), expected, atol=2e-5)


def test_some_rows_of_a_matrix_are_those_of_the_whole() -> None:
    torch.manual_seed(0)
    matrix = Int8Matrix.of(torch.randn(40, 24), torch.randn(40))
    x, ids = torch.randn(5, 24), torch.tensor([1, 7, 30])
    assert torch.equal(matrix.rows(ids)(x), matrix(x)[:, ids])
    torch.testing.assert_close(matrix(x), Int8Linear(matrix)(x), atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("size", [8, 100, 512])
def test_a_row_does_not_depend_on_the_rows_beside_it(size: int) -> None:
    torch.manual_seed(0)
    layer = Int8Linear.of(torch.randn(size, size), torch.randn(size))
    x = torch.randn(33, size) * torch.logspace(-3, 3, 33).unsqueeze(1)
    whole = layer(x)
    assert all(torch.equal(layer(x[n : n + 1]), whole[n : n + 1]) for n in range(33))
    assert torch.equal(layer(x.view(3, 11, size)), whole.view(3, 11, size))


def test_a_layer_errs_by_one_per_cent() -> None:
    apart, between = relative_errors(torch.randn)
    assert apart < (0.012 if inference.largest_weight() == 127 else 0.02)
    assert between < 1e-5


IN_A_PROCESS = """
import torch
from layer_errors import relative_errors
from creamtea_workers.models.inference import largest_weight

print(largest_weight(), *relative_errors(torch.randn), *relative_errors(torch.rand))
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="no x86 processor")
@pytest.mark.parametrize("kernels", ["FBGEMM_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA"])
def test_nothing_overflows_without_vnni(kernels: str) -> None:
    """With one of the products told to use AVX2 only, as on older processors. Random signs, and none, where
    sums are largest."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS],
        env=os.environ | {kernels: "AVX2", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    largest, signed, between, positive, also_between = map(float, done.stdout.split())
    assert largest == 64
    assert 0.01 < signed < 0.02
    assert positive < 0.02
    assert max(between, also_between) < 1e-5


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 26, 70])
def test_packed_weights_give_the_plain_product(rows: int) -> None:
    torch.manual_seed(0)
    weight, x = torch.randn(48, 32), torch.randn(rows, 1, 32)
    for bias in (torch.randn(48), None):
        torch.testing.assert_close(PackedLinear(weight, bias)(x), torch.nn.functional.linear(x, weight, bias))


def everything(model: Model) -> dict[str, Tensor]:
    """Each thing that a model computes, teacher-forced and step by step, with padding in the batch."""
    with torch.inference_mode():
        memory = model.encode(source_batch(sentences(), torch.device("cpu")))
        target = torch.tensor([[BOS, 9, 4, 20]] * 6)
        state, steps = model.start(memory, 4), []
        for token in target.unbind(1):
            steps.append(model.step(token, state))
        hidden = model.decode(memory, target)
        return {
            "memory": memory.hidden[memory.mask],
            "forced": output_logits(model, hidden),
            "stepped": output_logits(model, torch.stack(steps, 1)),
            "one row": output_logits(model, hidden[:1, 0]),
            "nvs": model.nvs_logits(memory),
        }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("min_packed", [0, 10**9], ids=["packed", "too small to pack"])
def test_a_prepared_fp32_model_differs_by_rounding(
    kind: str, min_packed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "MIN_PACKED", min_packed)
    expected = everything(plain_model(kind))
    for name, value in everything(prepare(plain_model(kind), "fp32")).items():
        torch.testing.assert_close(value, expected[name], atol=2e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_int8_is_near_fp32(kind: str) -> None:
    """Tolerances: 5 % of the logits' norm, one arg max in ten of a random model with near-equal words."""
    expected, found = everything(plain_model(kind)), everything(prepare(plain_model(kind), "int8"))
    for name, value in found.items():
        assert (value - expected[name]).norm() < 0.05 * expected[name].norm(), name
    agree = found["forced"].argmax(-1) == expected["forced"].argmax(-1)
    assert agree.float().mean() >= 0.9


SEARCHES: dict[str, SearchMethod] = {"greedy": GreedySearch(), "beam": BeamSearch(width=3)}


def translator(model: Model, search: str, selected: bool) -> Translator:
    selector: Selector = NvsSelector(model, 0.5) if selected else FullSelector()
    return Translator(model, build_objective(Softmax(kind="softmax")), selector, SEARCHES[search])


@pytest.mark.slow
@pytest.mark.parametrize(("search", "selected"), [("greedy", False), ("beam", False), ("beam", True)])
@pytest.mark.parametrize("kind", KINDS)
def test_in_int8_a_translation_does_not_depend_on_its_batch(kind: str, search: str, selected: bool) -> None:
    system = translator(prepare(plain_model(kind), "int8"), search, selected)
    together = system.translate(sentences())
    for source, found in zip(sentences(), together, strict=True):
        (alone,) = system.translate([source])
        assert found.hypothesis.tokens == alone.hypothesis.tokens
        assert found.hypothesis.score == pytest.approx(alone.hypothesis.score, abs=1e-4)
        assert found.selected_size == alone.selected_size


def test_in_int8_predicted_words_do_not_depend_on_the_batch() -> None:
    model = prepare(plain_model(), "int8")
    together = dict(nvs_logits(model, sentences()))
    for number, source in enumerate(sentences()):
        [(_, alone)] = nvs_logits(model, [source])
        np.testing.assert_allclose(together[number], alone, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("selected", [False, True], ids=["full", "nvs"])
def test_int8_scores_are_those_of_the_search(selected: bool) -> None:
    """To within a rounded activation: teacher forcing sums in another order than single steps do."""
    system = translator(prepare(plain_model(), "int8"), "beam", selected)
    hypotheses = [translation.hypothesis for translation in system.translate(sentences())]
    lengths = [len(hypothesis.tokens) + 1 for hypothesis in hypotheses]
    scores = forced_scores(system, sentences(), hypotheses)
    for score, hypothesis, length in zip(scores, hypotheses, lengths, strict=True):
        assert score == pytest.approx(hypothesis.score, abs=0.01 * length)


@pytest.mark.slow
def test_int8_and_fp32_translate_a_sure_model_alike() -> None:
    """A model with pronounced logits, as trained ones have."""
    model = plain_model()
    with torch.no_grad():
        model.embedding.weight.mul_(8.0)
        model.scale /= 8.0  # of the inputs, which stay as they were
    plain, small = copy.deepcopy(model), prepare(copy.deepcopy(model), "int8")
    expected = translator(prepare(plain, "fp32"), "greedy", False).translate(sentences())
    found = translator(small, "greedy", False).translate(sentences())
    same = [a.hypothesis.tokens == b.hypothesis.tokens for a, b in zip(expected, found, strict=True)]
    assert sum(same) >= 0.8 * len(same)


def test_the_output_layer_keeps_the_end() -> None:
    model = prepare(plain_model(), "int8")
    assert isinstance(model.projection, Int8Projection)
    assert model.projection.matrix.rows(torch.tensor([EOS])).weight.shape == (1, 32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_decodes_and_selects(kind: str, dtype: torch.dtype) -> None:
    """fp16 is for GPUs, but a CPU can show that every number fits it."""
    system = translator(plain_model(kind).to(dtype), "beam", True)
    for translation in system.translate(sentences()):
        assert np.isfinite(translation.hypothesis.score)
        assert translation.selected_size < V


def test_what_a_machine_cannot_do_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StepError, match=r"fp16 is for GPUs.*int8"):
        prepare(plain_model(), "fp16")
    with pytest.raises(StepError, match=r"int8 is for CPUs.*bf16"):
        prepare(plain_model().to("meta"), "int8")
    monkeypatch.setattr(inference, "ENGINE", "of another processor")
    with pytest.raises(StepError, match="needs an x86 processor"):
        prepare(plain_model(), "int8")


# ---------------------------------------------------------------- one row


def row_product(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    from creamtea_workers.models.row_product import RowProduct  # compiles when imported

    return RowProduct(weight, bias)


@given(rows=st.integers(1, 70), columns=st.integers(1, 130), bias=st.booleans(), seed=st.integers(0, 2**31))
def test_is_the_plain_product(rows: int, columns: int, bias: bool, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    weight = torch.randn(rows, columns, generator=draw)
    offset = torch.randn(rows, generator=draw) if bias else None
    x = torch.randn(1, 1, columns, generator=draw)
    product = row_product(weight, offset)
    torch.testing.assert_close(product(x), F.linear(x, weight, offset))
    torch.testing.assert_close(product(x[0, 0]), F.linear(x[0, 0], weight, offset))


def test_reads_a_weight_that_is_a_view() -> None:
    weight, x = torch.randn(6, 10)[::2, ::2], torch.randn(1, 5)
    torch.testing.assert_close(row_product(weight, None)(x), F.linear(x, weight))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_keeps_what_is_not_a_number(value: float) -> None:
    weight, x = torch.ones(2, 40), torch.ones(1, 40)
    x[0, 33] = value
    assert row_product(weight, None)(x)[0].tolist() == pytest.approx([value, value], nan_ok=True)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_packed_weights_have_it_where_there_are_few_threads(threads: int) -> None:
    before = torch.get_num_threads()
    weight, bias, x = torch.randn(48, 32), torch.randn(48), torch.randn(1, 1, 32)
    torch.set_num_threads(threads)
    try:
        packed = PackedLinear(weight, bias)
        assert (packed.of_row is None) == (threads > ROW_THREADS)
        torch.testing.assert_close(packed(x), F.linear(x, weight, bias))
    finally:
        torch.set_num_threads(before)


# ---------------------------------------------------------------- torch without oneDNN, as on macOS on ARM


class NoOperators:
    """Stands where `torch.ops.mkldnn` is; torch answers so for an operator that was not built."""

    def __getattr__(self, name: str) -> None:
        raise AttributeError(f"'_OpNamespace' 'mkldnn' object has no attribute '{name}'")


@pytest.fixture
def without_onednn(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`models.inference`, imported where torch has no oneDNN operators."""
    name = "creamtea_workers.models.inference"
    imported_before = importlib.import_module(name)
    monkeypatch.setattr(models, "inference", imported_before)  # restored, as is `sys.modules`
    monkeypatch.setitem(sys.modules, name, imported_before)
    monkeypatch.setattr(torch.ops, "mkldnn", NoOperators())
    del sys.modules[name]
    return importlib.import_module(name)


def test_a_model_is_prepared_and_gives_the_same_logits(
    without_onednn: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(without_onednn, "MIN_PACKED", 0)
    plain = step_files.random_model(30, nvs=None)
    prepared = without_onednn.prepare(copy.deepcopy(plain), "fp32")
    source, target = torch.tensor([[7, 9, 11, 3], [5, 3, 0, 0]]), torch.tensor([[2, 4, 6], [2, 8, 3]])
    with torch.inference_mode():
        expected, logits = (
            output_logits(model, model.decode(model.encode(source), target)) for model in (plain, prepared)
        )
    torch.testing.assert_close(logits, expected)
