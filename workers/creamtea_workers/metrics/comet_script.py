"""Score segments with COMET, in COMET's own environment. Imports nothing from creamtea.

    python -I comet_script.py --model NAME_OR_PATH [--batch-size N] [--gpus N]

Reads and prints JSON Lines as scorers do (docs/scorers.md). Progress is counted in batches; the scores come
at the end. Whatever the libraries print goes to standard error.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import hashlib
import importlib.metadata
import json
import math
import os
import sys
import traceback
from pathlib import Path
from typing import Any

REMEDY = (
    "fetch the model once with a network (HF_HUB_OFFLINE unset, and logged in to the hub for a gated model), "
    "or give the path of a checkpoint as the metric's `model`; the next run tries again"
)


# COMET imports very many objects: Python would search them for garbage again and again.
gc.set_threshold(10_000, 10, 10)
atexit.register(gc.freeze)


class Unavailable(Exception):
    """The model, or a part of this environment, is unavailable."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--gpus", type=int, default=0)
    args = parser.parse_args()

    # keep standard output for messages; whatever the libraries print goes to standard error
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    try:
        score(args.model, args.batch_size, args.gpus, send)
    except Unavailable as error:
        send({"error": f"{error}; {REMEDY}"})
        return 1
    except Exception as error:
        traceback.print_exc()
        send({"error": one_line(error)})
        return 1
    return 0


def score(model_name: str, batch_size: int, gpus: int, send: Any) -> None:
    if gpus and not imported("torch").cuda.is_available():  # before gigabytes are fetched
        raise Unavailable("a GPU was reserved, but the torch of COMET's environment sees none")
    local = local_checkpoint(model_name)
    send({"message": f"fetching {model_name}"})
    checkpoint, revision = (local, digest(local)) if local else fetch(model_name)
    comet, torch = imported("comet"), imported("torch")

    send({"message": "loading the model"})
    try:
        model = comet.load_from_checkpoint(str(checkpoint))
    except OSError as error:  # the encoder's tokenizer and configuration come from the model hub
        raise Unavailable(f"a part of {model_name} cannot be fetched: {one_line(error)}") from error

    segments = [json.loads(line) for line in sys.stdin]
    samples = [
        {"src": segment["source"], "mt": segment["hypothesis"], "ref": segment["reference"]}
        for segment in segments
    ]
    if model.requires_references() and not any(sample["ref"] for sample in samples):
        send({"error": f"{model_name} needs references, and the test set has none"})
        return
    batches = math.ceil(len(samples) / batch_size)
    done = 0

    def count(*_: Any) -> None:
        nonlocal done
        done += 1
        send({"done": done, "total": batches})

    model.register_forward_hook(count)
    # no loader processes: tokenising is cheap, and they would outlive a killed parent
    output = model.predict(samples, batch_size=batch_size, gpus=gpus, num_workers=0, progress_bar=False)
    for segment, value in zip(segments, output.scores, strict=True):
        send({"index": segment["index"], "score": float(value)})
    version = importlib.metadata.version("unbabel-comet")
    facts = {
        "revision": revision,
        "class": type(model).__name__,
        "references": bool(model.requires_references()),
        "comet": version,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if gpus else "cpu",
    }
    corpus = float(output.system_score)
    send({"corpus": corpus, "signature": f"revision:{revision}|version:{version}", "facts": facts})


def imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise Unavailable(f"this environment cannot import COMET ({one_line(error)})") from error


def local_checkpoint(model: str) -> Path | None:
    """Find the checkpoint at a path: a file, or a model's folder. None for a name on the hub."""
    path = Path(model)
    if path.is_dir():
        path = path / "checkpoints" / "model.ckpt"
    if path.is_file():
        return path
    # names on the hub are OWNER/NAME or NAME
    if model.startswith((".", "/", "~")) or model.endswith(".ckpt") or model.count("/") > 1:
        raise Unavailable(f"there is no checkpoint at {path}")
    return None


def digest(path: Path) -> str:
    """Return the beginning of a file's sha256, which pins a local checkpoint."""
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            sha256.update(block)
    return sha256.hexdigest()[:12]


def fetch(model: str) -> tuple[Path, str]:
    """Fetch a model by name, from the hub or its cache; return its checkpoint and its pinned revision.

    Does what COMET's `download_model` does, without spending seconds on importing COMET. Only COMET itself
    can locate names without an owner, from its first versions.
    """
    package = imported("huggingface_hub" if "/" in model else "comet")
    try:
        if "/" in model:
            path = Path(package.snapshot_download(repo_id=model)) / "checkpoints" / "model.ckpt"
        else:
            path = Path(package.download_model(model))
    except Exception as error:
        cause: BaseException = error  # download_model hides the first error behind "not supported"
        while cause.__context__ is not None:
            cause = cause.__context__
        raise Unavailable(f"the model {model!r} cannot be fetched: {one_line(cause)}") from error
    if not path.is_file():
        raise Unavailable(f"what the hub has as {model!r} holds no COMET checkpoint")
    parts = path.parts  # in the hub's cache: .../snapshots/REVISION/checkpoints/model.ckpt
    revision = parts[parts.index("snapshots") + 1] if "snapshots" in parts else path.parents[1].name
    return path, revision[:12]


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
