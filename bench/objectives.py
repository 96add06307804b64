"""Time and memory of the objectives: forward and backward pass of output layer and loss.

    python bench/objectives.py [--tokens 8192] [--vocabulary 32000] [--width 512] [--precision fp32 bf16]
                               [--only NAME ...] [--flat] [--threads 1] [--repetitions 3]
                               [--device cpu cuda] [--json]

Our softmax, SCONES and entmax go through one chunked path, on a GPU with a kernel for each chunk. Beside
them are torch's cross-entropy of whole logits, torch's chunked `linear_cross_entropy`, and the losses of the
entmax package (by sorting, and by its default for large vocabularies, the 100 largest). The package needs
several times the memory of all logits, so it is timed on --package-tokens tokens, and compared with our
softmax on as many. There is a table for the CPU and, where there is a GPU, one for it.

Within a repetition the rows take turns; times are medians, and only ratios (to our softmax) of one run
should be compared. On a CPU they are seconds of the processor, which other processes disturb less than
those of the clock. The peak is what a fresh process grows by (on a GPU: what torch allocates), its
gradients included.

The logits are as sparse as a trained model's (entmax 1.5 supports 0.08 % of the words; Peters and Martins
2021, Table 6: 0.07 to 0.25 %): Gaussian with deviation 0.7, and one word of each token raised by 1 to 7, the
label three times out of four. --flat: as at the start of a training, nothing stands out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import entmax
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional as F

from creamtea.methods.objectives import Entmax, Objective, Scones, Softmax
from creamtea_workers.objectives import build_objective
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import device_name

Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # (hidden, weight, bias, targets) → sum


def of_logits(loss: Callable[[Tensor, Tensor], Tensor]) -> Loss:
    """Output layer and loss one after the other, as a training would write it; the loss in fp32."""

    def whole(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        return loss(F.linear(hidden, weight, bias).float(), targets).sum()

    return whole


def torch_chunked(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    if torch.is_autocast_enabled(hidden.device.type):  # it knows nothing of autocast
        low = torch.get_autocast_dtype(hidden.device.type)
        hidden, weight, bias = hidden.to(low), weight.to(low), bias.to(low)
    options = torch.nn.LinearCrossEntropyOptions()
    return F.linear_cross_entropy(hidden, weight, targets, linear_bias=bias, reduction="sum", options=options)


OURS: dict[str, Objective] = {
    "softmax": Softmax(kind="softmax"),
    "softmax, ε = 0.1": Softmax(kind="softmax", label_smoothing=0.1),
    "SCONES, α = 0.5": Scones(kind="scones", alpha=0.5),
    "entmax 1.5": Entmax(kind="entmax"),
    "entmax 1.5, ε = 0.1": Entmax(kind="entmax", label_smoothing=0.1),
    "entmax 1.3": Entmax(kind="entmax", alpha=1.3),
    "entmax 2": Entmax(kind="entmax", alpha=2.0),
}
LOSSES: dict[str, Loss] = {
    **{name: build_objective(spec).loss for name, spec in OURS.items()},
    "torch cross_entropy": of_logits(lambda z, y: F.cross_entropy(z, y, reduction="sum")),
    "torch linear_cross_entropy": torch_chunked,
}
PACKAGE: dict[str, Loss] = {
    "softmax": LOSSES["softmax"],
    "package entmax15_loss, sorting": of_logits(entmax.entmax15_loss),
    "package entmax15_loss, k = 100": of_logits(lambda z, y: entmax.entmax15_loss(z, y, k=100)),
}


@dataclass(frozen=True)
class Row:
    name: str
    precision: str
    device: str
    tokens: int
    package: bool  # of PACKAGE, not of LOSSES

    @property
    def loss(self) -> Loss:
        return (PACKAGE if self.package else LOSSES)[self.name]


def main() -> None:
    arguments = parse()
    if arguments.row:
        print(peak(arguments, Row(**json.loads(arguments.row))))
        return
    results = {
        device: [
            result for precision in arguments.precision for result in measure(arguments, precision, device)
        ]
        for device in arguments.device
    }
    if arguments.json:
        print(
            json.dumps([result for rows in results.values() for result in rows], indent=2, ensure_ascii=False)
        )
        return
    console = Console()
    for device, rows in results.items():
        console.print(
            f"{device_name(torch.device(device))}, {arguments.threads} thread(s), torch {torch.__version__}; "
            f"{arguments.vocabulary:,} words, width {arguments.width}; "
            f"{'flat' if arguments.flat else 'peaked'} logits, of which entmax 1.5 supports "
            f"{support(arguments):.2%}; median of {arguments.repetitions}"
        )
        console.print(table(rows))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--package-tokens", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--precision", nargs="+", choices=["fp32", "bf16"], default=["fp32", "bf16"])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[*LOSSES, *PACKAGE], help="of the table")
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=3)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    parser.add_argument("--device", nargs="+", choices=["cpu", "cuda"], default=devices)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--row", help=argparse.SUPPRESS)  # the memory of one row, in a process of its own
    arguments = parser.parse_args()
    prepare_torch(arguments.threads)
    return arguments


def inputs(
    arguments: argparse.Namespace, tokens: int, device: str = "cpu"
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """hidden (tokens, width), weight (V, width), bias (V,) and targets (tokens,)."""
    random = torch.Generator().manual_seed(1)
    weight = torch.randn(arguments.vocabulary, arguments.width, generator=random)
    weight = F.normalize(weight, dim=1)  # so that a hidden state's numbers are the deviation of its logits
    targets = torch.randint(arguments.vocabulary, (tokens,), generator=random)
    hidden = torch.randn(tokens, arguments.width, generator=random) * (0.1 if arguments.flat else 0.7)
    if not arguments.flat:
        other = torch.randint(arguments.vocabulary, (tokens,), generator=random)
        raised = torch.where(torch.rand(tokens, generator=random) < 0.75, targets, other)
        hidden += weight[raised] * (1 + 6 * torch.rand(tokens, 1, generator=random))
    bias = torch.zeros(arguments.vocabulary)
    hidden, weight, bias = (x.to(device).requires_grad_() for x in (hidden, weight, bias))
    return hidden, weight, bias, targets.to(device)


def support(arguments: argparse.Namespace) -> float:
    """Share of the vocabulary that entmax 1.5 gives a probability, over 256 tokens."""
    hidden, weight, bias, _ = inputs(arguments, 256)
    with torch.no_grad():
        scores = build_objective(OURS["entmax 1.5"]).log_scores(F.linear(hidden, weight, bias))
    return scores.isfinite().float().mean().item()


def once(row: Row, tensors: tuple[Tensor, Tensor, Tensor, Tensor]) -> float:
    """Seconds of a forward and a backward pass."""
    device = tensors[0].device.type
    start = clock(device)
    with torch.autocast(device, torch.bfloat16, enabled=row.precision == "bf16"):
        loss = row.loss(*tensors)
    (loss / row.tokens).backward()
    seconds = clock(device) - start
    for tensor in tensors:
        tensor.grad = None
    return seconds


def clock(device: str) -> float:
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def rows_of(arguments: argparse.Namespace, precision: str, device: str) -> list[Row]:
    """Softmax, which the others are compared with, is always measured."""
    rows = []
    for losses, tokens in ((LOSSES, arguments.tokens), (PACKAGE, arguments.package_tokens)):
        wanted = [name for name in losses if name in (arguments.only or losses)]
        if set(wanted) - {"softmax"}:
            names = ["softmax", *(name for name in wanted if name != "softmax")]
            rows += [Row(name, precision, device, tokens, losses is PACKAGE) for name in names]
    return rows


def measure(arguments: argparse.Namespace, precision: str, device: str) -> list[dict[str, Any]]:
    rows = rows_of(arguments, precision, device)
    tensors = {tokens: inputs(arguments, tokens, device) for tokens in {row.tokens for row in rows}}
    few = inputs(arguments, 64, device)
    for row in rows:
        once(row, few)
    seconds: dict[Row, list[float]] = {row: [] for row in rows}
    for _ in range(arguments.repetitions):
        for row in rows:
            seconds[row].append(once(row, tensors[row.tokens]))
    del tensors
    medians = {row: statistics.median(times) for row, times in seconds.items()}
    return [
        {
            "loss": row.name,
            "precision": precision,
            "tokens": row.tokens,
            "seconds": medians[row],
            "all_seconds": seconds[row],
            "ratio": medians[row] / medians[Row("softmax", precision, device, row.tokens, row.package)],
            "peak_mib": peak_in_new_process(row),
            "device": device_name(torch.device(device)),
            "threads": arguments.threads,
            "torch": torch.__version__,
        }
        for row in rows
    ]


def peak_in_new_process(row: Row) -> float:
    command = [sys.executable, __file__, *sys.argv[1:], "--row", json.dumps(vars(row))]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak(arguments: argparse.Namespace, row: Row) -> float:
    """MiB by which the process grows over its inputs."""
    small = argparse.Namespace(**{**vars(arguments), "vocabulary": 200, "width": 8})
    once(row, inputs(small, 2, row.device))  # loads code
    tensors = inputs(arguments, row.tokens, row.device)
    if row.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        once(row, tensors)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten (proc(5))
    inputs_only = resident()["VmRSS"]
    once(row, tensors)
    return resident()["VmHWM"] - inputs_only


def resident() -> dict[str, float]:
    """MiB of this process: VmRSS now, VmHWM at most. (getrusage would count the parent's, before exec.)"""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return {
        name: int(value.split()[0]) / 2**10 for name, value in (x.split(":", 1) for x in lines if "kB" in x)
    }


def table(results: list[dict[str, Any]]) -> Table:
    columns = ["loss", "precision", "tokens", "ms", "ratio", "peak MiB"]
    table = Table()
    for column in columns:
        table.add_column(column, justify="left" if column in ("loss", "precision") else "right")
    for result in results:
        table.add_row(
            result["loss"],
            result["precision"],
            f"{result['tokens']:,}",
            f"{result['seconds'] * 1000:,.1f}",
            f"{result['ratio']:.2f}",
            f"{result['peak_mib']:,.0f}",
        )
    return table


if __name__ == "__main__":
    main()
