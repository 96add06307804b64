"""Training speed on a CPU: target tokens (padding not counted) per second, by objective and threads.

    python bench/train_speed.py [--source FILE --target FILE] [--threads 1 2] [--updates 40] [--json]

The shape is that of Multi30k: 3 + 3 layers, width 128, feed-forward 512, a vocabulary of 4000, bf16
autocast. Without files the text is random, with the lengths of Multi30k (11 to 25 subwords, mostly).
Whole updates are timed, batch making and optimiser included; validation and checkpoints are not. Every
row is a process of its own, so that thread pools and malloc start fresh.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from creamtea.methods.architectures import Nvs, TransformerArchitecture
from creamtea.methods.objectives import Entmax, Objective, Scones, Softmax
from creamtea.methods.texts import Subwords
from creamtea.methods.training import Training
from creamtea.steps.systems import TrainParams
from creamtea_workers.corpora.batches import Pairs, plan_epoch
from creamtea_workers.corpora.subwords import SubwordModel, train_subwords
from creamtea_workers.corpora.text import read_lines
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import device_name
from creamtea_workers.training.evaluate import Development
from creamtea_workers.training.trainer import Trainer

OBJECTIVES: dict[str, Objective] = {
    "softmax": Softmax(kind="softmax", label_smoothing=0.1),
    "scones": Scones(kind="scones", alpha=0.5),
    "entmax": Entmax(kind="entmax", label_smoothing=0.1),
}
ROWS = [("softmax", False), ("softmax", True), ("scones", False), ("entmax", False)]
VOCABULARY = 4000
CPU = torch.device("cpu")
WARM_UP = 10  # updates before the clock starts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, help="source text, one sentence per line")
    parser.add_argument("--target", type=Path, help="target text, line by line")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--autocast", choices=["none", "bf16"], default="bf16")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--row", help=argparse.SUPPRESS)  # one measurement, in a process of its own
    arguments = parser.parse_args()
    if (arguments.source is None) != (arguments.target is None):
        parser.error("--source and --target go together")
    if arguments.row:
        objective, nvs, threads = json.loads(arguments.row)
        print(json.dumps(measure(arguments, objective, nvs, threads)))
        return
    if not arguments.json:
        print(f"{device_name(CPU)}, torch {torch.__version__}", flush=True)
    results = []
    for threads in arguments.threads:
        for objective, nvs in ROWS:
            results.append(in_new_process([objective, nvs, threads]))
            if not arguments.json:
                show(results[-1], heading=len(results) == 1)
    if arguments.json:
        print(json.dumps(results, indent=2))


def in_new_process(row: list[Any]) -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(row[2])}
    command = [sys.executable, __file__, *sys.argv[1:], "--row", json.dumps(row)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def show(result: dict[str, Any], heading: bool) -> None:
    if heading:
        print(f"{'objective':<10} {'NVS head':<9} {'threads':>7} {'tokens/s':>9} {'tokens/CPU s':>13}")
    print(
        f"{result['objective']:<10} {'yes' if result['nvs'] else 'no':<9} {result['threads']:>7} "
        f"{result['tokens_per_second']:>9,.0f} {result['tokens_per_cpu_second']:>13,.0f}",
        flush=True,
    )


def measure(arguments: argparse.Namespace, objective: str, nvs: bool, threads: int) -> dict[str, Any]:
    prepare_torch(threads)
    pairs, subwords = load_pairs(arguments)
    params = TrainParams(
        objective=OBJECTIVES[objective],
        architecture=TransformerArchitecture(),
        nvs=Nvs() if nvs else None,
        training=Training(batch_tokens=arguments.batch_tokens, autocast=arguments.autocast),
        seed=1,
    )
    trainer = Trainer(params, pairs, Development(pairs, [], subwords), CPU, Unused(), lambda *_: None)
    plan = plan_epoch(pairs, arguments.batch_tokens, seed=1, epoch=0)
    tokens, wall, processor = 0, 0.0, 0.0
    for update in range(WARM_UP + arguments.updates):
        if update == WARM_UP:
            tokens, wall, processor = 0, time.perf_counter(), time.process_time()
        batches = [plan[update % len(plan)]]
        trainer.update(batches)
        tokens += trainer.target_tokens(batches)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return {
        "objective": objective,
        "nvs": nvs,
        "threads": threads,
        "batch_tokens": arguments.batch_tokens,
        "tokens_per_second": tokens / wall,
        "tokens_per_cpu_second": tokens / processor,
        "torch": torch.__version__,
        "device": device_name(CPU),
    }


class Unused:
    """No checkpoints are saved."""

    def save(self, name: str, source: Path) -> None:
        raise NotImplementedError

    def load(self, name: str) -> Path | None:
        return None


class RandomSubwords:
    size = VOCABULARY
    source_vocabulary = None

    def decode(self, ids: Sequence[int]) -> str:
        return ""


def load_pairs(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """(pairs, subwords): of the files, with a vocabulary of their own, or random ones."""
    if arguments.source is None:
        random = np.random.default_rng(1)
        lengths = np.clip(random.normal(17, 6, size=(20000, 1)) + random.normal(0, 2, size=(20000, 2)), 4, 60)
        sources, targets = (
            [random.integers(4, VOCABULARY, int(n)).tolist() for n in lengths[:, side]] for side in (0, 1)
        )
        return Pairs(sources, targets), RandomSubwords()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "subwords.model"
        spec = Subwords(kind="bpe", vocabulary=VOCABULARY)
        train_subwords([arguments.source, arguments.target], spec, model)
        subwords = SubwordModel.load(model)
    source, target = (
        subwords.encode_lines(read_lines(file)) for file in (arguments.source, arguments.target)
    )
    return Pairs(source, target), subwords


if __name__ == "__main__":
    main()
