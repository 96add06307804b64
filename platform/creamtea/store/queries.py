"""Queries of the report and the web app: typed, and each fetches no more than it needs.

Each takes a session; its result can be used after the session ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select, String, and_, cast, false, func, or_, select
from sqlalchemy.orm import Session, aliased

from creamtea.errors import NotInDatabase
from creamtea.printable import is_utf8
from creamtea.store.rows import from_row
from creamtea.store.tables import (
    Campaign,
    Event,
    Hypothesis,
    Metric,
    Point,
    Segment,
    SegmentScore,
    StepInput,
    StepRow,
    StudyRow,
    StudyStep,
)

OUTPUTS = ("decode", "outputs")  # the kinds of steps that make a system's outputs
KEYS_PER_QUERY = 500  # SQLite binds only a limited number of values
K = TypeVar("K", str, tuple[str, int])


# ---------------------------------------------------------------- studies


@dataclass(frozen=True)
class StudySummary:
    id: int
    name: str
    state: str
    created_at: datetime
    finished_at: datetime | None
    steps: dict[str, int]  # steps by state; a step that several nodes share counts once
    unavailable: int = 0  # failed steps that lack something here, such as a metric's model

    @property
    def total(self) -> int:
        return sum(self.steps.values())

    @property
    def done(self) -> int:
        return self.steps.get("succeeded", 0)

    @property
    def failed(self) -> int:
        """Steps without a result: failed, or not run because an earlier one failed."""
        return self.steps.get("failed", 0) - self.unavailable


def study_names(session: Session) -> dict[int, str]:
    """Return the names of all submitted studies, newest first."""
    rows = session.execute(select(StudyRow.id, StudyRow.name).order_by(StudyRow.id.desc()))
    return {row.id: row.name for row in rows}


def list_studies(session: Session) -> list[StudySummary]:
    """Return all submissions, newest first."""
    studies = session.scalars(select(StudyRow).order_by(StudyRow.id.desc())).all()
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    unavailable: dict[int, int] = defaultdict(int)
    steps = (
        select(StudyStep.study_id, StepRow.state, StepRow.error_kind, func.count(StepRow.key.distinct()))
        .join(StepRow, StepRow.key == StudyStep.step_key)
        .group_by(StudyStep.study_id, StepRow.state, StepRow.error_kind)
    )
    for study_id, state, kind, count in session.execute(steps):
        counts[study_id][state] = counts[study_id].get(state, 0) + count
        unavailable[study_id] += count if (state, kind) == ("failed", "unavailable") else 0
    return [
        from_row(StudySummary, row, steps=counts[row.id], unavailable=unavailable[row.id]) for row in studies
    ]


def count_steps(session: Session, study_id: int) -> tuple[int, int]:
    """Return the numbers of the study's succeeded steps and of all its steps."""
    steps = select(func.count(StepRow.key.distinct())).join(StudyStep).where(StudyStep.study_id == study_id)
    return session.scalar(steps.where(StepRow.state == "succeeded")) or 0, session.scalar(steps) or 0


def find_study(session: Session, study: str | int) -> StudyRow:
    """Return the submission with this number, or the newest with this name.

    Raises NotInDatabase, which lists the known studies.
    """
    query = select(StudyRow).order_by(StudyRow.id.desc()).limit(1)
    by_number = isinstance(study, int)
    known_as = StudyRow.id == study if by_number else StudyRow.name == study
    row = session.scalar(query.where(known_as)) if is_utf8(str(study)) else None
    if row is not None:
        return row
    names = session.scalars(
        select(StudyRow.name).group_by(StudyRow.name).order_by(func.max(StudyRow.id).desc()).limit(11)
    ).all()
    if not names:
        known = "the database has no study yet; `creamtea run STUDY.yaml` makes one"
    else:
        known = f"known studies: {', '.join(names[:10])}{', …' if len(names) > 10 else ''}"
    raise NotInDatabase(f"no study {'with number ' if by_number else ''}{study!r}; {known}")


# ---------------------------------------------------------------- a study's steps


@dataclass(frozen=True)
class Node:
    """A place in a study with its step; the fields are named as in StepRow."""

    name: str
    labels: dict[str, Any]
    key: str
    kind: str
    state: str
    params: dict[str, Any]
    attempts: int
    fence: int
    error_kind: str | None
    error: str | None
    facts: dict[str, Any]
    started_at: datetime | None
    finished_at: datetime | None
    not_before: datetime | None = None  # a ready step pauses until then, after an infrastructure failure

    @property
    def pause(self) -> float:
        """Seconds of the pause after the last attempt."""
        over, failed = self.not_before, self.finished_at
        return (over - failed).total_seconds() if over is not None and failed is not None else 0.0

    @property
    def has_failed(self) -> bool:
        """Return True if its last run failed; a step that had succeeded before keeps its result."""
        return self.state == "failed" or (self.state == "succeeded" and self.error_kind is not None)

    @property
    def outcome(self) -> str:
        """The state; for a failed step `outcome_word`."""
        return outcome_word(self.error_kind) if self.state == "failed" else self.state

    @property
    def predicate(self) -> str:
        """The rest of a sentence about the step: "is pending", "did not run, because …", "failed: …"."""
        if self.state != "failed":
            return f"is {self.state}"
        if self.error_kind == "upstream":
            return self.error or "did not run"
        return ": ".join(filter(None, ("failed", self.error)))


