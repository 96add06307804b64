"""The outputs of systems side by side: which there are, and each text with what differs in it marked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.diff import Piece, differences
from creamtea.document.raw import is_without_references
from creamtea.errors import InputError
from creamtea.report.model import Document, Table
from creamtea.report.text import number
from creamtea.store.database import Database
from creamtea.store.queries import (
    OUTPUTS,
    PageQuery,
    SegmentFilter,
    SideBySide,
    find_study,
    side_by_side,
    study_nodes,
)
from creamtea.wording import counted

DRAWN = 100  # segments of a test set that a report's file holds
SEED = 1


@dataclass(frozen=True)
class Translations:
    """Where the outputs of a study on one test set are; systems and metrics in the study's order."""

    test_set: str  # step key
    against: dict[str, str]  # what each system is compared with; no baselines
    decodes: dict[str, str]  # system: step key, of its first seed
    scores: dict[str, dict[str, str]]  # metric: system: step key, of the same seed
    columns: dict[str, Column]  # by metric
    source_language: str
    target_language: str
    has_references: bool = True


@dataclass(frozen=True)
class Line:
    """A text of a segment; `own` for that of a system, None where it has not translated the segment."""

    name: str
    text: str | None
    language: str
    # the text in pieces, marked where it differs or has an idiom; empty where nothing could be marked
    pieces: Sequence[Piece] = ()
    score: str = ""
    own: bool = False


@dataclass(frozen=True)
class Outputs:
    """Some segments of a test set."""

    test_set: str
    about: str
    segments: tuple[tuple[int, list[Line]], ...]  # by their numbers, from 1


def translations(session: Session, study: int, table: Table, test_set: str) -> Translations | None:
    """`table` is that of the test set's systems. None where there are no outputs yet."""
    spec = find_study(session, study).spec
    nodes = [node for node in study_nodes(session, study) if node.state == "succeeded"]
    here = [node for node in nodes if node.labels.get("test_set") == test_set]
    decodes: dict[str, tuple[Any, str]] = {}  # with the seed, None for outputs that are given
    scores: dict[str, dict[str, str]] = {}
    for node in here:
        if node.kind in OUTPUTS:
            decodes.setdefault(node.labels["system"], (node.labels.get("seed"), node.key))
    for node in here:
        seed, _ = decodes.get(node.labels.get("system", ""), ("none", ""))
        if node.kind == "score" and seed == node.labels.get("seed"):
            scores.setdefault(node.labels["metric"], {})[node.labels["system"]] = node.key
    prepared = [node.key for node in here if node.kind == "test_set"]
    if not decodes or not prepared:
        return None
    return Translations(
        test_set=prepared[0],
        against={row.name: row.against for row in table.rows if row.against},
        decodes={system: key for system, (_, key) in decodes.items()},
        scores=scores,
        columns={column.key: column for column in table.columns},
        source_language=spec["languages"]["source"],
        target_language=spec["languages"]["target"],
        has_references=not is_without_references(spec["test_sets"][test_set]),
    )


def drawn_outputs(database: Database, report: Document, chosen: Sequence[int] = ()) -> list[Outputs]:
    """Segments of each test set with every system's output, marked where it differs from the baseline's:
    those with the `chosen` numbers, else DRAWN of them, always the same. InputError for a number that no
    segment has."""
    with database.session() as session:
        return [
            _drawn(session, name, own, chosen)
            for name in report.test_sets
            for own in [translations(session, report.number, report.table(f"systems/{name}/systems"), name)]
            if own is not None
        ]


def _drawn(session: Session, name: str, own: Translations, chosen: Sequence[int]) -> Outputs:
    decodes = list(own.decodes.values())
    total = side_by_side(session, PageQuery(own.test_set, decodes, limit=0)).total
    if wrong := [number for number in chosen if not 1 <= number <= total]:
        raise InputError(f"test set {name!r} has no segment {wrong[0]}; it has {counted(total, 'segment')}")
    drawn = random.Random(SEED).sample(range(total), min(DRAWN, total))
    indices = tuple(number - 1 for number in chosen) or tuple(drawn)
    metric = next((key for key in own.columns if key in own.scores), None)
    scores = own.scores.get(metric or "", {})
    query = PageQuery(
        own.test_set,
        decodes,
        list(scores.values()),
        SegmentFilter(indices=indices),
        limit=len(indices),
    )
    systems = list(own.decodes)
    compared = set(own.against.values())  # human references are compared with nothing
    baseline = next((system for system in systems if system in compared - own.against.keys()), systems[0])
    segments = tuple(
        (row.index + 1, lines(row, own, systems, baseline, metric, list(scores)))
        for row in side_by_side(session, query).rows
    )
    how = "chosen" if chosen else "all" if len(drawn) == total else f"drawn with seed {SEED}"
    about = f"{len(segments):,} of {counted(total, 'segment')}, {how}. Marked: what differs from {baseline}"
    scored = "" if metric is None else f"; beside it: {own.columns[metric].title} of the segment"
    return Outputs(name, f"{about}{scored}.", segments)


# ---------------------------------------------------------------- the texts of a segment


def lines(
    row: SideBySide,
    outputs: Translations,
    systems: Sequence[str],
    against: str | None,
    metric: str | None,
    scored: Sequence[str],
) -> list[Line]:
    """Source, reference and outputs. `against`: the system from which differences are marked, None for the
    reference; `scored`: the systems of the row's scores."""
    source, target = outputs.source_language, outputs.target_language
    values = dict(zip(scored, row.scores, strict=True))
    texts = {
        system: None if output is None else output.text
        for system, output in zip(systems, row.outputs, strict=True)
    }
    base = row.reference if against is None else texts[against]

    def score(system: str) -> str:
        value = values.get(system)
        return "" if value is None or metric is None else number(value, outputs.columns[metric])

    reference = Line("reference", row.reference, target, _idioms(row.reference, _spans(row.idioms, "target")))
    return [
        Line("source", row.source, source, _idioms(row.source, _spans(row.idioms, "source"))),
        *([reference] if outputs.has_references else []),
        *(
            Line(
                system,
                text,
                target,
                _differences(text, None if system == against else base),
                score(system),
                own=True,
            )
            for system, text in texts.items()
        ),
    ]


def _differences(text: str | None, against: str | None) -> list[Piece]:
    if text is None or against is None or not text.strip():
        return []
    return differences(text, against)


def _idioms(text: str, spans: Sequence[tuple[int, int]]) -> list[Piece]:
    if not text.strip() or not spans:
        return []
    cuts = [0, *(position for span in spans for position in span), len(text)]
    return [
        Piece(text[start:end], marked=bool(number % 2)) for number, (start, end) in enumerate(pairwise(cuts))
    ]


def _spans(idioms: Sequence[dict[str, Any]], side: str) -> list[tuple[int, int]]:
    """The stretches of the idioms on one side, sorted, overlaps joined."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((int(idiom[side][0]), int(idiom[side][1])) for idiom in idioms if idiom[side]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
