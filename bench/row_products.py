"""How fast the product of one vector with a weight reads the weight: MKL, oneDNN, and our loop, in GB/s.

    python bench/row_products.py [--megabytes 400] [--repetitions 15] [--json]

The shapes are those of the decoder of Transformer base. Each has so many weights of its own that none is in
the processor's caches when its turn comes. "sum" is torch's sum of the same weights: reading and hardly more.
One thread; medians over repetitions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from creamtea_workers.models.inference import has_onednn
from creamtea_workers.models.row_product import RowProduct
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import device_name

SHAPES = ((512, 512), (1536, 512), (2048, 512), (512, 2048))  # outputs, inputs


def gigabytes_per_second(
    products: Sequence[Callable[[Tensor], Tensor]], x: Tensor, size: int, repetitions: int
) -> float:
    seconds = []
    for _ in range(repetitions + 2):  # two to warm up
        began = time.perf_counter()
        for product in products:
            product(x)
        seconds.append(time.perf_counter() - began)
    return len(products) * size / statistics.median(seconds[2:]) / 1e9


def linear(weight: Tensor, bias: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: F.linear(x, weight, bias)


def onednn(weight: Tensor, bias: Tensor) -> Callable[[Tensor], Tensor]:
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def summed(weight: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: weight.sum()


@torch.inference_mode()
def measured(outputs: int, inputs: int, options: argparse.Namespace) -> dict[str, float]:
    size = 4 * outputs * inputs
    weights = [torch.randn(outputs, inputs) for _ in range(max(2, options.megabytes * 10**6 // size))]
    bias, x = torch.randn(outputs), torch.randn(1, inputs)
    ways: dict[str, tuple[list[Callable[[Tensor], Tensor]], Tensor]] = {
        "sum": ([summed(weight) for weight in weights], x),
        "MKL": ([linear(weight, bias) for weight in weights], x),
        "our loop": ([RowProduct(weight, bias) for weight in weights], x),
    }
    if has_onednn():
        packed = [onednn(weight, bias) for weight in weights]
        ways |= {"oneDNN": (packed, x), "oneDNN, 4 rows": (packed, x.expand(4, -1).contiguous())}
    return {
        name: gigabytes_per_second(products, row, size, options.repetitions)
        for name, (products, row) in ways.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=400, help="of weights of each shape (default: 400)")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    prepare_torch(1)
    rows = {f"{outputs} × {inputs}": measured(outputs, inputs, options) for outputs, inputs in SHAPES}
    if options.json:
        print(
            json.dumps({"hardware": device_name(torch.device("cpu")), "gigabytes_per_second": rows}, indent=2)
        )
        return
    print(device_name(torch.device("cpu")))
    for name, row in rows.items():
        print(f"{name:<12}", *(f"{way} {value:5.1f}  " for way, value in row.items()))


if __name__ == "__main__":
    main()
