"""How far int8 layers are from fp32 ones, measured in this process or with an older processor's kernels."""

from collections.abc import Callable

import torch
from torch import Tensor

from creamtea_workers.models.inference import Int8Linear, Int8Matrix


def relative_errors(draw: Callable[..., Tensor]) -> tuple[float, float]:
    """Of the packed product against fp32, and of the other product against the packed one, both relative to
    fp32. `draw`: random numbers in a shape."""
    torch.manual_seed(0)
    weight, bias, x = draw(200, 512), draw(200), draw(10, 512)
    exact = torch.nn.functional.linear(x, weight, bias)
    matrix = Int8Matrix.of(weight, bias)
    packed, other = Int8Linear(matrix)(x), matrix(x)
    return ((packed - exact).norm() / exact.norm()).item(), ((other - packed).norm() / exact.norm()).item()
