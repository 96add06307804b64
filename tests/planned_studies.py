"""Studies as their plan makes them, with results written in by hand instead of run."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import insert, select
from table_rows import step_row

from creamtea.store.database import Database
from creamtea.store.tables import Metric, Point, StepInput, StepRow, StudyRow, StudyStep
from creamtea.study.plan import Plan, PlannedNode, plan
from creamtea.study.spec import Study

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


@dataclass
class Result:
    """What a step left: columns of its row, and, if it succeeded, figures, points and rows of texts."""

    columns: dict[str, Any] = field(default_factory=dict)  # of StepRow, in place of those of a success
    metrics: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    texts: list[Any] = field(default_factory=list)  # rows of Segment, Hypothesis, SegmentScore


@lru_cache(64)
def planned(document: str) -> tuple[Study, Plan]:
    """A study from JSON. Hundreds of tests write the same ones."""
    spec = Study.model_validate(json.loads(document))
    return spec, plan(spec, None)


def planned_study(
    database: Database, document: dict[str, Any], result: Callable[[PlannedNode], Result], **study: Any
) -> int:
    """The number of a new study. `result` is asked once for each step that is not stored yet, by the first of
    its nodes; `study` are columns of StudyRow, in place of those of a success."""
    spec, its_plan = planned(json.dumps(document))
    first_node = {node.key: node for node in reversed(its_plan.nodes)}
    with database.transaction() as session:
        values = {"state": "succeeded", "code_version": "0.1", "config_hash": "c0ffee" * 10, **study}
        row = StudyRow(
            name=spec.name, spec=spec.model_dump(mode="json"), created_at=NOW, finished_at=NOW, **values
        )
        session.add(row)
        known = set(session.scalars(select(StepRow.key)))
        steps = [step for step in its_plan.steps if step.key not in known]
        rows: dict[type[Any], list[dict[str, Any]]] = {Metric: [], Point: [], StepInput: [], StudyStep: []}
        texts: list[Any] = []
        for step in steps:
            found = result(first_node[step.key])
            columns = {"state": "succeeded", "attempts": 1, "facts": {}, "finished_at": NOW, **found.columns}
            given = {"version": step.version, "params": step.params, "created_at": NOW, **columns}
            session.add(step_row(step.key, step.kind, **given))
            if columns["state"] == "succeeded":
                rows[Metric] += [{"step_key": step.key, **metric} for metric in found.metrics]
                rows[Point] += [{"step_key": step.key, **point} for point in found.points]
                texts += found.texts
            rows[StepInput] += [
                {"step_key": step.key, "role": role, "position": position, "input_key": key}
                for role, keys in step.inputs.items()
                for position, key in enumerate(keys)
            ]
        session.flush()
        rows[StudyStep] = [
            {"study_id": row.id, "node": n.node, "step_key": n.key, "position": at, "labels": n.labels}
            for at, n in enumerate(its_plan.nodes)
        ]
        for table, found_rows in rows.items():
            if found_rows:
                session.execute(insert(table), found_rows)
        session.bulk_save_objects(texts)
        return row.id
