"""The fused kernels beside plain operations; `test_fused` runs this file interpreted."""

import pytest
import torch
from interpreted_triton import quickly_interpreted
from torch.nn import functional as F

from creamtea_workers.models import fused
from creamtea_workers.models.fused import AddAndNormalise, ShortAttention, attend
from creamtea_workers.models.packed import Lengths, Spans


@pytest.fixture(autouse=True, scope="module")
def quick():
    with quickly_interpreted(fused.__name__):
        yield


@pytest.mark.parametrize("rows", [1, 4, 17])
@pytest.mark.parametrize("keys", [8, 64, 100])
@pytest.mark.parametrize("each", [True, False])
def test_it_is_the_attention_of_torch(rows: int, keys: int, each: bool) -> None:
    """With a mask for each row, or one for all of a sentence's."""
    torch.manual_seed(rows * keys)
    heads, width = 3, 32
    query = torch.randn(2, rows, 3, heads, width).permute(2, 0, 3, 1, 4)[0]  # as a layer projects it
    key, value = torch.randn(2, 2, heads, keys, width).unbind(0)
    mask = torch.randn(2, 1, rows if each else 1, keys)
    mask[torch.rand_like(mask) < 0.5] = -torch.inf
    mask[..., -1] = 0.0
    expected = F.scaled_dot_product_attention(query, key, value, mask).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attend(query, key, value, mask), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "width", "threshold", "has_x"), [(37, 48, 0, True), (37, 48, 26, True), (70, 64, 26, False)]
)
def test_sums_and_norms(rows: int, width: int, threshold: int, has_x: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn(rows, width, requires_grad=True)
    added, slopes = torch.randn(rows, width, requires_grad=True), torch.randn(2, rows, width)
    weight, bias = torch.randn(width, requires_grad=True), torch.randn(width, requires_grad=True)
    fixed = (torch.tensor(-(2**62) + 12345), 3, threshold, 1e-5, torch.float32)
    inputs = [x, added, weight, bias] if has_x else [added, weight, bias]

    total, normed = AddAndNormalise.apply(x if has_x else None, added, weight, bias, *fixed)  # type: ignore[no-untyped-call]
    found = torch.autograd.grad([total, normed], inputs, [*slopes])
    base = x if has_x else torch.zeros_like(x)
    kept = (total.detach() != base) * (256 / (256 - threshold))
    if threshold:
        assert abs(float((kept > 0).float().mean()) - (1 - threshold / 256)) < 0.03
    sums = base + kept * added
    plain = F.layer_norm(sums, (width,), weight, bias)
    expected = torch.autograd.grad([sums, plain], inputs, [*slopes])
    for ours, theirs in zip([total, normed, *found], [sums, plain, *expected], strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_attention_of_short_sentences() -> None:
    """In fp32: the interpreter knows no products of bf16. A side may have no rows of a sentence."""
    torch.manual_seed(1)
    counts = torch.tensor([4, 6, 1, 0, 17, 0]), torch.tensor([3, 1, 9, 0, 7, 0])
    queries, keys = (
        Lengths(F.pad(count.cumsum(0), (1, 0)).int(), longest)
        for count, longest in zip(counts, (17, 9), strict=True)
    )
    joint = torch.randn(28, 3, 2, 16, requires_grad=True)
    other = torch.randn(20, 2, 2, 16, requires_grad=True)
    for causal in (True, False):
        spans = Spans(queries, queries if causal else keys)
        q, k, v = (*joint.unbind(1)[:1], *(joint.unbind(1)[1:] if causal else other.unbind(1)))
        starts, longest = (queries.starts, spans.keys.starts), (17, spans.keys.longest)
        found = ShortAttention.apply(q, k, v, starts, longest, causal).flatten(1)  # type: ignore[no-untyped-call]
        expected = spans.attend(q, k, v, 0.0, causal)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
        slope, inputs = torch.randn_like(found), [joint] if causal else [joint, other]
        pairs = (torch.autograd.grad(end, inputs, slope) for end in (found, expected))
        for ours, theirs in zip(*pairs, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
