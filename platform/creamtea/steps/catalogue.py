"""The catalogue: every kind of step, with those that methods bring along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.contract.step import StepKind
from creamtea.methods.analysis import ANALYSES, DIFFERENCES
from creamtea.methods.corpora import CORPORA
from creamtea.steps.systems import (
    AGREEMENT,
    COMPARE,
    DECODE,
    IMPORT_MODEL,
    LATENCY,
    OUTPUTS,
    PAIRS,
    RECALL,
    SCORE,
    TRAIN,
)
from creamtea.steps.texts import ALIGN, CORPUS, ENCODE, OVERLAP, SHORTLIST, SUBWORDS, TEST_SET


def _kinds() -> Iterator[StepKind[Any]]:
    """Yield the kinds in the order in which a study runs."""
    yield from (CORPUS, TEST_SET, OVERLAP, SUBWORDS, ENCODE, ALIGN, SHORTLIST)
    for corpus in CORPORA.kinds.values():
        yield from corpus.steps
    yield from (IMPORT_MODEL, TRAIN, DECODE, OUTPUTS, SCORE, COMPARE, PAIRS, AGREEMENT, RECALL)
    for analysis in ANALYSES.kinds.values():
        yield analysis.step
    yield DIFFERENCES
    yield LATENCY


STEP_KINDS: dict[str, StepKind[Any]] = {kind.name: kind for kind in _kinds()}
