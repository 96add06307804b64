"""Toy studies: plans of toy steps, and what there is to look at afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from table_rows import all_of, row_of

from creamtea.contract.step import Resources, step_key
from creamtea.engine.controller import Controller
from creamtea.engine.events import EngineEvent
from creamtea.engine.executors.base import Executor
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.orders.submission import Submission, submit
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import Event, StepRow, StudyRow
from creamtea.study.plan import Plan, PlannedNode, PlannedStep


@dataclass
class ToyStudy:
    """Builds a plan: `add` a step by name, with what it does and the names of the steps before it. `submit`
    or `run` it then. `log` is the folder in which its attempts leave what they did."""

    database: Database
    store: ArtefactStore
    log: Path
    name: str = "toys"
    id: int = 0  # of the newest submission
    plan: Plan = field(init=False)
    keys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = Plan(self.name)

    def another(self, name: str) -> "ToyStudy":
        """A study of this name in the same place, without steps."""
        return ToyStudy(self.database, self.store, self.log, name)

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

    def submit(self, *names: str, priority: int = 0) -> Submission:
        """Submit it, with simple steps of these names at its end."""
        for name in names:
            self.add(name)
        submission = submit(self.database, self.store, self.plan, {"name": self.name}, "hash", priority)
        self.id = submission.study_id
        return submission

    def run(
        self, executor: Executor | None = None, react: Callable[[EngineEvent], None] = lambda event: None
    ) -> list[EngineEvent]:
        """Submit it and run it to its end; return the events. `react` hears each of them as it happens."""
        self.submit()
        return self.control(executor, react)

    def control(
        self, executor: Executor | None = None, react: Callable[[EngineEvent], None] = lambda event: None
    ) -> list[EngineEvent]:
        """Run the newest submission to its end, as `run` does."""
        events: list[EngineEvent] = []

        def emit(event: EngineEvent) -> None:
            events.append(event)
            react(event)

        Controller(self.database, self.store, executor or InlineExecutor(), emit).run(self.id)
        return events

    def state(self) -> str:
        return str(row_of(self.database, StudyRow, self.id).state)

    def states(self) -> dict[str, str]:
        return {name: row.state for name, row in self.rows().items()}

    def rows(self) -> dict[str, StepRow]:
        names = {key: name for name, key in self.keys.items()}
        rows = all_of(self.database, select(StepRow).where(StepRow.key.in_(names)))
        return {names[row.key]: row for row in rows}

    def happened(self, name: str) -> list[str]:
        """What the event table says of a step."""
        of_step = select(Event.what).where(Event.step_key == self.keys[name])
        return all_of(self.database, of_step.order_by(Event.id))
