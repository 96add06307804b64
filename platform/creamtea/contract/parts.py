"""A checkpoint in several files: how they are called, and the index that makes them one.

    training-000000000009.pt              a checkpoint in one file
    training-000000000009.pt.json         the index of a large one, written when its parts are there
    NAME.parts/<save>/00000.safetensors   a part; every save has a folder of its own
    NAME.parts/<save>/rest.pt             what is not a tensor

A part that no index names is a half of a save that did not end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pydantic import BaseModel

_PART = re.compile(r"(?P<name>.+)\.parts/[^/]+/[^/]+")


class PartIndex(BaseModel):
    rest: str  # the file with what is not a tensor: the content with None for every tensor
    # file: for each tensor in it the places in the content, each the keys that lead there
    tensors: dict[str, dict[str, list[list[int | str]]]]

    @property
    def files(self) -> list[str]:
        return [self.rest, *self.tensors]


def index_name(name: str) -> str:
    return f"{name}.json"


def part_name(name: str, save: str, file: str) -> str:
    return f"{name}.parts/{save}/{file}"


def halves(names: Iterable[str], read: Callable[[str], bytes]) -> list[str]:
    """Those of a step's checkpoints that are parts of no index. `read`: the content of a checkpoint."""
    known = set(names)
    indices: dict[str, frozenset[str]] = {}
    orphans = []
    for name in sorted(known):
        if (part := _PART.fullmatch(name)) is None:
            continue
        index = index_name(part["name"])
        if index not in indices:
            files = PartIndex.model_validate_json(read(index)).files if index in known else []
            indices[index] = frozenset(files)
        if name not in indices[index]:
            orphans.append(name)
    return orphans
