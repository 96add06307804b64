"""Send trainings of studies with the key `track` to TensorBoard, MLflow or Weights & Biases.

That happens in its own thread, so that a slow tracker delays no step. If a tracker fails, that is reported
once, and the study goes on without it. No result depends on a tracker.
"""

from __future__ import annotations

import math
import os
import queue
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from pydantic import ValidationError
from sqlalchemy import select

from creamtea.engine import events
from creamtea.settings import Settings
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import metrics_of, points_of
from creamtea.store.tables import StepRow, StudyRow, StudyStep
from creamtea.study.spec import Track

EVERY = 10.0  # seconds between two looks at a training
PATIENCE = 30.0  # seconds that a controller, when it ends, waits for unsent values
Values = Mapping[str, float]


class Run(Protocol):
    """A training in a tracker."""

    def log(self, update: int, values: Values) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    def __init__(self, project: str, name: str, key: str, parameters: dict[str, Any]) -> None:
        folder = Settings.load().home / "tensorboard" / project / name
        # by name, because the platform does not depend on torch
        self._writer = import_module("torch.utils.tensorboard").SummaryWriter(str(folder))
        self._writer.add_text("variant", "\n".join(f"    {line}" for line in map(str, parameters.items())))

    def log(self, update: int, values: Values) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, update)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class MLflow:
    def __init__(self, project: str, name: str, key: str, parameters: dict[str, Any]) -> None:
        if not os.environ.get("MLFLOW_TRACKING_URI"):
            raise ValueError("set MLFLOW_TRACKING_URI to the address of the server")
        self._client = client = import_module("mlflow").MlflowClient()
        known = client.get_experiment_by_name(project)
        experiment = client.create_experiment(project) if known is None else known.experiment_id
        # a later attempt of the same training continues its run
        runs = client.search_runs([experiment], f"tags.creamtea_step = '{key}'", max_results=1)
        run = runs[0] if runs else client.create_run(experiment, run_name=name, tags={"creamtea_step": key})
        self._id = run.info.run_id
        if not runs:
            for parameter, value in parameters.items():
                client.log_param(self._id, parameter, str(value)[:500])

    def log(self, update: int, values: Values) -> None:
        for name, value in values.items():
            # MLflow refuses all other characters, such as the plus signs of chrF++
            self._client.log_metric(self._id, re.sub(r"[^/\w.\- ]", "_", name), value, step=update)

    def close(self) -> None:
        self._client.set_terminated(self._id)


class WeightsAndBiases:
    def __init__(self, project: str, name: str, key: str, parameters: dict[str, Any]) -> None:
        if "WANDB_API_KEY" not in os.environ and os.environ.get("WANDB_MODE") not in ("offline", "disabled"):
            raise ValueError("set WANDB_API_KEY, or WANDB_MODE=offline")  # wandb would ask at the terminal
        wandb, folder = import_module("wandb"), Settings.load().home / "wandb"
        folder.mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            project=project,
            name=name,
            id=key[:32],
            resume="allow",
            config=parameters,
            dir=str(folder),
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True),
        )
        # the points of curves arrive in any order
        self._run.define_metric("update")
        self._run.define_metric("*", step_metric="update")

    def log(self, update: int, values: Values) -> None:
        self._run.log({"update": update, **values})

    def close(self) -> None:
        self._run.finish()


TRACKERS: dict[str, Callable[[str, str, str, dict[str, Any]], Run]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}


