"""What a training needs to continue exactly where it stopped, as plain tensors and JSON-like values.

Saves are atomic (`creamtea.contract.step.Checkpoints`); files are read with `weights_only`, so that a
checkpoint cannot contain code. A large one is written in parts (`creamtea.contract.parts`) by all workers.

A training keeps its last two checkpoints: if the newest is damaged, the next attempt begins from the one
before. That takes the space of a model and its optimiser once more, and of one more of the best models.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from creamtea.contract.parts import PartIndex, halves
from creamtea.contract.step import Checkpoints
from creamtea.errors import DamagedCheckpoint
from creamtea.scratch import scratch_folder
from creamtea.settings import checkpoint_part
from creamtea_workers.training.group import Alone, Group
from creamtea_workers.training.parts import (
    Split,
    bytes_of,
    discard,
    is_whole,
    load_parts,
    loaded,
    missing,
    read_index,
    remove_index,
)

_POSITION = re.compile(r"(training-\d+\.pt)(\.json|\.parts/.+)?")  # training-UPDATE.pt
KEPT = 2  # positions


@dataclass
class Best:
    """A saved model: its development loss, update, and the slot (file) that holds it."""

    loss: float  # or what else models are chosen by, lower is better
    update: int
    slot: int


@dataclass
class Position:
    """Where the training is. The data's order follows from (seed, epoch, position) alone."""

    update: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch that are done
    validated: int = 0  # the update of the last validation
    waited: int = 0  # validations since the best one
    stalled: int = 0  # of these, since the learning rate was last halved
    halvings: int = 0  # of the learning rate
    best: list[Best] = field(default_factory=list)  # best first
    spared: list[int] = field(default_factory=list)  # slots of the best models before the last validation
    points: list[tuple[str, int, float]] = field(default_factory=list)  # learning curves
    tokens: int = 0  # target tokens trained on, and the seconds spent on them, over all attempts
    seconds: float = 0.0
    loss_sum: float = 0.0  # since the last point of the training loss
    loss_tokens: int = 0


