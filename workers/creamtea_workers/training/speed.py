"""How fast a training of some shape would be on this machine: a few real updates on random text."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch

from creamtea.contract.step import Checkpoints
from creamtea.steps.systems import TrainParams
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.models.interface import EOS
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.training.evaluate import Development
from creamtea_workers.training.trainer import Trainer

WARM_UP, SECONDS, MAX_UPDATES = 2, 1.4, 10  # updates before the clock runs; of measuring, in each round
ROUNDS = 3  # of all precisions in turn, so that what else the machine does hits them alike
BATCHES = 8


def tokens_per_second(
    architecture: dict[str, Any], vocabulary: int, batch_tokens: int, length: float, threads: int
) -> dict[str, list[float]]:
    """Measure target subwords per second in each round, by `autocast`.

    `length`: mean subwords per sentence.
    """
    prepare_torch(threads)
    pairs = _random_pairs(vocabulary, BATCHES * batch_tokens, length)
    trainers = {
        autocast: _trainer(
            pairs, vocabulary, architecture, {"batch_tokens": batch_tokens, "autocast": autocast}
        )
        for autocast in ("bf16", "none")
    }
    rounds: dict[str, list[float]] = {autocast: [] for autocast in trainers}
    for _ in range(ROUNDS):
        for autocast, trainer in trainers.items():
            rounds[autocast].append(_speed(trainer))
    return rounds


def _random_pairs(vocabulary: int, tokens: int, length: float) -> Pairs:
    random = np.random.default_rng(1)
    lengths = 1 + random.poisson(max(1.0, length - 2), max(2, round(tokens / length)))
    rows = [random.integers(EOS + 1, vocabulary, size) for size in lengths]
    return Pairs(rows, rows)


def _trainer(
    pairs: Pairs, vocabulary: int, architecture: dict[str, Any], training: dict[str, Any]
) -> Trainer:
    params = TrainParams.model_validate(
        {
            "objective": {"kind": "softmax", "label_smoothing": 0.1},
            "architecture": architecture,
            "nvs": None,
            "training": training,
            "seed": 1,
        }
    )
    # an update reads no text and saves nothing
    subwords: Any = SimpleNamespace(size=vocabulary, source_vocabulary=None)
    development, checkpoints = Development(pairs, (), subwords), cast(Checkpoints, None)
    return Trainer(
        params, pairs, development, torch.device("cpu"), checkpoints, lambda done, total, words: None
    )


def _speed(trainer: Trainer) -> float:
    batches = trainer.plan_of(0)
    started, first = 0.0, 0
    for update in range(WARM_UP + MAX_UPDATES):
        if update == WARM_UP:
            started, first = time.monotonic(), trainer.state.tokens
        elif update > WARM_UP and time.monotonic() - started > SECONDS:
            break
        trainer.update([batches[update % len(batches)]])
    return (trainer.state.tokens - first) / (time.monotonic() - started)
