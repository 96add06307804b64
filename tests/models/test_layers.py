"""The attention that trains on a CPU, against torch's."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from creamtea_workers.models.layers import SelfAttention, plain_attention


def random_tensor(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, requires_grad=True)


@given(
    batch=st.integers(1, 4),
    heads=st.integers(1, 4),
    queries=st.integers(1, 9),
    keys=st.integers(1, 9),
    kind=st.sampled_from(["all", "causal", "masked"]),
    seed=st.integers(0, 2**31),
)
def test_plain_attention_and_its_gradients_are_torchs(
    batch: int, heads: int, queries: int, keys: int, kind: str, seed: int
) -> None:
    torch.manual_seed(seed)
    keys = queries if kind == "causal" else keys
    inputs = [random_tensor(batch, heads, length, 8) for length in (queries, keys, keys)]
    mask = torch.rand(batch, 1, 1, keys) > 0.4
    mask[..., 0] = True  # every query attends to something
    choice = (mask if kind == "masked" else None, 0.0, kind == "causal")
    ours, theirs = plain_attention(*inputs, *choice), F.scaled_dot_product_attention(*inputs, *choice)
    torch.testing.assert_close(ours, theirs)
    weight = torch.randn_like(ours)
    torch.testing.assert_close(
        torch.autograd.grad(ours, inputs, weight), torch.autograd.grad(theirs, inputs, weight)
    )


def test_plain_attention_computes_in_fp32_under_autocast() -> None:
    inputs = [random_tensor(2, 4, 6, 8, dtype=torch.bfloat16) for _ in range(3)]
    with torch.autocast("cpu", torch.bfloat16):
        attended = plain_attention(*inputs)
    precise = F.scaled_dot_product_attention(*(x.float() for x in inputs))
    torch.testing.assert_close(attended, precise)


@pytest.mark.parametrize("causal", [True, False])
def test_training_attends_as_decoding_does(causal: bool) -> None:
    torch.manual_seed(1)
    attention, x = SelfAttention(16, 4), torch.randn(3, 7, 16)
    trained = attention.train()(x, causal=causal)
    torch.testing.assert_close(trained, attention.eval()(x, causal=causal))
