"""The losses' Triton kernels against the chunked path. `test_kernels` runs this file interpreted."""

import math
from unittest.mock import patch

import pytest
import torch
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from interpreted_triton import quickly_interpreted
from torch import Tensor

from creamtea.methods.objectives import Entmax, Objective, Scones, Softmax
from creamtea_workers.objectives import build_objective, entmax, kernels, linear

pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # NumPy's, of 0 · inf and log 0 in a `where`
BLOCK = 32  # words that a program holds at a time
BF16 = 2**-7  # the interpreter cuts off what does not fit


@pytest.fixture(autouse=True, scope="module")
def small_blocks_quickly_interpreted():
    """Split short rows into blocks."""
    with patch.object(kernels, "MAX_BLOCK", BLOCK), quickly_interpreted(kernels.__name__):
        yield


def unigram(size: int) -> Tensor:
    frequencies = torch.arange(size, dtype=torch.float64).remainder(7) + (size == 1)
    return frequencies / frequencies.sum()


def assert_equal(spec: Objective, logits: Tensor, bias: Tensor, targets: Tensor) -> None:
    """The losses of logits (n, V) to 1e-5 of their size, the gradients to 1e-5, or to bf16's last bit."""
    objective = build_objective(spec, unigram(len(bias)))
    value, gradient = objective.loss_and_gradient(logits.to(bias.dtype) + bias, targets)
    losses = objective.fused_(logits, bias, targets)
    torch.testing.assert_close(losses.sum().double(), value.double(), atol=1e-5, rtol=1e-5)
    rtol = BF16 if logits.dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(logits.double(), gradient.double(), atol=1e-5, rtol=rtol)


SMOOTHING = [{}, {"label_smoothing": 0.1}, {"label_smoothing": 0.4, "smoothing": "unigram"}]
SPECS = [
    *(Softmax(kind="softmax", **smoothing) for smoothing in SMOOTHING),
    *(Scones(kind="scones", alpha=alpha) for alpha in (0.05, 0.5, 1.0, 3.0)),
    Scones(kind="scones", alpha=0.5, label_smoothing=0.1),
    *(
        Entmax(kind="entmax", alpha=alpha, **smoothing)
        for alpha in (1.001, 1.05, 1.3, 1.5, 1.8, 2.0)
        for smoothing in SMOOTHING
    ),
]


@settings(max_examples=25, phases=[Phase.explicit, Phase.generate])  # to shrink would take minutes
@example(Softmax(kind="softmax"), 1, 1.0, torch.float32, 1)
@example(Entmax(kind="entmax", alpha=1.3), 1, 1.0, torch.float32, 1)
@example(Entmax(kind="entmax"), 70, 0.0, torch.float32, 1)  # all words equal
@given(
    st.sampled_from(SPECS),
    st.integers(1, 3 * BLOCK),
    st.sampled_from([0.01, 1.0, 30.0, 1e4]),
    st.sampled_from([torch.float32, torch.bfloat16]),
    st.integers(0, 99),
)
def test_losses_and_gradients(
    spec: Objective, size: int, scale: float, dtype: torch.dtype, seed: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    logits = (torch.randn(2, size, generator=random) * scale).to(dtype)
    bias = torch.randn(size, generator=random)
    assert_equal(spec, logits, bias, torch.randint(size, (2,), generator=random))


@pytest.mark.parametrize("alpha", [2.3, 20.0])
def test_entmax_above_two(alpha: float) -> None:
    torch.manual_seed(1)
    logits = torch.randn(1, BLOCK - 3)
    spec = Entmax(kind="entmax", alpha=alpha, label_smoothing=0.1)
    assert_equal(spec, logits, torch.zeros(BLOCK - 3), torch.tensor([3]))


def test_fp64_keeps_its_digits() -> None:
    torch.manual_seed(1)
    logits, bias, targets = torch.randn(2, 40).double(), torch.randn(40).double(), torch.tensor([3, 39])
    for spec in (SPECS[1], SPECS[4], Entmax(kind="entmax", label_smoothing=0.1)):
        objective = build_objective(spec)
        value, gradient = objective.loss_and_gradient(logits + bias, targets)
        product = logits.clone()
        torch.testing.assert_close(objective.fused_(product, bias, targets).sum(), value, atol=0, rtol=1e-13)
        torch.testing.assert_close(product, gradient, atol=1e-14, rtol=1e-12)


@pytest.mark.parametrize("spec", [SPECS[1], SPECS[4], Entmax(kind="entmax", label_smoothing=0.1)], ids=str)
def test_the_output_layer_s_gradients(spec: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two chunks, of which the second is smaller."""
    torch.manual_seed(1)
    monkeypatch.setitem(linear.SIZES, "cpu", linear.Sizes(16 * 45, 2**20))
    hidden, weight, bias = torch.randn(18, 4), torch.randn(45, 4), torch.randn(45)
    results = []
    for kernel in (True, False):
        monkeypatch.setattr(linear, "uses_kernels", lambda _, kernel=kernel: kernel)
        inputs = [x.clone().requires_grad_() for x in (hidden, weight, bias)]
        loss = build_objective(spec).loss(*inputs, torch.arange(18))
        results.append((loss.detach(), *torch.autograd.grad(loss, inputs)))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_a_row_that_is_not_finite_is_seen_in_the_loss() -> None:
    for spec in (SPECS[0], SPECS[4], Entmax(kind="entmax"), Entmax(kind="entmax", alpha=1.3)):
        logits = torch.randn(2, 40)
        logits[1, 35] = math.nan
        losses = build_objective(spec).fused_(logits, torch.zeros(40), torch.tensor([1, 1]))
        assert losses.isfinite().tolist() == [True, False]


@pytest.mark.parametrize("alpha", [1.001, 1.3, 1.5, 2.0, 3.0])
def test_log_scores_of_entmax_with_words_that_are_masked(
    alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    objective = build_objective(Entmax(kind="entmax", alpha=alpha))
    logits = torch.randn(1, 2, 40 if alpha <= 2 else BLOCK) * 2
    logits[0, 1, 7:20] = -math.inf
    expected = objective.log_scores(logits)
    monkeypatch.setattr(entmax, "uses_kernels", lambda _: True)
    scores = objective.log_scores(logits)
    assert torch.equal(scores.isfinite(), expected.isfinite())
    torch.testing.assert_close(scores.exp(), expected.exp(), atol=1e-6, rtol=1e-5)
    assert objective.log_scores(logits[:0]).shape == (0, *logits.shape[1:])
