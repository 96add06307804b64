"""Latency of translation at batch 1: full, lexicon and NVS vocabularies, fp32 and int8, beside CTranslate2.

The weights are random, the same ones in both programs, and every hypothesis has the same forced length, so
that all do the same work. NVS pays for its head (random, with the threshold that selects --nvs subwords per
sentence); the lexicon's candidates per source subword are random. Systems take turns sentence by sentence
within one process; a ratio is that of a percentile over the sentences to CTranslate2's (full vocabulary,
same search and precision) in the same repetition, its median over repetitions. CTranslate2 has no SSRU: for
the shape "deep" it has self-attention in its place. "read ms" is what remains if nothing but the weights of
the decoder's steps and the rows of the output layer had to be read, at the speed at which torch sums 400 MB
here (weights in int8 that fit into a processor's cache may be read faster).

    pip install -e ".[workers,export]"
    python bench/decode_speed.py --shape base --repetitions 10
    python bench/decode_speed.py --shape deep --searches greedy --precisions int8 --json
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from peers.ctranslate2_peer import Peer
from random_models import random_lexicon, random_model, random_sentences, threshold_for
from rich.console import Console
from rich.table import Table

from creamtea.methods.objectives import Softmax
from creamtea.methods.searches import Precision
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.objectives import build_objective
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.base import SearchMethod
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.translator import Translator, device_name
from creamtea_workers.selection import Selector
from creamtea_workers.selection.nvs import NvsSelector
from creamtea_workers.selection.tables import FullSelector, LexiconSelector

LENGTH_RATIO = 0.6  # target subwords: that times the source's, and 10 more: 25 of 25
PERCENTILES = (50, 90, 99)
SHAPES: dict[str, tuple[int, dict[str, Any]]] = {  # vocabulary, architecture
    "multi30k": (4000, {"preset": "small"}),
    "base": (32000, {"preset": "base"}),
    "deep": (32000, {"preset": "deep"}),
}
SEARCHES: dict[str, SearchMethod] = {
    "greedy": GreedySearch(max_length_ratio=LENGTH_RATIO),
    "beam 4": BeamSearch(width=4, max_length_ratio=LENGTH_RATIO),
}
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
Translate = Callable[[list[int]], list[int]]


@dataclass(frozen=True)
class Entrant:
    program: str
    search: str
    vocabulary: str
    precision: Precision
    selected_size: float
    translate: Translate
    step_bytes: float  # of weights that a step of the decoder reads


def our_entrants(
    model: Transformer, options: argparse.Namespace, precision: Precision, sentences: Sequence[list[int]]
) -> list[Entrant]:
    ready, objective = prepare(copy.deepcopy(model), precision), build_objective(Softmax(kind="softmax"))
    selectors: dict[str, Selector] = {
        "full": FullSelector(),
        **{f"lexicon k={k}": LexiconSelector(random_lexicon(model.vocabulary_size, k), k) for k in options.k},
        "NVS": NvsSelector(ready, threshold_for(model, sentences, options.nvs)),
    }
    entrants = []
    for search in options.searches:
        for name, selector in selectors.items():
            system = Translator(ready, objective, selector, SEARCHES[search])

            def translate(source: list[int], system: Translator = system) -> list[int]:
                return system.translate([source], with_scores=False)[0].hypothesis.tokens

            size = float(np.mean(system.selected_sizes(sentences)))
            read = step_bytes(model, precision, size)
            entrants.append(Entrant("creamtea", search, name, precision, size, translate, read))
    return entrants


def step_bytes(model: Transformer, precision: Precision, selected: float) -> float:
    """The decoder's matrices but those that the encoder's output goes through, once a sentence, and the
    selected rows of the output layer."""
    weights = sum(
        weight.numel()
        for name, weight in model.decoder.named_parameters()
        if weight.ndim == 2 and "cross.kv" not in name
    )
    return (weights + selected * model.output_weight.shape[1]) * (1 if precision == "int8" else 4)


def bytes_per_second() -> float:
    """Of reading from memory."""
    numbers, seconds = torch.ones(10**8), []
    for _ in range(7):
        began = time.perf_counter()
        numbers.sum()
        seconds.append(time.perf_counter() - began)
    return 4 * len(numbers) / float(np.median(seconds))


def target_length(source: Sequence[int]) -> int:
    return int(np.ceil(LENGTH_RATIO * len(source))) + 10


def peer_entrants(model: Transformer, options: argparse.Namespace, precision: Precision) -> list[Entrant]:
    entrants = []
    for search in options.searches:
        peer = Peer.of(model, precision, SEARCHES[search].rows, options.threads)

        def translate(source: list[int], peer: Peer = peer) -> list[int]:
            return peer.translate(source, target_length(source))

        size = float(model.vocabulary_size)
        read = step_bytes(model, precision, size)
        entrants.append(Entrant("CTranslate2", search, "full", precision, size, translate, read))
    return entrants


def interleaved(
    entrants: Sequence[Entrant],
    sentences: Sequence[list[int]],
    repetitions: int,
    clock: Callable[[], float],
) -> tuple[np.ndarray, list[list[list[int]]]]:
    """Seconds (entrants, repetitions, sentences) after a round of warm-up, and each entrant's outputs."""
    outputs = [[entrant.translate(sentence) for sentence in sentences] for entrant in entrants]
    order, turns = list(range(len(entrants))), random.Random(1)
    seconds = np.zeros((len(entrants), repetitions, len(sentences)))
    for repetition in range(repetitions):
        for n, sentence in enumerate(sentences):
            turns.shuffle(order)
            for position in order:
                began = clock()
                entrants[position].translate(sentence)
                seconds[position, repetition, n] = clock() - began
    return seconds, outputs


