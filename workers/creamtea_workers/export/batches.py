"""Work on many sentences in batches of similar lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Result = TypeVar("Result")
Sources = Sequence[Sequence[int]]  # subwords of each sentence, without </s>

_BATCH = 64  # sentences


def in_batches(work: Callable[[Sources], Sequence[Result]], sources: Sources) -> list[Result]:
    """What `work` makes of each source, in the order of the sources."""
    order = sorted(range(len(sources)), key=lambda n: len(sources[n]))
    results: dict[int, Result] = {}
    for start in range(0, len(order), _BATCH):
        part = order[start : start + _BATCH]
        results.update(zip(part, work([sources[n] for n in part]), strict=True))
    return [results[n] for n in range(len(sources))]