class Saver:
    """Writes checkpoints in the background, one at a time, in the order in which they are saved.

    Every worker of the group calls the same methods in the same order. A content of at most `part` bytes is
    copied in memory and written by the first. A larger one is written as it is, each worker some of its
    parts: before any of its tensors changes, `settle`.
    """

    def __init__(self, checkpoints: Checkpoints, group: Group | None = None) -> None:
        self._checkpoints, self._group = checkpoints, group or Alone()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None
        self._split: Split | None = None  # which is being written
        self._part = 0  # bytes; as the first worker's settings say

    def save(self, name: str, content: Any) -> None:
        """Store `content` as it is now under `name`; raises what the write before this one raised."""
        self.wait()
        self._part = self._part or self._group.share(checkpoint_part)
        if bytes_of(content) > self._part:
            save_id = self._group.share(lambda: secrets.token_hex(6))
            self._split = Split.of(content, name, save_id, self._part)
            place = (self._group.rank, self._group.size)
            self._pending = self._thread.submit(self._split.write, self._checkpoints, *place)
        elif self._group.rank == 0:
            self._pending = self._thread.submit(self._save, name, on_cpu(content))

    def _save(self, name: str, content: Any) -> None:
        save(self._checkpoints, name, content)
        remove_old_positions(self._checkpoints)

    def settle(self) -> None:
        """Wait until the tensors of what is being written may change."""
        if self._split is not None:
            self.wait()

    def wait(self) -> None:
        """Wait until everything is written."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
        split, self._split = self._split, None
        if split is not None:
            self._group.gather(None)  # all have written
            if self._group.rank == 0:
                split.commit(self._checkpoints)
                remove_old_positions(self._checkpoints)

    def clear(self) -> None:
        """Remove the halves that a save left which did not end."""
        if self._group.rank == 0:
            for name in halves(self._checkpoints.names(), self._read):
                self._checkpoints.remove(name)

    def _read(self, name: str) -> bytes:
        return self._checkpoints.read(name, Path.read_bytes) or b""

    def newest(self) -> str | None:
        """The name of the newest position; None at first."""
        self.wait()
        return self._group.share(lambda: max(position_names(self._checkpoints.names()), default=None))

    def discard_damaged(self) -> None:
        """Keep what the next attempt can begin from, after a DamagedCheckpoint. This worker acts alone."""
        discard_damaged(self._checkpoints)

    def close(self) -> None:
        """Let a write end, so that none is left behind by an attempt that is cancelled or fails."""
        self._thread.shutdown()

    def load(self, name: str) -> Any:
        """None where nothing was saved. One file is read by the first worker for all, parts by each."""
        self.wait()
        kept = self._checkpoints
        content = self._group.share(lambda: read_index(kept, name) or load(kept, name))
        return load_parts(kept, content) if isinstance(content, PartIndex) else content

    def load_existing(self, name: str) -> Any:
        """The same of a name that a checkpoint refers to: DamagedCheckpoint where it is missing."""
        content = self.load(name)
        if content is None:
            raise missing(name)
        return content


def on_cpu(content: Any) -> Any:
    """With copies of all tensors."""
    if isinstance(content, Tensor):
        return content.detach().to("cpu", copy=True)
    if isinstance(content, Mapping):
        return {name: on_cpu(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return type(content)(on_cpu(value) for value in content)
    return content


def save(checkpoints: Checkpoints, name: str, content: Any) -> None:
    """In one file."""
    with scratch_folder("checkpoint") as folder:
        file = Path(folder) / name
        torch.save(content, file)
        checkpoints.save(name, file)
    remove_index(checkpoints, name)


def load(checkpoints: Checkpoints, name: str) -> Any:
    """None where nothing was saved."""
    return checkpoints.read(name, loaded)


def save_position(saver: Saver, position: Position, model: dict[str, Any], optimiser: dict[str, Any]) -> None:
    """No random state: it follows from (seed, update)."""
    name = f"training-{position.update:012}.pt"
    saver.save(name, {"position": asdict(position), "model": model, "optimiser": optimiser})


def load_position(saver: Saver) -> tuple[Position, dict[str, Any], dict[str, Any]] | None:
    """(position, model's state, optimiser's state) of the newest; None at first."""
    name = saver.newest()
    if name is None:
        return None
    content = saver.load_existing(name)
    fields = content["position"]
    fields["best"] = [Best(**best) for best in fields["best"]]
    return Position(**fields), content["model"], content["optimiser"]


def position_names(files: Iterable[str]) -> set[str]:
    """The positions that these files are of."""
    return {match[1] for file in files if (match := _POSITION.fullmatch(file))}


def remove_old_positions(checkpoints: Checkpoints) -> None:
    for name in sorted(position_names(checkpoints.names()))[:-KEPT]:
        discard(checkpoints, name)


def discard_damaged(checkpoints: Checkpoints) -> None:
    """Remove damaged files, positions that lack a part or one of their best models, and everything if no
    position is left."""
    for file in checkpoints.names():
        with suppress(DamagedCheckpoint):
            checkpoints.read(file, lambda copy: None)
    positions = position_names(checkpoints.names())
    for name in sorted(positions):
        if not _is_sound(checkpoints, name):
            discard(checkpoints, name)
            positions.remove(name)
    for file in () if positions else checkpoints.names():
        checkpoints.remove(file)


def _is_sound(checkpoints: Checkpoints, name: str) -> bool:
    if not is_whole(checkpoints, name):
        return False
    index = read_index(checkpoints, name)
    content = load(checkpoints, name if index is None else index.rest)
    return all(is_whole(checkpoints, slot_name(best["slot"])) for best in content["position"]["best"])


def slot_name(slot: int) -> str:
    return f"best-{slot}.pt"
