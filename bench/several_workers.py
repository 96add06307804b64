"""Training speed of one model on several workers of one thread each: target tokens per second.

    python bench/several_workers.py [--workers 1 2] [--updates 20] [--accumulate 4] [--width 512]

The workers are processes that gloo connects, as below a train step; whole updates are timed. Random text
with the lengths of Multi30k, batches of `--batch-tokens` tokens, fp32. Equal weights have equal digests.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time

import torch
from torch import distributed
from train_speed import CPU, Unused, load_pairs

from creamtea.methods.architectures import TransformerArchitecture
from creamtea.methods.objectives import Softmax
from creamtea.methods.training import Training
from creamtea.steps.systems import TrainParams
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import device_name
from creamtea_workers.training.evaluate import Development
from creamtea_workers.training.group import current_group
from creamtea_workers.training.trainer import Trainer

WARM_UP = 2  # updates before the clock starts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--member", nargs=3, help=argparse.SUPPRESS)  # rank, workers, file of the group
    arguments = parser.parse_args()
    if arguments.member:
        rank, workers, file = arguments.member
        train(arguments, int(rank), int(workers), file)
        return
    print(f"{device_name(CPU)}, torch {torch.__version__}", flush=True)
    for workers in arguments.workers:
        with tempfile.TemporaryDirectory() as folder:
            print(of_group(workers, f"{folder}/group"), flush=True)


def of_group(workers: int, file: str) -> str:
    """What the first of them says."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, __file__, *sys.argv[1:], "--member"]
    members = [
        subprocess.Popen(
            [*command, str(rank), str(workers), file], env=environment, stdout=subprocess.PIPE, text=True
        )
        for rank in range(workers)
    ]
    said = [member.communicate()[0] for member in members]
    if any(member.returncode for member in members):
        raise SystemExit("a worker failed")
    return said[0].strip()


def train(arguments: argparse.Namespace, rank: int, workers: int, file: str) -> None:
    prepare_torch(1)
    if workers > 1:
        distributed.init_process_group("gloo", f"file://{file}", rank=rank, world_size=workers)
    pairs, subwords = load_pairs(argparse.Namespace(source=None))
    width = arguments.width
    params = TrainParams(
        objective=Softmax(kind="softmax", label_smoothing=0.1),
        architecture=TransformerArchitecture(width=width, feed_forward=4 * width, heads=width // 64),
        nvs=None,
        training=Training(
            batch_tokens=arguments.batch_tokens, accumulate=arguments.accumulate, autocast="none"
        ),
        seed=1,
    )
    development = Development(pairs, [], subwords)
    trainer = Trainer(params, pairs, development, CPU, Unused(), lambda *_: None, group=current_group())
    plan = trainer.plan_of(0)
    tokens, started = 0, 0.0
    for update in range(WARM_UP + arguments.updates):
        if update == WARM_UP:
            tokens, started = 0, time.perf_counter()
        first = update * arguments.accumulate % (len(plan) - arguments.accumulate)
        batches = plan[first : first + arguments.accumulate]
        trainer.update(batches)
        tokens += trainer.target_tokens(batches)
    speed = tokens / (time.perf_counter() - started)
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in trainer.model.parameters()))
    print(f"workers {workers:>2}   tokens/s {speed:>7,.0f}   weights {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