def run(shape: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    vocabulary, sizes = SHAPES[shape]
    sentences, model = random_sentences(vocabulary), random_model(vocabulary, sizes)
    twin = random_model(vocabulary, {**sizes, "kind": "transformer"}) if model.recurrent else model
    entrants: list[Entrant] = []
    for precision in options.precisions:
        entrants += peer_entrants(twin, options, precision)
        entrants += our_entrants(model, options, precision, sentences)
    memory_speed, steps = bytes_per_second(), float(np.median([target_length(s) for s in sentences]))
    seconds, outputs = interleaved(entrants, sentences, options.repetitions, CLOCKS[options.clock])
    rows = [row(shape, position, entrants, seconds, outputs) for position in range(len(entrants))]
    for measured, entrant in zip(rows, entrants, strict=True):
        measured["read_ms"] = 1000 * steps * entrant.step_bytes / memory_speed
    return rows


def row(
    shape: str,
    position: int,
    entrants: Sequence[Entrant],
    seconds: np.ndarray,
    outputs: Sequence[Sequence[list[int]]],
) -> dict[str, Any]:
    own = entrants[position]
    base = next(
        n
        for n, other in enumerate(entrants)
        if other.program == "CTranslate2" and (other.search, other.precision) == (own.search, own.precision)
    )
    measured: dict[str, Any] = {
        "shape": shape,
        "program": own.program,
        "search": own.search,
        "precision": own.precision,
        "vocabulary": own.vocabulary,
        "selected_size": own.selected_size,
        "same_outputs": float(
            np.mean([a == b for a, b in zip(outputs[position], outputs[base], strict=True)])
        ),
    }
    for percent in PERCENTILES:
        times, theirs = (np.percentile(seconds[n], percent, axis=1) for n in (position, base))
        measured[f"p{percent}_ms"] = 1000 * float(np.median(times))
        measured[f"p{percent}_ratio"] = float(np.median(times / theirs))
    return measured


def table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    shown = Table(title=title, title_justify="left")
    for name in ("search", "program", "vocabulary"):
        shown.add_column(name, no_wrap=True)
    for name in (
        "size",
        "read ms",
        *(f"p{percent} ms" for percent in PERCENTILES),
        "÷ p50",
        "÷ p90",
        "÷ p99",
    ):
        shown.add_column(name, justify="right")
    for row in sorted(rows, key=lambda row: (row["search"], row["precision"])):
        shown.add_row(
            f"{row['search']} {row['precision']}",
            row["program"],
            row["vocabulary"],
            f"{row['selected_size']:.0f}",
            f"{row['read_ms']:.1f}",
            *(f"{row[f'p{percent}_ms']:.1f}" for percent in PERCENTILES),
            *(f"{row[f'p{percent}_ratio']:.2f}" for percent in PERCENTILES),
        )
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shape", choices=[*SHAPES, "all"], default="base")
    parser.add_argument("--searches", nargs="+", choices=list(SEARCHES), default=list(SEARCHES))
    parser.add_argument("--precisions", nargs="+", choices=["fp32", "int8"], default=["fp32", "int8"])
    parser.add_argument("--nvs", type=int, default=1000, help="subwords that NVS selects (default: 1000)")
    parser.add_argument("--k", type=int, nargs="+", default=[200], help="candidates of lexica (default: 200)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="cpu: for a busy machine, with one thread"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    options = parser.parse_args()
    prepare_torch(options.threads)
    shapes = list(SHAPES) if options.shape == "all" else [options.shape]
    results = {shape: run(shape, options) for shape in shapes}
    machine = {
        "hardware": device_name(torch.device("cpu")),
        "threads": options.threads,
        "clock": options.clock,
        "repetitions": options.repetitions,
    }
    if options.json:
        rows = [row for of_shape in results.values() for row in of_shape]
        print(json.dumps({**machine, "rows": rows}, indent=2))
        return
    console = Console(width=100)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()))
    for shape, rows in results.items():
        console.print(table(rows, shape))


if __name__ == "__main__":
    main()