class Tracking:
    """Sends the trainings of a controller's studies; `hear` gets the controller's events, in its thread."""

    def __init__(
        self, database: Database, store: ArtefactStore, emit: Callable[[events.EngineEvent], None]
    ) -> None:
        self._database, self._store, self._emit = database, store, emit
        self._known: set[int] = set()  # studies that `watch` has read
        self._studies: dict[int, tuple[str, Track, dict[str, Any]]] = {}  # name, `track` and spec
        self._next: dict[str, float] = {}  # by step: when to read it again
        self._events: queue.Queue[events.StepEvent | None] = queue.Queue()
        self._failures: queue.Queue[str] = queue.Queue()
        self._runs: dict[tuple[int, str, int], Run] = {}  # by study, variant and seed
        self._last: defaultdict[tuple[int, str, int], int] = defaultdict(int)  # last update sent, by run
        self._sent: defaultdict[tuple[int, str], set[tuple[str, float]]] = defaultdict(set)
        self._thread: threading.Thread | None = None

    def watch(self, studies: Collection[int]) -> None:
        """Find out which of these studies have the key `track`; only new studies are read."""
        new = set(studies) - self._known
        if not new:
            return
        with self._database.session() as session:
            for row in session.scalars(select(StudyRow).where(StudyRow.id.in_(new))):
                if (track := row.spec.get("track")) is None:
                    continue
                try:
                    self._studies[row.id] = row.name, Track.model_validate(track), row.spec
                except ValidationError:  # another version wrote it
                    self._failures.put(
                        f"study {row.name} goes on without tracking: its `track` cannot be read"
                    )
        self._known |= new
        if self._studies and self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="tracking", daemon=True)
            self._thread.start()

    def hear(self, event: events.EngineEvent) -> None:
        while not self._failures.empty():
            self._emit(events.Notice(self._failures.get()))
        if self._thread is None or not isinstance(event, events.StepProgressed | events.StepSucceeded):
            return
        now = time.monotonic()
        if isinstance(event, events.StepProgressed) and now < self._next.get(event.key, 0.0):
            return
        self._next[event.key] = now + EVERY
        self._events.put(event)

    def close(self) -> None:
        """Wait until everything has been sent, but at most `PATIENCE` seconds."""
        if self._thread is None:
            return
        self._events.put(None)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            self._failures.put(f"tracking is given up: it has not sent everything in {PATIENCE:g} s")
        while not self._failures.empty():
            self._emit(events.Notice(self._failures.get()))

    # ---------------------------------------------------------------- in the thread

    def _send_all(self) -> None:
        while (event := self._events.get()) is not None:
            for study in list(self._studies):
                self._tried(study, partial(self._send, study, event))
        for (study, *_), run in self._runs.items():
            if study in self._studies:
                self._tried(study, run.close)

    def _tried(self, study: int, do: Callable[[], None]) -> None:
        """Call a tracker; no error of its library may end the study."""
        try:
            do()
        except Exception as error:
            name, track, _ = self._studies.pop(study)
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            why = re.sub(r"//[^/@\s]+@", "//…@", why)  # a password in a server's address
            if isinstance(error, ImportError):
                why += f"; install it with pip install 'creamtea[{track.kind}]'"
            self._failures.put(f"study {name} goes on without tracking by {track.kind}: {why}")

    def _send(self, study: int, event: events.StepEvent) -> None:
        with self._database.session() as session:
            step = session.execute(
                select(StepRow.kind, StepRow.fence, StudyStep.labels)
                .join(StudyStep, StudyStep.step_key == StepRow.key)
                .where(StepRow.key == event.key, StudyStep.study_id == study)
            ).first()
            if step is None or "variant" not in step.labels or "seed" not in step.labels:
                return
            ended = isinstance(event, events.StepSucceeded)
            points = points_of(session, [event.key]).get(event.key, {}) if ended else {}
            measured = metrics_of(session, [event.key]).get(event.key, []) if ended else []
        labels = step.labels
        curves = [(series, point.x, point.y) for series, curve in points.items() for point in curve]
        if step.kind == "train" and not ended:
            view = self._store.read_live(event.key, step.fence)
            curves = [(point.series, point.x, point.y) for point in (view.points if view else ())]
        elif step.kind not in ("train", "score"):
            return
        training = (study, str(labels["variant"]), int(labels["seed"]))
        run = self._run(training, event.key)
        sent = self._sent[study, event.key]
        by_update: defaultdict[int, dict[str, float]] = defaultdict(dict)
        for series, x, y in curves:
            if (series, x) not in sent and y is not None and math.isfinite(y):
                sent.add((series, x))
                by_update[int(x)][series] = y
        for update in sorted(by_update):
            run.log(update, by_update[update])
            self._last[training] = max(update, self._last[training])
        where = "/".join(str(labels[part]) for part in ("test_set", "system") if part in labels)
        values = {
            "/".join(filter(None, [where or "model", row.name, row.subject])): row.value
            for row in measured
            if row.value is not None and math.isfinite(row.value)
        }
        if values:
            run.log(self._last[training], values)

    def _run(self, training: tuple[int, str, int], key: str) -> Run:
        if training not in self._runs:
            study, variant, seed = training
            name, track, spec = self._studies[study]
            make, project = TRACKERS[track.kind], track.project or name
            parameters = _flat(spec["variants"][variant])
            self._runs[training] = make(project, f"{variant}-{seed}", key, parameters)
        return self._runs[training]


def _flat(values: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Flatten a nested mapping: {"objective.kind": …}."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{place}{name}.")
        else:
            flat[f"{place}{name}"] = value
    return flat
