"""Collected by `test_fused_attention.py` in a process with TRITON_INTERPRET=1."""

import pytest
import torch
from torch.nn import functional as F

from creamtea_workers.models.fused import attend


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