def outcome_word(error_kind: str | None) -> str:
    """Name the outcome of a step in the state "failed": unavailable, not run, or failed."""
    return {"unavailable": "unavailable", "upstream": "not run"}.get(error_kind or "", "failed")


def study_nodes(session: Session, study_id: int, *kinds: str) -> list[Node]:
    """Return a study's nodes in the plan's order: all, or those of some kinds."""
    query = (
        select(StudyStep, StepRow)
        .join(StepRow, StepRow.key == StudyStep.step_key)
        .where(StudyStep.study_id == study_id)
        .order_by(StudyStep.position, StudyStep.node)
    )
    if kinds:
        query = query.where(StepRow.kind.in_(kinds))
    return [
        from_row(Node, step, name=place.node, labels=place.labels, facts=_facts_of(step))
        for place, step in session.execute(query)
    ]


def _facts_of(step: StepRow) -> dict[str, Any]:
    """Return the step's facts; none while it runs again, when its row still has the earlier facts."""
    return (step.facts if step.state == "succeeded" else None) or {}


def steps_of(nodes: Iterable[Node]) -> dict[str, Node]:
    """Return key → node with each step once, at its first place."""
    steps: dict[str, Node] = {}
    for node in nodes:
        steps.setdefault(node.key, node)
    return steps


def inputs_of(session: Session, keys: Iterable[str]) -> dict[str, list[StepInput]]:
    inputs: dict[str, list[StepInput]] = {}
    for batch in batches(keys):
        place = (StepInput.step_key, StepInput.role, StepInput.position)
        for row in session.scalars(select(StepInput).where(StepInput.step_key.in_(batch)).order_by(*place)):
            inputs.setdefault(row.step_key, []).append(row)
    return inputs


def events_of(session: Session, key: str) -> list[Event]:
    """Return the last 50 events of a step, newest first."""
    events = select(Event).where(Event.step_key == key).order_by(Event.id.desc())
    return list(session.scalars(events.limit(50)))


@dataclass(frozen=True)
class MetricValue:
    name: str
    subject: str
    value: float | None
    low: float | None
    high: float | None
    note: str
    detail: dict[str, Any]


def metrics_of(session: Session, keys: Collection[str]) -> dict[str, list[MetricValue]]:
    """Return the metrics of steps by step key; a step without metrics is absent."""
    metrics: dict[str, list[MetricValue]] = defaultdict(list)
    for batch in batches(keys):
        query = select(Metric).where(Metric.step_key.in_(batch)).order_by(Metric.name, Metric.subject)
        for row in session.scalars(query):
            metrics[row.step_key].append(from_row(MetricValue, row))
    return dict(metrics)


@dataclass(frozen=True)
class CurvePoint:
    x: float
    y: float
    label: str


def points_of(session: Session, keys: Collection[str]) -> dict[str, dict[str, list[CurvePoint]]]:
    """Return the points of steps: step key → series → points in their order."""
    points: dict[str, dict[str, list[CurvePoint]]] = defaultdict(lambda: defaultdict(list))
    for batch in batches(keys):
        query = select(Point).where(Point.step_key.in_(batch)).order_by(Point.series, Point.position)
        for row in session.scalars(query):
            points[row.step_key][row.series].append(CurvePoint(row.x, row.y, row.label))
    return {key: dict(series) for key, series in points.items()}


def batches(keys: Iterable[K]) -> list[list[K]]:
    """Split the distinct keys into lists that one statement can bind."""
    unique = sorted(set(keys))
    return [unique[start : start + KEYS_PER_QUERY] for start in range(0, len(unique), KEYS_PER_QUERY)]


# ---------------------------------------------------------------- hypotheses side by side


@dataclass(frozen=True)
class SideBySide:
    """One segment with the output of each decode; None if a decode has no output (yet)."""

    index: int
    source: str
    reference: str
    idioms: list[Any]
    outputs: tuple[Hypothesis | None, ...]
    scores: tuple[float | None, ...]  # one for each step of PageQuery.scores


@dataclass(frozen=True)
class SegmentFilter:
    """Conditions on the segments to show; a segment must meet all of them."""

    contains: str = ""  # in the source, the reference or an output; case is ignored (ASCII on SQLite)
    different: bool = False  # only where two of the outputs differ
    idioms: bool = False  # only with an annotated idiom
    empty: bool = False  # only where an output is empty
    indices: tuple[int, ...] = ()  # only these; empty: all


