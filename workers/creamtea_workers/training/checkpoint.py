"""Checkpoints, from which a training continues exactly, as plain tensors and JSON-like values.

Saves are atomic (`creamtea.contract.step.Checkpoints`). Files are read with `weights_only`, so that a
checkpoint cannot contain code. All workers write the parts of a large checkpoint (`creamtea.contract.step`).

A training keeps its last two checkpoints: if the newest is damaged, the next attempt begins from the one
before. The second one takes the space of a model with its optimiser, and of one more best model.
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.utils._pytree import tree_map_only

from creamtea.contract.step import Checkpoints, PartIndex, index_name, orphaned_parts, part_name
from creamtea.errors import DamagedCheckpoint, InfrastructureError
from creamtea.files import scratch_folder
from creamtea.methods.training import Keep
from creamtea.settings import checkpoint_part
from creamtea_workers.training.group import Group

_POSITION = re.compile(r"(training-\d+\.pt)(\.json|\.parts/.+)?")  # training-UPDATE.pt
KEPT = 2  # number of positions to keep


@dataclass
class Best:
    """A saved model: its development loss, update, and the slot (file) that holds it."""

    loss: float  # or another value that models are chosen by; lower is better
    update: int
    slot: int


@dataclass
class Position:
    """The progress of a training. The data's order depends only on (seed, epoch, position)."""

    update: int = 0
    epoch: int = 0
    position: int = 0  # finished batches of this epoch
    validated: int = 0  # the update of the last validation
    waited: int = 0  # validations since the best one
    stalled: int = 0  # validations since the best one and the last halving of the learning rate
    halvings: int = 0  # how often the learning rate was halved
    best: list[Best] = field(default_factory=list)  # best first
    spared: list[int] = field(default_factory=list)  # slots of the best models before the last validation
    points: list[tuple[str, int, float]] = field(default_factory=list)  # learning curves
    tokens: int = 0  # target tokens trained on, and the seconds spent on them, over all attempts
    seconds: float = 0.0
    loss_sum: float = 0.0  # sum of losses, and tokens, since the last point of the training loss
    loss_tokens: int = 0


