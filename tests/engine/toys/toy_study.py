"""Toy studies: plans of toy steps, and what there is to look at afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from table_rows import all_of, row_of

from creamtea.contract.step import Resources, step_key
from creamtea.orders.submission import Submission, submit
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import Event, StepRow, StudyRow
from creamtea.study.plan import Plan, PlannedNode, PlannedStep


@dataclass
class ToyStudy:
    """Builds a plan: `add` a step by name, with what it does and the names of the steps before it."""

    log: Path
    name: str = "toys"
    plan: Plan = field(init=False)
    keys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = Plan(self.name)

    def add(
        self,
        name: str,
        do: str = "text",
        before: Sequence[str] = (),
        exclusive: bool = False,
        resources: dict[str, Any] | None = None,
        **params: Any,
    ) -> str:
        inputs = {"before": [self.keys[other] for other in before]} if before else {}
        given = {"name": name, "do": do, "log": str(self.log), **params}
        key = self.keys[name] = step_key("toy", 1, given, inputs)
        wants = Resources(exclusive=exclusive, **(resources or {}))
        self.plan.steps.append(PlannedStep(key, "toy", 1, given, inputs, wants, {}))
        self.plan.nodes.append(PlannedNode(name, key, {"name": name}))
        return key

    def submit(self, database: Database, store: ArtefactStore, priority: int = 0) -> Submission:
        return submit(database, store, self.plan, {"name": self.name}, "hash", priority)

    def states(self, database: Database) -> dict[str, str]:
        return {name: row.state for name, row in self.rows(database).items()}

    def rows(self, database: Database) -> dict[str, StepRow]:
        names = {key: name for name, key in self.keys.items()}
        rows = all_of(database, select(StepRow).where(StepRow.key.in_(names)))
        return {names[row.key]: row for row in rows}


def study_state(database: Database, study_id: int) -> str:
    return row_of(database, StudyRow, study_id).state


def happenings(database: Database, key: str) -> list[str]:
    """What the event table says of a step."""
    return all_of(database, select(Event.what).where(Event.step_key == key).order_by(Event.id))
