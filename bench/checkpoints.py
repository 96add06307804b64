"""A large checkpoint in one file and in parts: memory, and how long an update waits for it.

python bench/checkpoints.py --megabytes 1000 --part 100
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import torch

from creamtea.store.artefacts import ArtefactStore
from creamtea_workers.training.checkpoint import Saver

TENSOR = 4_000_000  # bytes


def measure(megabytes: int, part: int, folder: str) -> None:
    os.environ["CREAMTEA_CHECKPOINT_PART_MB"] = str(part)
    content = {f"{n}": torch.randn(TENSOR // 4) for n in range(megabytes * 1_000_000 // TENSOR)}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    saver = Saver(ArtefactStore(folder).checkpoints("key"))
    began = time.perf_counter()
    saver.save("training.pt", content)
    free = time.perf_counter() - began  # until the next update may begin
    saver.settle()
    changing = time.perf_counter() - began  # until it may change the weights
    saver.wait()
    written = time.perf_counter() - began
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
    files = len(list(Path(folder).rglob("*.safetensors"))) or 1
    print(f"{part:>9} {files:>6} {free:>9.2f} {changing:>9.2f} {written:>9.2f} {more:>9.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--part", type=int, default=100, help="MB")
    arguments = parser.parse_args()
    print("part, MB   files   free, s change, s   whole, s  more, MB")
    for part in (2 * arguments.megabytes, arguments.part):
        with tempfile.TemporaryDirectory() as folder:
            given = (arguments.megabytes, part, folder)
            process = multiprocessing.get_context("spawn").Process(target=measure, args=given)
            process.start()
            process.join()


if __name__ == "__main__":
    main()
