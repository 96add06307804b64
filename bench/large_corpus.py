"""Text that does not fit into memory: time, disk and peak memory of each step, from files to 200 updates.

    python bench/large_corpus.py [--pairs 100000 1000000] [--source FILE --target FILE] [--folder FOLDER]
                                 [--leave-out align]

The pairs are those of the two files (without them, of the built-in language), again and again, each word
replaced with a probability of 0.1 by another word of its side, so that few pairs are exact duplicates. Every
step is a process of its own, on one thread. "check" is what hashing the step's inputs takes besides, as a
worker does before it: CPU seconds. Memory is the largest resident set, pages of mapped files included. The
files are deleted after each number of pairs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creamtea.contract.step import LiveView
from creamtea.settings import processor_name
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.artefacts import digest_of

NOISE = 0.1
DEV = 100  # pairs
LANGUAGES = {"source": "en", "target": "de"}
TRAINING = {"batch_tokens": 1024, "max_updates": 200, "warmup": 100, "autocast": "none", "patience": 99}
TINY = {"encoder_layers": 1, "decoder_layers": 1, "width": 64, "heads": 4, "feed_forward": 128}
INPUTS = {
    "corpus": (),
    "subwords": ("corpus",),
    "encode": ("corpus", "subwords"),
    "align": ("encode", "subwords"),
    "train": ("corpus", "subwords", "encode"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--source", type=Path, help="source text, one sentence per line")
    parser.add_argument("--target", type=Path, help="target text, line by line")
    parser.add_argument(
        "--vocabulary", type=int, default=None, help="of subwords (8000; built-in language: 600)"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="for the files")
    parser.add_argument("--leave-out", nargs="+", default=[], choices=["align", "train"], help="steps")
    parser.add_argument("--stage", nargs=2, help=argparse.SUPPRESS)  # one step, in a process of its own
    arguments = parser.parse_args()
    if (arguments.source is None) != (arguments.target is None):
        parser.error("--source and --target go together")
    if arguments.stage:
        print(json.dumps(run_stage(*arguments.stage, arguments)))
        return
    print(f"{processor_name()}, {os.cpu_count()} cores; one thread a step", flush=True)
    head = f"{'pairs':>11} {'step':<9} {'s':>8} {'CPU s':>8} {'check':>8} {'pairs/s':>9}"
    print(f"{head} {'B/pair':>7} {'peak MiB':>9}")
    for pairs in arguments.pairs:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            for stage in ("make", *(step for step in INPUTS if step not in arguments.leave_out)):
                command = [
                    sys.executable,
                    __file__,
                    *sys.argv[1:],
                    "--pairs",
                    str(pairs),
                    "--stage",
                    stage,
                    folder,
                ]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                show(pairs, stage, json.loads(done.stdout))


def show(pairs: int, stage: str, result: dict[str, float]) -> None:
    print(
        f"{pairs:>11,} {stage:<9} {result['seconds']:>8.1f} {result['cpu']:>8.1f} "
        f"{result['check']:>8.2f} {pairs / result['seconds']:>9,.0f} "
        f"{result['bytes'] / pairs:>7.0f} {result['mib']:>9,.0f}",
        flush=True,
    )


def run_stage(stage: str, name: str, arguments: argparse.Namespace) -> dict[str, float]:
    folder = Path(name)
    output = folder / stage
    output.mkdir()
    started = time.perf_counter()
    if stage == "make":
        make_pairs(output, arguments)
    else:
        kind = STEP_KINDS[stage]
        getattr(importlib.import_module(kind.module), kind.function)(context_of(stage, folder, arguments))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds, cpu = time.perf_counter() - started, time.process_time()
    for role in INPUTS.get(stage, ()):
        for path in (folder / role).iterdir():
            digest_of(path)
    return {
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "check": time.process_time() - cpu,
        "bytes": sum(path.stat().st_size for path in output.iterdir()),
        "mib": usage.ru_maxrss / 1024,
    }


# ---------------------------------------------------------------- steps without an engine


@dataclass
class FolderCheckpoints:
    """Checkpoints in a folder."""

    folder: Path

    def save(self, name: str, source: Path) -> None:
        shutil.copy(source, self.folder / name)

    def read(self, name: str, parse: Callable[[Path], Any]) -> Any:
        path = self.folder / name
        return parse(path) if path.exists() else None

    def names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()]

    def remove(self, name: str) -> None:
        self.folder.joinpath(name).unlink(missing_ok=True)


@dataclass
class Context:
    """`creamtea.contract.step.StepContext` over folders."""

    params: Any
    folders: dict[str, Path]
    output: Path
    locations: dict[str, str]
    checkpoints: FolderCheckpoints
    cpus: int = 1
    gpus: float = 0.0

    def input(self, role: str) -> Path:
        return self.folders[role]

    def inputs(self, role: str) -> list[Path]:
        return [self.folders[role]] if role in self.folders else []

    def progress(self, done: float, total: float, message: str = "") -> None:
        pass

    def has_more_room(self) -> bool:
        return False

    def show(self, view: LiveView) -> None:
        pass


def context_of(stage: str, folder: Path, arguments: argparse.Namespace) -> Context:
    made = folder / "make"
    params: dict[str, dict[str, Any]] = {
        "corpus": {
            "corpus": {
                "kind": "files",
                "train": [{"source": "train.src", "target": "train.tgt"}],
                "dev": {"source": "dev.src", "target": "dev.tgt"},
            },
            "languages": LANGUAGES,
            "digests": json.loads((made / "digests.json").read_text()),
        },
        "subwords": {"subwords": {"vocabulary": arguments.vocabulary or (8000 if arguments.source else 600)}},
        "encode": {},
        "align": {"alignment": {}},
        "train": {
            "objective": {"kind": "softmax", "label_smoothing": 0.1},
            "architecture": TINY,
            "nvs": None,
            "training": TRAINING,
            "seed": 1,
        },
    }
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir(exist_ok=True)
    return Context(
        STEP_KINDS[stage].params.model_validate(params[stage]),
        {role: folder / role for role in INPUTS[stage]},
        folder / stage,
        {path.name: str(path) for path in made.iterdir()},
        FolderCheckpoints(checkpoints),
    )


# ---------------------------------------------------------------- text


def make_pairs(output: Path, arguments: argparse.Namespace) -> None:
    noisy = with_noise(list(base_pairs(arguments)))
    digests = {}
    for split, count in (("train", arguments.pairs[0]), ("dev", DEV)):
        hashes = [hashlib.sha256(), hashlib.sha256()]
        with (output / f"{split}.src").open("wb") as source, (output / f"{split}.tgt").open("wb") as target:
            for _ in range(count):
                for file, digest, line in zip((source, target), hashes, next(noisy), strict=True):
                    file.write(line)
                    digest.update(line)
        digests |= {
            f"{split}.{side}": one.hexdigest() for side, one in zip(("src", "tgt"), hashes, strict=True)
        }
    (output / "digests.json").write_text(json.dumps(digests))


def with_noise(base: list[tuple[list[str], list[str]]]) -> Iterator[list[bytes]]:
    rng = random.Random(1)
    words = [sorted({word for pair in base for word in pair[side]}) for side in (0, 1)]
    while True:
        for pair in base:
            sides = []
            for side, vocabulary in zip(pair, words, strict=True):
                noisy = list(side)
                for _ in range(max(1, round(NOISE * len(side)))):
                    noisy[int(rng.random() * len(side))] = vocabulary[int(rng.random() * len(vocabulary))]
                sides.append((" ".join(noisy) + "\n").encode())
            yield sides


def base_pairs(arguments: argparse.Namespace) -> Iterator[tuple[list[str], list[str]]]:
    if arguments.source is None:
        from creamtea.methods.corpora import SyntheticCorpus
        from creamtea_workers.corpora.synthetic import training_and_dev

        for segment in training_and_dev(SyntheticCorpus(kind="synthetic"))[0]:
            yield segment.source.split(), segment.reference.split()
        return
    lines = (path.read_text(encoding="utf-8").split("\n") for path in (arguments.source, arguments.target))
    for source, target in zip(*lines, strict=True):
        if source.split() and target.split():
            yield source.split(), target.split()


if __name__ == "__main__":
    main()
