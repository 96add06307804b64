"""A small language of number words, and a training that can be interrupted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from step_context import FolderCheckpoints

from creamtea.steps.systems import TrainParams
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.training.evaluate import Development
from creamtea_workers.training.group import Group
from creamtea_workers.training.trainer import Trainer, TrainingResult

WORDS = 10
FIRST = 4  # ids of words start after pad, unk, bos and eos


class Numbers:
    """Stands for a SubwordModel: every id is a word."""

    size = FIRST + WORDS
    source_vocabulary = None

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(str(i) for i in ids)


def reversals(count: int, longest: int, seed: int) -> Pairs:
    """Sentences and the same backwards."""
    random = np.random.default_rng(seed)
    rows = [
        random.integers(FIRST, FIRST + WORDS, random.integers(1, longest + 1)).tolist() for _ in range(count)
    ]
    return Pairs(rows, [row[::-1] for row in rows])


def development(pairs: Pairs) -> Development:
    references = [Numbers().decode(row.tolist()) for row in pairs.targets]
    return Development(pairs, references, Numbers())


def raw_parameters(
    training: dict[str, Any], architecture: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """`architecture`: what differs from the small one of its kind."""
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "width": 32, "heads": 4, "feed_forward": 64}
    own = {"kind": "transformer", **(architecture or {})}
    return {
        "objective": {"kind": "softmax", "label_smoothing": 0.1},
        "architecture": {**({"layers": 1} if own["kind"] == "rnn" else sizes), **own},
        "nvs": None,
        "training": training,
        "seed": 1,
        **changes,
    }


def parameters(
    training: dict[str, Any], architecture: dict[str, Any] | None = None, **changes: Any
) -> TrainParams:
    return TrainParams.model_validate(raw_parameters(training, architecture, **changes))


class Killed(Exception):
    pass


def trainer(
    params: TrainParams,
    pairs: Pairs,
    folder: Path,
    dev: Pairs | None = None,
    kill_at: float = float("inf"),
    initial: Path | None = None,
    group: Group | None = None,
) -> Trainer:
    """A trainer that dies at the first progress from update `kill_at` on."""

    def progress(done: float, total: float, message: str) -> None:
        assert 0 <= done <= total
        if done >= kill_at:
            raise Killed

    held_out = development(reversals(8, 5, seed=9) if dev is None else dev)
    checkpoints = FolderCheckpoints(folder)
    return Trainer(params, pairs, held_out, torch.device("cpu"), checkpoints, progress, initial, group)


def interrupted(
    params: TrainParams, pairs: Pairs, folder: Path, stops: Sequence[int], initial: Path | None = None
) -> TrainingResult:
    """Trained by a new process for every stop (its generators start elsewhere)."""
    for stop in stops:
        torch.manual_seed(stop)
        with pytest.raises(Killed):
            trainer(params, pairs, folder, kill_at=stop, initial=initial).run()
    torch.manual_seed(99)
    return trainer(params, pairs, folder, initial=initial).run()


def trained_twice(
    params: TrainParams, pairs: Pairs, folder: Path, stops: Sequence[int], initial: Path | None = None
) -> tuple[TrainingResult, TrainingResult]:
    """Train without and with interruptions, which must end with the same weights. Stops below 0 count from
    behind: the last update is -1."""
    whole = trainer(params, pairs, folder / "whole", initial=initial).run()
    ends = [stop if stop >= 0 else whole.position.update + 1 + stop for stop in stops]
    pieces = interrupted(params, pairs, folder / "pieces", ends, initial)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, pieces.model.state_dict()[name]), name
    return whole, pieces
