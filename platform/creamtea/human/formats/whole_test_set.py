"""The whole test set of a campaign, not only what was rated, with the outputs and metrics of its systems.

A campaign of a study takes them from the store. Ratings made elsewhere know only their own items: those
segments are then the test set, and what is missing of them is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.human.formats.content import Content, ItemContent
from creamtea.human.making.outputs import first_node, read_lines
from creamtea.store.database import Database
from creamtea.store.item_kinds import ItemKind
from creamtea.store.queries import find_campaign, metrics_of, study_nodes
from creamtea.store.tables import SegmentScore, StudyRow


@dataclass(frozen=True)
class TestLine:
    """A segment; `outputs` in the campaign's order of systems."""

    __test__ = False  # for pytest

    index: int
    document: str
    source: str
    reference: str | None
    outputs: tuple[str | None, ...]


@dataclass(frozen=True)
class TestSetMetric:
    """A metric's values of every system: `segments` by system and line, empty without values of segments."""

    name: str
    systems: tuple[float, ...]
    segments: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class WholeTestSet:
    __test__ = False

    lines: tuple[TestLine, ...]
    metrics: tuple[TestSetMetric, ...] = ()
    left_out: tuple[str, ...] = ()  # metrics without a value of each system and segment


def whole_test_set(database: Database, content: Content) -> WholeTestSet:
    """InputError where the study's outputs are not there, or are not those that were rated."""
    with database.session() as session:
        study_id = find_campaign(session, content.name).study_id
        if study_id is None:
            return known_test_set(content)
        study = session.get_one(StudyRow, study_id)
        lines = read_lines(session, study, content.test_set, content.systems)
        documents = _documents(content, [line.index for line in lines])
        test_lines = tuple(
            TestLine(line.index, document, line.source, line.reference, line.outputs)
            for line, document in zip(lines, documents, strict=True)
        )
        _check_same(content, test_lines)
        metrics, left_out = _metrics(session, study_id, content, [line.index for line in lines])
    return WholeTestSet(test_lines, tuple(metrics), tuple(left_out))


def known_test_set(content: Content) -> WholeTestSet:
    """The segments that the items have. InputError where a system has two outputs of one."""
    return WholeTestSet(tuple(_known_lines(content)))


def rating_items(content: Content) -> list[ItemContent]:
    """The items whose ratings count in the statistics of systems."""
    return [item for item in content.items if ItemKind(item.kind).rates_systems]


def _known_lines(content: Content) -> list[TestLine]:
    sources: dict[int, str] = {}
    outputs: dict[tuple[int, str], str] = {}
    for item in rating_items(content):
        sources.setdefault(item.segment, item.source)
        for system, output in zip(item.systems, item.outputs, strict=True):
            if outputs.setdefault((item.segment, system), output) != output:
                raise InputError(
                    f"{content.segment_name(item.segment)}: system {system!r} has two outputs in the "
                    "campaign's items; "
                    "an mt-metrics-eval folder holds one"
                )
    indices = sorted(sources)
    return [
        TestLine(
            index,
            document,
            sources[index],
            None,
            tuple(outputs.get((index, system)) for system in content.systems),
        )
        for index, document in zip(indices, _documents(content, indices), strict=True)
    ]


def _documents(content: Content, indices: Sequence[int]) -> list[str]:
    """A document for each segment. Items name the documents of what is rated; segments between two of one
    document belong to it, and each other stretch is a document of its own: documents are contiguous."""
    known = {item.segment: item.document for item in rating_items(content) if item.document}
    names = [known.get(index, "") for index in indices]
    if not any(names):
        return [content.test_set] * len(names)
    last: dict[str, int] = {name: at for at, name in enumerate(names) if name}
    current = ""
    for at, name in enumerate(names):
        current = name or (current if last.get(current, -1) > at else "")
        names[at] = current
    filled: list[str] = []
    for number, (name, stretch) in enumerate(groupby(names), start=1):
        filled += [name or f"{content.test_set}-{number}"] * len(list(stretch))
    return filled


def _check_same(content: Content, lines: Sequence[TestLine]) -> None:
    """The study may have run again since: scores of other texts must not stand beside these."""
    by_index = {line.index: line for line in lines}
    for item in rating_items(content):
        line = by_index.get(item.segment)
        for system, output in zip(item.systems, item.outputs, strict=True):
            if line is None or line.outputs[content.systems.index(system)] != output:
                raise InputError(
                    f"item {item.position}: the study's output of system {system!r} for segment "
                    f"{item.segment} is not the one that was rated; export as csv or jsonl, which "
                    "hold the rated texts"
                )


def _metrics(
    session: Session, study_id: int, content: Content, indices: Sequence[int]
) -> tuple[list[TestSetMetric], list[str]]:
    nodes = study_nodes(session, study_id, "score")
    names = dict.fromkeys(
        str(node.labels["metric"]) for node in nodes if node.labels["test_set"] == content.test_set
    )
    metrics, left_out = [], []
    for name in names:
        firsts = [
            first_node(nodes, system=system, test_set=content.test_set, metric=name)
            for system in content.systems
        ]
        steps = [node for node in firsts if node is not None and node.state == "succeeded"]
        keys = [step.key for step in steps]
        if len(keys) < len(firsts):
            left_out.append(f"metric {name}: not every system has it")
            continue
        kinds = [str(step.params["metric"]["kind"]) for step in steps]
        values = metrics_of(session, keys)
        systems = [
            next(
                (
                    metric.value
                    for metric in values.get(key, [])
                    if (metric.name, metric.subject) == (kind, "")
                ),
                None,
            )
            for key, kind in zip(keys, kinds, strict=True)
        ]
        whole = [value for value in systems if value is not None]
        segments = [_segment_scores(session, key, indices) for key in keys]
        has_segments = all(scores is not None for scores in segments)
        if len(whole) < len(systems):
            left_out.append(f"metric {name}: not every system has a value")
            continue
        if not has_segments and any(scores is not None for scores in segments):
            left_out.append(f"metric {name}, segments: not every system has them")
        metrics.append(
            TestSetMetric(
                name, tuple(whole), tuple(scores for scores in segments if scores) if has_segments else ()
            )
        )
    return metrics, left_out


def _segment_scores(session: Session, key: str, indices: Sequence[int]) -> tuple[float, ...] | None:
    rows = session.execute(select(SegmentScore.index, SegmentScore.value).where(SegmentScore.step_key == key))
    values: dict[int, float] = dict(rows.all())
    if any(index not in values for index in indices):
        return None
    return tuple(values[index] for index in indices)
