"""The catalogue of all kinds of steps, including the kinds that methods add."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.contract.step import StepKind
from creamtea.methods.analysis import ANALYSES, DIFFERENCES
from creamtea.methods.corpora import CORPORA
from creamtea.steps import systems, texts


def _kinds() -> Iterator[StepKind[Any]]:
    """Yield the kinds in the order in which a study runs."""
    yield from texts.KINDS
    for corpus in CORPORA.kinds.values():
        yield from corpus.steps
    yield from systems.KINDS
    for analysis in ANALYSES.kinds.values():
        yield analysis.step
    yield DIFFERENCES
    yield systems.LATENCY


STEP_KINDS: dict[str, StepKind[Any]] = {kind.name: kind for kind in _kinds()}


def is_of_this_version(kind: str, version: int) -> bool:
    """Return True if this creamtea can run steps of this kind and version."""
    known = STEP_KINDS.get(kind)
    return known is not None and known.version == version
