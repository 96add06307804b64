"""The product of one vector by a loop of its own equals torch's."""

from __future__ import annotations

import math
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor
from torch.nn import functional as F

from creamtea_workers.models.inference import ROW_THREADS, PackedLinear


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