@dataclass(frozen=True)
class ByDifference:
    """Order segments by the difference of two steps' scores; segments that lack a score come last."""

    score: str  # step key
    baseline: str  # step key
    lowest_first: bool = True


@dataclass(frozen=True)
class PageQuery:
    """The segments to show, and the keys of the steps whose outputs and scores are shown beside them."""

    test_set: str
    decodes: Sequence[str]
    scores: Sequence[str] = ()
    filter: SegmentFilter = field(default_factory=SegmentFilter)
    order: ByDifference | None = None
    offset: int = 0
    limit: int = 20


@dataclass(frozen=True)
class Page:
    rows: list[SideBySide]
    total: int  # segments that pass the filter


def side_by_side(session: Session, query: PageQuery) -> Page:
    """Return a page of a test set's segments with each decode's outputs.

    Only the page's texts are fetched; without a filter the database finds the page by reading nothing but the
    segments' primary keys.
    """
    matching = _matching(query.test_set, query.decodes, query.filter)
    total = session.scalar(select(func.count()).select_from(matching.subquery())) or 0
    indices = list(session.scalars(_ordered(matching, query.order).offset(query.offset).limit(query.limit)))
    of_page = select(Segment).where(Segment.step_key == query.test_set, Segment.index.in_(indices))
    segments = {segment.index: segment for segment in session.scalars(of_page)}
    translated = Hypothesis.step_key.in_(query.decodes), Hypothesis.index.in_(indices)
    hypotheses = session.scalars(select(Hypothesis).where(*translated))
    outputs = {(row.step_key, row.index): row for row in hypotheses}
    scored = SegmentScore.step_key.in_(query.scores), SegmentScore.index.in_(indices)
    scores = session.scalars(select(SegmentScore).where(*scored))
    values = {(row.step_key, row.index): row.value for row in scores}
    rows = [
        SideBySide(
            index=segment.index,
            source=segment.source,
            reference=segment.reference,
            idioms=segment.idioms,
            outputs=tuple(outputs.get((key, segment.index)) for key in query.decodes),
            scores=tuple(values.get((key, segment.index)) for key in query.scores),
        )
        for segment in (segments[index] for index in indices)
    ]
    return Page(rows, total)


def _ordered(matching: Select[int], order: ByDifference | None) -> Select[int]:
    if order is None:
        return matching.order_by(Segment.index)
    score, baseline = aliased(SegmentScore), aliased(SegmentScore)
    joined = matching.outerjoin(
        score, and_(score.step_key == order.score, score.index == Segment.index)
    ).outerjoin(baseline, and_(baseline.step_key == order.baseline, baseline.index == Segment.index))
    difference = score.value - baseline.value
    by_difference = difference.asc() if order.lowest_first else difference.desc()
    return joined.order_by(by_difference.nulls_last(), Segment.index)


def _matching(test_set: str, decodes: Sequence[str], chosen: SegmentFilter) -> Select[int]:
    """Select the indices of the segments that pass the filter; outputs are joined only if it needs them."""
    query = select(Segment.index).where(Segment.step_key == test_set)
    outputs = [aliased(Hypothesis) for _ in dict.fromkeys(decodes)]
    if chosen.contains or chosen.different or chosen.empty:
        for output, key in zip(outputs, dict.fromkeys(decodes), strict=True):
            query = query.outerjoin(output, and_(output.step_key == key, output.index == Segment.index))
    if chosen.contains:
        texts: list[Any] = [Segment.source, Segment.reference, *(output.text for output in outputs)]
        query = query.where(or_(*(text.icontains(chosen.contains, autoescape=True) for text in texts)))
    if chosen.different:
        query = query.where(or_(false(), *(outputs[0].text != output.text for output in outputs[1:])))
    if chosen.empty:
        query = query.where(or_(false(), *(output.text == "" for output in outputs)))
    if chosen.indices:
        query = query.where(Segment.index.in_(chosen.indices))
    if chosen.idioms:
        query = query.where(cast(Segment.idioms, String) != "[]")
    return query


def find_campaign(session: Session, name: str, lock: bool = False) -> Campaign:
    """Return the campaign of this name; NotInDatabase, which lists the known names, if there is none.

    `lock`: no other transaction changes it until this one ends.
    """
    query = select(Campaign).where(Campaign.name == name)
    campaign = session.scalar(query.with_for_update() if lock else query)
    if campaign is None:
        known = sorted(session.scalars(select(Campaign.name)))
        listed = ", ".join(known[:20]) + (f", … ({len(known)} in all)" if len(known) > 20 else "")
        raise NotInDatabase(
            f"no campaign {name!r}; known: {listed or 'none yet'}; create one with `creamtea campaign create`"
        )
    return campaign