class Saver:
    """Writes checkpoints in the background, one at a time, in the order in which they are saved.

    Every worker of the group calls the same methods in the same order. Content of at most `_part_bytes` is
    copied in memory, and the first worker writes it. Larger content is not copied, and each worker writes
    some of its parts: call `settle` before changing any of its tensors.
    """

    def __init__(self, checkpoints: Checkpoints, group: Group | None = None) -> None:
        self._checkpoints, self._group = checkpoints, group or Group()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None
        self._split: Split | None = None  # the content in parts that is being written
        self._part_bytes = 0  # from the first worker's settings

    def save(self, name: str, content: Any) -> None:
        """Store the current `content` under `name`. Raises the error of the previous write, if any."""
        self.wait()
        self._part_bytes = self._part_bytes or self._group.share(checkpoint_part)
        if bytes_of(content) > self._part_bytes:
            save_id = self._group.share(lambda: secrets.token_hex(6))
            self._split = Split.of(content, name, save_id, self._part_bytes)
            worker = (self._group.rank, self._group.size)
            self._pending = self._thread.submit(self._split.write, self._checkpoints, *worker)
        elif self._group.rank == 0:
            self._pending = self._thread.submit(self._save, name, on_cpu(content))

    def _save(self, name: str, content: Any) -> None:
        save(self._checkpoints, name, content)
        remove_old_positions(self._checkpoints)

    def settle(self) -> None:
        """Wait until the tensors of saved content may change."""
        if self._split is not None:
            self.wait()

    def wait(self) -> None:
        """Wait until everything is written."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
        split, self._split = self._split, None
        if split is not None:
            self._group.gather(None)  # wait until all have written
            if self._group.rank == 0:
                split.commit(self._checkpoints)
                remove_old_positions(self._checkpoints)

    def clear(self) -> None:
        """Remove the parts of a save that did not finish."""
        if self._group.rank == 0:
            for name in orphaned_parts(self._checkpoints.names(), self._read):
                self._checkpoints.remove(name)

    def _read(self, name: str) -> bytes:
        return self._checkpoints.read(name, Path.read_bytes) or b""

    def newest(self) -> str | None:
        """Return the name of the newest position; None if there is none."""
        self.wait()
        return self._group.share(lambda: max(position_names(self._checkpoints.names()), default=None))

    def discard_damaged(self) -> None:
        """Remove damaged files, and positions that lack a part or one of their best models.

        If no position is left, remove everything. Only this worker acts.
        """
        checkpoints = self._checkpoints
        for file in checkpoints.names():
            with suppress(DamagedCheckpoint):
                checkpoints.read(file, lambda copy: None)
        positions = position_names(checkpoints.names())
        for name in sorted(positions):
            sound = is_whole(checkpoints, name)
            if sound:
                index = read_index(checkpoints, name)
                content = load(checkpoints, name if index is None else index.rest)
                slots = [slot_name(best["slot"]) for best in content["position"]["best"]]
                sound = all(is_whole(checkpoints, slot) for slot in slots)
            if not sound:
                discard(checkpoints, name)
                positions.remove(name)
        for file in () if positions else checkpoints.names():
            checkpoints.remove(file)

    def close(self) -> None:
        """Let the current write finish, also if the attempt fails or is cancelled."""
        self._thread.shutdown()

    def load(self, name: str) -> Any:
        """Load the content saved under `name`; None if there is none.

        The first worker reads a single file for all workers; each worker reads parts itself.
        """
        self.wait()
        checkpoints = self._checkpoints
        content = self._group.share(lambda: read_index(checkpoints, name) or load(checkpoints, name))
        return load_parts(checkpoints, content) if isinstance(content, PartIndex) else content

    def load_existing(self, name: str) -> Any:
        """Load content that a checkpoint refers to. Raise DamagedCheckpoint if it is missing."""
        content = self.load(name)
        if content is None:
            raise missing(name)
        return content


def on_cpu(content: Any) -> Any:
    return tree_map_only(Tensor, lambda tensor: tensor.detach().to("cpu", copy=True), content)


def save(checkpoints: Checkpoints, name: str, content: Any) -> None:
    with scratch_folder("checkpoint") as folder:
        file = Path(folder) / name
        torch.save(content, file)
        checkpoints.save(name, file)
    remove_index(checkpoints, name)


def load(checkpoints: Checkpoints, name: str) -> Any:
    """Load the content of a single file; None if there is none."""
    return checkpoints.read(name, read_tensors)


def save_position(saver: Saver, position: Position, model: dict[str, Any], optimiser: dict[str, Any]) -> None:
    """Save the position with the model and the optimiser.

    Random state is not saved: it depends only on (seed, update).
    """
    name = f"training-{position.update:012}.pt"
    saver.save(name, {"position": asdict(position), "model": model, "optimiser": optimiser})


def load_position(saver: Saver) -> tuple[Position, dict[str, Any], dict[str, Any]] | None:
    """Load the newest (position, model's state, optimiser's state); None if there is none."""
    name = saver.newest()
    if name is None:
        return None
    content = saver.load_existing(name)
    fields = content["position"]
    fields["best"] = [Best(**best) for best in fields["best"]]
    return Position(**fields), content["model"], content["optimiser"]


def position_names(files: Iterable[str]) -> set[str]:
    """Return the names of the positions that these files belong to."""
    return {match[1] for file in files if (match := _POSITION.fullmatch(file))}


def remove_old_positions(checkpoints: Checkpoints) -> None:
    for name in sorted(position_names(checkpoints.names()))[:-KEPT]:
        discard(checkpoints, name)


def slot_name(slot: int) -> str:
    return f"best-{slot}.pt"


# Large checkpoints: their tensors go into several files, without a second copy in memory.


Place = tuple[int | str, ...]  # the keys that lead to a tensor
REST = "rest.pt"


@dataclass
class Part:
    """The tensors of one file. They are the model's own: nothing is copied before it is written."""

    file: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    places: dict[str, list[Place]] = field(default_factory=dict)
    size: int = 0  # bytes


