"""Speed of decoding with random weights: batch-1 latency and throughput, full against selected vocabulary.

Two shapes: that of the Multi30k study (3+3 layers, width 128, V 4,000) and a base Transformer (6+6 layers,
width 512, V 32,000). The weights are random and </s> is out of reach, so that every system takes the same
number of steps. Systems take turns within each repetition; only ratios of one run should be compared.
Besides fp32 the full vocabulary is also timed with an int8 output layer: a speed-up of selection measured
only against fp32 would be an artefact of it.

    python bench/decode_speed.py [--shape multi30k|base|all] [--objective softmax] [--threads 1] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from creamtea_workers.models.build import build_model
from creamtea_workers.models.interface import EOS, Memory, TranslationModel
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.objectives import build_objective
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search import BeamSearch, GreedySearch, Hypothesis, OutputLayer, SearchMethod
from creamtea_workers.search.output import FullOutput
from creamtea_workers.search.systems import device_name
from creamtea_workers.search.translator import Translator
from creamtea_workers.selection import Selector
from creamtea_workers.selection.full import FullSelector

LENGTHS = (8, 14, 24)  # source subwords; as many steps and 10 more
SELECTED = (200, 500, 1000)


@dataclass(frozen=True)
class Shape:
    name: str
    vocabulary: int
    batch: int  # sentences, for throughput
    architecture: dict[str, int]


SHAPES = {
    "multi30k": Shape("multi30k", 4000, 32, {}),
    "base": Shape(
        "base",
        32000,
        16,
        {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "heads": 8, "feed_forward": 2048},
    ),
}


@dataclass(frozen=True)
class RandomSelector:
    """`size` ids a sentence, another set for each sentence."""

    vocabulary: int
    size: int

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor]:
        rows = []
        for source in sources:
            draw = np.random.default_rng(source[0]).permutation(self.vocabulary - 4)[: self.size - 1] + 4
            rows.append(torch.from_numpy(np.sort(np.append(draw, EOS))))
        return rows


class Int8Output(FullOutput):
    """The full output layer with dynamically quantised int8 weights."""

    def __init__(self, model: Transformer) -> None:
        super().__init__(model.output_weight, model.output_bias)
        layer = torch.nn.Linear(model.output_weight.shape[1], model.vocabulary_size)
        layer.weight, layer.bias = model.embedding.weight, model.output_bias
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch announces that this moves to another package
            self._layer = torch.ao.quantization.quantize_dynamic(
                torch.nn.Sequential(layer), {torch.nn.Linear}, dtype=torch.qint8
            )

    def logits(self, hidden: Tensor) -> Tensor:
        return self._layer(hidden)


@dataclass(frozen=True)
class WithOutput:
    """A search over another output layer than the model's."""

    search: SearchMethod
    output: OutputLayer

    @property
    def width(self) -> int:
        return self.search.width

    @property
    def max_length_ratio(self) -> float:
        return self.search.max_length_ratio

    def __call__(
        self,
        model: TranslationModel,
        objective: Objective,
        memory: Memory,
        output: OutputLayer,
        limits: Sequence[int],
        with_scores: bool = True,
    ) -> list[Hypothesis]:
        return self.search(model, objective, memory, self.output, limits, with_scores)


def systems(shape: Shape, objective: Objective) -> dict[tuple[str, str], Translator]:
    """(search, vocabulary) -> system; the first is what the others are compared with."""
    torch.manual_seed(1)
    params = {"architecture": shape.architecture, "nvs": None, "objective": {"kind": "softmax"}}
    model = build_model(params, shape.vocabulary).eval()
    with torch.no_grad():
        model.output_bias[EOS] = -50.0
    searches: dict[str, SearchMethod] = {
        "greedy": GreedySearch(max_length_ratio=1.0),
        "beam 4": BeamSearch(width=4, max_length_ratio=1.0),
    }
    int8 = Int8Output(model)
    found = {}
    for name, search in searches.items():
        full = Translator(model, objective, FullSelector(), search)
        found[name, "full"] = full
        found[name, "full, int8"] = replace(full, search=WithOutput(search, int8))
        for size in SELECTED:
            selector: Selector = RandomSelector(shape.vocabulary, size)
            found[name, f"selected {size}"] = replace(full, selector=selector)
    return found


