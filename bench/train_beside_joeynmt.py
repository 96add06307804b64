"""Training speed beside JoeyNMT 2.3: target tokens (padding not counted) per second, in turns on one machine.

    python bench/train_beside_joeynmt.py --source train.en --target train.de --joeynmt PYTHON

PYTHON is an interpreter with JoeyNMT 2.3 installed (its pins do not go with creamtea's, so it has an
environment of its own: `pip install joeynmt==2.3.0 sentencepiece==0.2.0 importlib_metadata`; newer
sentencepieces lack what it calls, and it names the last one nowhere). Both train the shape of Multi30k on
the same subwords and batch size: 3 + 3 pre-norm layers, width 128, feed-forward 512, tied embeddings, 4,000
subwords, softmax with label smoothing 0.1, Adam. JoeyNMT trains by its own command in fp32 (its mixed
precision needs a GPU) and logs its speed; creamtea trains in bf16 autocast, its default, and in
fp32. The programs take turns, so that a busy machine slows all of them; the table gives medians and the ratio
to JoeyNMT.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from creamtea.methods.texts import Subwords
from creamtea_workers.corpora.subwords import SubwordModel, train_subwords

VOCABULARY = 4000
SPEED = re.compile(r"Tokens per Sec:\s+(\d+)")
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # set by creamtea
SPECIALS = 4  # pad, unk, bos, eos: JoeyNMT has its own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="source text, one sentence per line")
    parser.add_argument("--target", type=Path, required=True, help="target text, line by line")
    parser.add_argument("--joeynmt", required=True, help="a Python interpreter with JoeyNMT 2.3")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    speeds: dict[str, list[float]] = {"JoeyNMT, fp32": [], "creamtea, fp32": [], "creamtea, bf16": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, arguments)
        for _ in range(arguments.rounds):
            speeds["JoeyNMT, fp32"].append(joeynmt(folder, arguments))
            for autocast, label in (("none", "fp32"), ("bf16", "bf16")):
                speeds[f"creamtea, {label}"].append(creamtea(arguments, autocast))
    peer = statistics.median(speeds["JoeyNMT, fp32"])
    rows = [
        {"program": program, "tokens_per_second": (own := statistics.median(found)), "ratio": own / peer}
        for program, found in speeds.items()
    ]
    if arguments.json:
        print(json.dumps({"threads": arguments.threads, "rounds": speeds, "rows": rows}, indent=2))
        return
    print(f"{arguments.threads} threads, medians of {arguments.rounds} rounds of {arguments.updates} updates")
    for row in rows:
        print(f"{row['program']:<16} {row['tokens_per_second']:>8,.0f} tokens/s {row['ratio']:>6.2f}×")


def prepare(folder: Path, arguments: argparse.Namespace) -> None:
    """Text under the names that JoeyNMT wants, a subword model, its pieces, and JoeyNMT's configuration."""
    model = folder / "subwords.model"
    train_subwords([arguments.source, arguments.target], Subwords(kind="bpe", vocabulary=VOCABULARY), model)
    subwords = SubwordModel.load(model)
    pieces = subwords.pieces(range(SPECIALS, subwords.size))
    (folder / "pieces.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    for side, file in (("src", arguments.source), ("trg", arguments.target)):
        lines = file.read_text(encoding="utf-8").split("\n")
        (folder / f"train.{side}").write_text("\n".join(lines), encoding="utf-8")
        (folder / f"dev.{side}").write_text("\n".join(lines[:50]) + "\n", encoding="utf-8")
    (folder / "joeynmt.yaml").write_text(yaml.safe_dump(configuration(folder, arguments)), encoding="utf-8")


def configuration(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    side = {
        "max_length": 128,
        "level": "bpe",
        "voc_file": str(folder / "pieces.txt"),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(folder / "subwords.model")},
    }
    layers = {
        "type": "transformer",
        "num_layers": 3,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 128, "scale": True, "dropout": 0.1},
        "hidden_size": 128,
        "ff_size": 512,
        "dropout": 0.1,
        "layer_norm": "pre",
    }
    return {
        "name": "bench",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "dataset_type": "plain",
            "src": {"lang": "src", **side},
            "trg": {"lang": "trg", **side},
            "special_symbols": {
                "unk_token": "<unk>",
                "pad_token": "<pad>",
                "bos_token": "<s>",
                "eos_token": "</s>",
            },
        },
        "testing": {"batch_size": 16, "batch_type": "sentence", "beam_size": 1, "eval_metrics": ["bleu"]},
        "training": {
            "loss": "crossentropy",
            "normalization": "tokens",
            "label_smoothing": 0.1,
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": 0.0005,
            "learning_rate_min": 0.0,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 400,
            "clip_grad_norm": 1.0,
            "batch_size": arguments.batch_tokens,
            "batch_type": "token",
            "epochs": 100,
            "updates": arguments.updates,
            "max_updates": arguments.updates,
            "logging_freq": 20,
            "validation_freq": 10**6,
            "early_stopping_metric": "loss",
            "shuffle": True,
            "overwrite": True,
        },
        "model": {
            "tied_embeddings": True,
            "tied_softmax": True,
            "initializer": "xavier_uniform",
            "encoder": dict(layers),
            "decoder": dict(layers),
        },
    }


def environment(threads: int) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": str(threads)}


def joeynmt(folder: Path, arguments: argparse.Namespace) -> float:
    """The median of the speeds in JoeyNMT's log, the first of which is its warm-up."""
    command = [arguments.joeynmt, "-m", "joeynmt", "train", str(folder / "joeynmt.yaml"), "--skip-test"]
    # threads that wait as they do without creamtea, which JoeyNMT is faster with
    own = {name: value for name, value in environment(arguments.threads).items() if name not in WAITING}
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    speeds = [float(speed) for speed in SPEED.findall(done.stdout + done.stderr)][1:]
    if not speeds:
        sys.exit(f"JoeyNMT's log has no speed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return statistics.median(speeds)


def creamtea(arguments: argparse.Namespace, autocast: str) -> float:
    script = Path(__file__).with_name("train_speed.py")
    command = [
        sys.executable,
        str(script),
        "--source",
        str(arguments.source),
        "--target",
        str(arguments.target),
    ]
    command += ["--updates", str(arguments.updates), "--batch-tokens", str(arguments.batch_tokens)]
    command += ["--autocast", autocast, "--row", json.dumps(["softmax", False, arguments.threads])]
    done = subprocess.run(
        command, env=environment(arguments.threads), check=True, capture_output=True, text=True
    )
    return float(json.loads(done.stdout)["tokens_per_second"])


if __name__ == "__main__":
    main()
