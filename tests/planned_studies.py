"""Studies as their plan makes them, with results written in by hand instead of run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from creamtea.store.database import Database
from creamtea.store.tables import Metric, Point, StepInput, StepRow, StudyRow, StudyStep
from creamtea.study.plan import PlannedNode, plan
from creamtea.study.spec import Study

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


@dataclass
class Result:
    """What a step left: columns of its row, and, if it succeeded, figures, points and rows of texts."""

    columns: dict[str, Any] = field(default_factory=dict)  # of StepRow, in place of those of a success
    metrics: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    texts: list[Any] = field(default_factory=list)  # rows of Segment, Hypothesis, SegmentScore


def planned_study(
    database: Database, document: dict[str, Any], result: Callable[[PlannedNode], Result], **study: Any
) -> int:
    """The number of a new study. `result` is asked once for each step that is not stored yet, by the first of
    its nodes; `study` are columns of StudyRow, in place of those of a success."""
    spec = Study.model_validate(document)
    planned = plan(spec, None)
    first_node = {node.key: node for node in reversed(planned.nodes)}
    with database.transaction() as session:
        values = {"state": "succeeded", "code_version": "0.1", "config_hash": "c0ffee" * 10, **study}
        row = StudyRow(
            name=spec.name, spec=spec.model_dump(mode="json"), created_at=NOW, finished_at=NOW, **values
        )
        session.add(row)
        known = set(session.scalars(select(StepRow.key)))
        steps = [step for step in planned.steps if step.key not in known]
        left: list[Any] = []
        for step in steps:
            found = result(first_node[step.key])
            columns = {"state": "succeeded", "attempts": 1, "facts": {}, "finished_at": NOW, **found.columns}
            session.add(
                StepRow(
                    key=step.key,
                    kind=step.kind,
                    version=step.version,
                    params=step.params,
                    resources={},
                    locations={},
                    created_at=NOW,
                    **columns,
                )
            )
            if columns["state"] == "succeeded":
                left += [Metric(step_key=step.key, **metric) for metric in found.metrics]
                left += [Point(step_key=step.key, **point) for point in found.points]
                left += found.texts
        session.flush()
        session.add_all(left)
        session.add_all(
            StepInput(step_key=step.key, role=role, position=position, input_key=key)
            for step in steps
            for role, keys in step.inputs.items()
            for position, key in enumerate(keys)
        )
        session.add_all(
            StudyStep(
                study_id=row.id, node=node.node, step_key=node.key, position=position, labels=node.labels
            )
            for position, node in enumerate(planned.nodes)
        )
        return row.id