@dataclass
class Split:
    """The content of a checkpoint in parts. The same content has the same parts at every worker."""

    name: str
    save_id: str
    rest: Any
    parts: list[Part]

    @classmethod
    def of(cls, content: Any, name: str, save_id: str, max_bytes: int) -> Split:
        """Split `content` into parts of at most `max_bytes`; a single larger tensor is a part of its own."""
        parts: list[Part] = []
        seen: dict[tuple[Any, ...], tuple[Part, str]] = {}
        for place, tensor in tensors_of(content):
            if (same := seen.get(identity(tensor))) is not None:  # tied weights are written once
                same[0].places[same[1]].append(place)
                continue
            if not parts or parts[-1].size + tensor.nbytes > max_bytes:
                file = part_name(name, save_id, f"{len(parts):05}.safetensors")
                parts.append(Part(file))
            part, key = parts[-1], "/".join(map(str, place))
            part.tensors[key], part.places[key] = tensor, [place]
            part.size += tensor.nbytes
            seen[identity(tensor)] = part, key
        return cls(name, save_id, without_tensors(content), parts)

    def write(self, checkpoints: Checkpoints, rank: int, workers: int) -> None:
        """Write this worker's share, one part after the other; the first worker also writes the rest."""
        with scratch_folder("checkpoint") as folder:
            file = Path(folder) / "part"
            for part in self.parts[rank::workers] if rank < workers else []:
                ready = {key: tensor.detach().cpu().contiguous() for key, tensor in part.tensors.items()}
                save_file(ready, file)
                checkpoints.save(part.file, file)
            if rank == 0:
                torch.save(self.rest, file)
                checkpoints.save(part_name(self.name, self.save_id, REST), file)

    def commit(self, checkpoints: Checkpoints) -> None:
        """Make the parts the checkpoint of this name, and remove the previous one.

        Call it once every worker has written.
        """
        before, written = read_index(checkpoints, self.name), set(checkpoints.names())
        if not written >= {part.file for part in self.parts} | {part_name(self.name, self.save_id, REST)}:
            raise InfrastructureError(
                "parts of the unfinished checkpoint were removed: another attempt of this step has begun"
            )
        index = PartIndex(
            rest=part_name(self.name, self.save_id, REST),
            tensors={
                part.file: {key: [list(place) for place in places] for key, places in part.places.items()}
                for part in self.parts
            },
        )
        with scratch_folder("checkpoint") as folder:
            file = Path(folder) / "index"
            file.write_text(index.model_dump_json(), encoding="utf-8")
            checkpoints.save(index_name(self.name), file)
        checkpoints.remove(self.name)
        remove_parts(checkpoints, before)


def tensors_of(content: Any, place: Place = ()) -> Iterator[tuple[Place, Tensor]]:
    if isinstance(content, Tensor):
        yield place, content
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield from tensors_of(value, (*place, key))
    elif isinstance(content, list | tuple):
        for position, value in enumerate(content):
            yield from tensors_of(value, (*place, position))