def interleaved(
    translators: Sequence[Translator], work: Sequence[Sequence[list[int]]], repetitions: int
) -> np.ndarray:
    """Seconds (systems, repetitions, batches of `work`), after one round of warm-up."""
    order, turns = list(range(len(translators))), random.Random(1)
    seconds = np.zeros((len(translators), repetitions + 1, len(work)))
    for repetition in range(repetitions + 1):
        for n, batch in enumerate(work):
            turns.shuffle(order)
            for position in order:
                began = time.perf_counter()
                translators[position].translate(batch, with_scores=False)
                seconds[position, repetition, n] = time.perf_counter() - began
    return seconds[:, 1:]


def sentences(lengths: Sequence[int], vocabulary: int) -> list[list[int]]:
    draw = np.random.default_rng(2)
    return [draw.integers(4, vocabulary, size=length).tolist() for length in lengths]


def run(shape: Shape, objective: str, repetitions: int) -> list[dict[str, Any]]:
    named = systems(shape, build_objective({"kind": objective}))
    translators = list(named.values())
    single = [[sentence] for sentence in sentences(LENGTHS, shape.vocabulary)]
    latency = interleaved(translators, single, repetitions)
    batch = sentences((LENGTHS * shape.batch)[: shape.batch], shape.vocabulary)
    throughput = interleaved(translators, [batch], max(1, repetitions // 5))
    rows = []
    for position, (search, vocabulary) in enumerate(named):
        own, first = np.median(latency[position], axis=0), np.median(latency[0], axis=0)  # (sentences,)
        speed = shape.batch / np.median(throughput[position])
        rows.append(
            {
                "shape": shape.name,
                "search": search,
                "vocabulary": vocabulary,
                "p50_ms": 1000 * float(np.percentile(own, 50)),
                "p90_ms": 1000 * float(np.percentile(own, 90)),
                "latency_percent": 100 * float(own.sum() / first.sum()),
                "batch": shape.batch,
                "sentences_per_second": float(speed),
                "throughput_percent": 100 * float(speed / (shape.batch / np.median(throughput[0]))),
            }
        )
    return rows


def table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    found = Table(title=title, title_justify="left")
    found.add_column("search")
    found.add_column("vocabulary")
    names = ("p50 ms", "p90 ms", "% of first", f"sent/s ×{rows[0]['batch']}", "% of first")
    for name in names:
        found.add_column(name, justify="right")
    for row in rows:
        found.add_row(
            row["search"],
            row["vocabulary"],
            f"{row['p50_ms']:.1f}",
            f"{row['p90_ms']:.1f}",
            f"{row['latency_percent']:.0f}",
            f"{row['sentences_per_second']:.1f}",
            f"{row['throughput_percent']:.0f}",
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shape", choices=[*SHAPES, "all"], default="all")
    parser.add_argument("--objective", choices=["softmax", "scones", "entmax"], default="softmax")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    machine = {"hardware": device_name(torch.device("cpu")), "threads": options.threads}
    shapes = list(SHAPES) if options.shape == "all" else [options.shape]
    results = {name: run(SHAPES[name], options.objective, options.repetitions) for name in shapes}
    if options.json:
        rows = [row for found in results.values() for row in found]
        print(json.dumps({**machine, "objective": options.objective, "rows": rows}, indent=2))
        return
    console = Console()
    console.print(
        f"{machine['hardware']}, {options.threads} thread(s), {options.objective}, "
        f"{options.repetitions} repetitions of {len(LENGTHS)} sentences"
    )
    for name, rows in results.items():
        console.print(table(rows, name))


if __name__ == "__main__":
    main()
