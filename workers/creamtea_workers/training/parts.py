"""Large checkpoints: their tensors in several files, with no second copy of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from creamtea.contract.parts import PartIndex, index_name, part_name
from creamtea.contract.step import Checkpoints
from creamtea.errors import DamagedCheckpoint, InfrastructureError
from creamtea.scratch import scratch_folder

Place = tuple[int | str, ...]  # the keys that lead to a tensor
REST = "rest.pt"


@dataclass
class Part:
    """The tensors of one file, as they are in the model: nothing is copied before it is written."""

    file: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    places: dict[str, list[Place]] = field(default_factory=dict)
    size: int = 0  # bytes


@dataclass
class Split:
    """The content of a checkpoint in parts. The same content has the same parts at every worker."""

    name: str
    save: str  # of this save alone
    rest: Any
    parts: list[Part]

    @classmethod
    def of(cls, content: Any, name: str, save: str, most: int) -> Split:
        """`most`: bytes of a part, unless it is a single tensor."""
        parts: list[Part] = []
        seen: dict[tuple[Any, ...], tuple[Part, str]] = {}
        for place, tensor in tensors_of(content):
            if (same := seen.get(identity(tensor))) is not None:  # tied weights are written once
                same[0].places[same[1]].append(place)
                continue
            if not parts or parts[-1].size + tensor.nbytes > most:
                file = part_name(name, save, f"{len(parts):05}.safetensors")
                parts.append(Part(file))
            part, key = parts[-1], "/".join(map(str, place))
            part.tensors[key], part.places[key] = tensor, [place]
            part.size += tensor.nbytes
            seen[identity(tensor)] = part, key
        return cls(name, save, without_tensors(content), parts)

    def write(self, checkpoints: Checkpoints, rank: int, workers: int) -> None:
        """This worker's share, one part after the other; the first also writes the rest."""
        with scratch_folder("checkpoint") as folder:
            file = Path(folder) / "part"
            for part in self.parts[rank::workers] if rank < workers else []:
                ready = {key: tensor.detach().cpu().contiguous() for key, tensor in part.tensors.items()}
                save_file(ready, file)
                checkpoints.save(part.file, file)
            if rank == 0:
                torch.save(self.rest, file)
                checkpoints.save(part_name(self.name, self.save, REST), file)

    def commit(self, checkpoints: Checkpoints) -> None:
        """Make it the checkpoint of this name, once every worker has written, and remove the one before."""
        before, written = read_index(checkpoints, self.name), set(checkpoints.names())
        if not written >= {part.file for part in self.parts} | {part_name(self.name, self.save, REST)}:
            raise InfrastructureError(
                "parts of the checkpoint are gone before it was whole: another attempt of this step has begun"
            )
        index = PartIndex(
            rest=part_name(self.name, self.save, REST),
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
    """With None for every tensor; tuples that hold some become lists."""
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
    """Equal for tensors that are the same memory; an empty one has none."""
    if tensor.nbytes == 0:
        return (id(tensor),)
    return tensor.data_ptr(), tensor.device, tensor.dtype, tuple(tensor.shape), tensor.stride()


def bytes_of(content: Any) -> int:
    return sum({identity(tensor): tensor.nbytes for _, tensor in tensors_of(content)}.values())


# ---------------------------------------------------------------- reading


def read_index(checkpoints: Checkpoints, name: str) -> PartIndex | None:
    return checkpoints.read(index_name(name), lambda file: PartIndex.model_validate_json(file.read_bytes()))


def load_parts(checkpoints: Checkpoints, index: PartIndex) -> Any:
    """The content, on the CPU."""
    content = _part(checkpoints, index.rest, loaded)
    for file, tensors in index.tensors.items():
        stored = _part(checkpoints, file, load_file)
        for key, places in tensors.items():
            for place in places:
                content = _put(content, place, stored[key])
    return content


def _put(content: Any, place: list[int | str], tensor: Tensor) -> Any:
    if not place:
        return tensor
    *way, last = place
    at = content
    for key in way:
        at = at[key]
    at[last] = tensor
    return content


def loaded(file: Path) -> Any:
    """What torch.save wrote, on the CPU."""
    return torch.load(file, map_location="cpu", weights_only=True)


def _part(checkpoints: Checkpoints, file: str, parse: Callable[[Path], Any]) -> Any:
    content = checkpoints.read(file, parse)
    if content is None:
        raise missing(file)
    return content


def missing(file: str) -> DamagedCheckpoint:
    """The error about a file that a checkpoint refers to."""
    return DamagedCheckpoint(
        f"checkpoint {file} is missing: it was deleted. The step's next attempt begins from the checkpoint "
        "before, if that is sound, or anew"
    )


def discard(checkpoints: Checkpoints, name: str) -> None:
    """Remove a checkpoint in one file or in parts, the index first."""
    remove_index(checkpoints, name)
    for file in checkpoints.names():
        if file == name or file.startswith(f"{name}.parts/"):
            checkpoints.remove(file)


def is_whole(checkpoints: Checkpoints, name: str) -> bool:
    """Whether nothing of a checkpoint is missing."""
    names = set(checkpoints.names())
    index = read_index(checkpoints, name)
    return name in names if index is None else names.issuperset(index.files)


def remove_index(checkpoints: Checkpoints, name: str) -> None:
    """Where a checkpoint in one file has taken the place of one in parts."""
    if (index := read_index(checkpoints, name)) is not None:
        checkpoints.remove(index_name(name))
        remove_parts(checkpoints, index)


def remove_parts(checkpoints: Checkpoints, index: PartIndex | None) -> None:
    for file in index.files if index is not None else ():
        checkpoints.remove(file)