def without_tensors(content: Any) -> Any:
    """Replace every tensor by None. Tuples that hold tensors become lists."""
    if isinstance(content, Tensor):
        return None
    if next(tensors_of(content), None) is None:
        return content
    if isinstance(content, Mapping):
        return {key: without_tensors(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_tensors(value) for value in content]
    return content


def identity(tensor: Tensor) -> tuple[Any, ...]:
    """Return a key that is equal for tensors in the same memory; an empty tensor has its own key."""
    if tensor.nbytes == 0:
        return (id(tensor),)
    return tensor.data_ptr(), tensor.device, tensor.dtype, tuple(tensor.shape), tensor.stride()


def bytes_of(content: Any) -> int:
    return sum({identity(tensor): tensor.nbytes for _, tensor in tensors_of(content)}.values())


# ---------------------------------------------------------------- reading


def read_index(checkpoints: Checkpoints, name: str) -> PartIndex | None:
    return checkpoints.read(index_name(name), lambda file: PartIndex.model_validate_json(file.read_bytes()))


def load_parts(checkpoints: Checkpoints, index: PartIndex) -> Any:
    """Load the content of all parts, on the CPU."""
    content = read_part(checkpoints, index.rest, read_tensors)
    for file, tensors in index.tensors.items():
        stored = read_part(checkpoints, file, load_file)
        for key, places in tensors.items():
            for place in places:
                if place:
                    reduce(getitem, place[:-1], content)[place[-1]] = stored[key]
                else:
                    content = stored[key]
    return content


def read_tensors(file: Path) -> Any:
    return torch.load(file, map_location="cpu", weights_only=True)


def read_part(checkpoints: Checkpoints, file: str, parse: Callable[[Path], Any]) -> Any:
    content = checkpoints.read(file, parse)
    if content is None:
        raise missing(file)
    return content


def missing(file: str) -> DamagedCheckpoint:
    """Return the error for a missing file that a checkpoint refers to."""
    return DamagedCheckpoint(
        f"checkpoint {file} is missing: it was deleted. The step's next attempt begins from the "
        "previous checkpoint if that is intact, otherwise anew"
    )


def discard(checkpoints: Checkpoints, name: str) -> None:
    """Remove a checkpoint in one file or in parts, the index first."""
    remove_index(checkpoints, name)
    for file in checkpoints.names():
        if file == name or file.startswith(f"{name}.parts/"):
            checkpoints.remove(file)


def is_whole(checkpoints: Checkpoints, name: str) -> bool:
    """Return True if no file of a checkpoint is missing."""
    names = set(checkpoints.names())
    index = read_index(checkpoints, name)
    return name in names if index is None else names.issuperset(index.files)


def remove_index(checkpoints: Checkpoints, name: str) -> None:
    """Remove the index of a checkpoint in parts, if there is one, and then the parts."""
    if (index := read_index(checkpoints, name)) is not None:
        checkpoints.remove(index_name(name))
        remove_parts(checkpoints, index)


def remove_parts(checkpoints: Checkpoints, index: PartIndex | None) -> None:
    for file in index.files if index is not None else ():
        checkpoints.remove(file)


# The best models of a training (by development loss, or the newest), and their average.


State = dict[str, Tensor]


def keep_best(
    saver: Saver,
    best: list[Best],
    count: int,
    loss: float,
    update: int,
    model: State,
    keep: Keep = "best",
    spared: Collection[int] = (),
) -> list[Best]:
    """Add the model if it is good enough; return at most `count` models, best first.

    `keep`: the best models have the lowest losses ("best") or the highest updates ("last").

    There are two more slots than models. The new model goes into a slot that neither the last checkpoint
    (`best`) nor the one before it (`spared`) uses, so that an attempt that resumes from either finds all of
    its models.
    """
    taken = {*spared, *(kept.slot for kept in best)}
    slot = next(slot for slot in itertools.count() if slot not in taken)
    new = Best(loss, update, slot)
    kept = sorted([*best, new], key=lambda one: (one.loss, one.update) if keep == "best" else (-one.update,))
    if new in kept[:count]:
        saver.save(slot_name(slot), model)
    return kept[:count]


def average_best(saver: Saver, best: list[Best]) -> State:
    """Return the mean of the models' parameters."""
    total: State = {}
    for kept in best:
        for name, value in saver.load_existing(slot_name(kept.slot)).items():
            total[name] = total[name] + value if name in total else value
    return {name: value / len(best) for name, value in total.items()}
