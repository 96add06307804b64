"""What of a bundle's steps can be computed again from its texts, and how it differs from what they left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.bundle.differences import Difference, count_numbers, differences
from creamtea.bundle.opening import Opened
from creamtea.contract.step import StepResult, step_key
from creamtea.document.canonical import digest
from creamtea.engine.runner import load_module
from creamtea.engine.state import task_of
from creamtea.engine.task import StepTask
from creamtea.engine.trained_systems import opened
from creamtea.methods.metrics import Metric
from creamtea.methods.plugins import not_here, plugins_of
from creamtea.stats.resampling import bootstrap_interval
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.steps.systems import ScoreParams
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.ingest import TABLES as TEXT_FILES
from creamtea.store.ingest import stored_lines, stored_metrics
from creamtea.store.queries import metrics_of
from creamtea.store.tables import StepFile, StepInput, StepRow, StudyRow

# kinds of steps that are computed again as a whole; of others at most what follows from their texts
AGAIN = ("score", "compare", "pairs", "agreement", "buckets", "outputs")
NEEDS = {
    "corpus": "its text is not in a bundle",
    "train": "needs the training text and the computer's time",
    "test_set": "made of files that are not in a bundle; its segments are there with their SHA-256",
    "decode": "needs the trained model; its outputs are there with their SHA-256",
    "latency": "was measured on a computer",
    "differences": "needs what each sentence adds to an analysis, which is not in a bundle",
}
USERS_FILE = "needs a file that is not in a bundle; what was read of it is there with its SHA-256"
NEEDS_MODEL, NEEDS_TEXT = "needs the trained model", "needs the training text"
Texts = dict[str, list[dict[str, Any]]]  # the rows of text files, by name


@dataclass
class Findings:
    """`recomputed`: numbers, by what they are of. `left`: what was not recomputed, with the places."""

    differences: list[Difference] = field(default_factory=list)
    recomputed: dict[str, int] = field(default_factory=dict)
    left: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def compare(self, what: str, stored: Any, recomputed: Any, place: str) -> None:
        self.recomputed[what] = self.recomputed.get(what, 0) + (count_numbers(recomputed) or 1)
        self.differences += differences(stored, recomputed, place)

    def leave(self, what: str, reason: str, place: str) -> None:
        self.left.setdefault((what, reason), []).append(place)


def check_plan(session: Session, found: Findings) -> None:
    """The studies' digests, and each step's key, which names its parameters and inputs."""
    for study in session.scalars(select(StudyRow).order_by(StudyRow.id)):
        found.compare(
            "digests of the study", study.config_hash, digest(study.spec), f"study {study.id}: config hash"
        )
    inputs: dict[str, dict[str, list[str]]] = {}
    in_order = select(StepInput).order_by(StepInput.step_key, StepInput.role, StepInput.position)
    for row in session.scalars(in_order):
        inputs.setdefault(row.step_key, {}).setdefault(row.role, []).append(row.input_key)
    for step in session.scalars(select(StepRow).order_by(StepRow.key)):
        place = f"step {step.key[:12]} ({step.kind}): key"
        if missing := plugins_missing(step):
            found.leave("keys of steps", missing, place)
            continue
        key = step_key(step.kind, step.version, step.params, inputs.get(step.key, {}), _own_plugins(step))
        found.compare("keys of steps", step.key, key, place)


def plugins_missing(step: StepRow) -> str:
    """Which plug-in that the step, or what it reads, was made with is not here; "" where none is missing."""
    return not_here(step.resources.get("plugins") or {})


def _own_plugins(step: StepRow) -> dict[str, str]:
    """Those that its key names: its resources also have those of its inputs."""
    needed: dict[str, str] = step.resources.get("plugins") or {}
    if not needed:
        return {}
    kind = STEP_KINDS[step.kind]
    own = plugins_of(kind, kind.params.model_validate(step.params))
    return {name: version for name, version in needed.items() if name in own}


def check_step(bundle: Opened, session: Session, step: StepRow, place: str, found: Findings) -> None:
    """A step that has succeeded: what it left, computed again where that is possible."""
    kind = STEP_KINDS.get(step.kind)
    title = kind.title if kind is not None else step.kind
    if kind is None or kind.version != step.version:
        found.leave(title, f"version {step.version} of this step is not in this creamtea", place)
        return
    if missing := plugins_missing(step):
        found.leave(title, missing, place)
        return
    task = task_of(session, step, bundle.study, bundle.store.root)
    texts = _texts(session, bundle.store, step.key)
    stored = {
        (metric.name, metric.subject): asdict(metric)
        for metric in metrics_of(session, [step.key]).get(step.key, [])
    }
    if reason := _reason(task, bundle.store):
        found.leave(title, reason, place)
        for name, value in _of_texts(task, texts):
            known = stored.get((name, ""))
            if known is not None:
                part = {key: known[key] for key in value}
                found.compare(f"{title}: what its texts tell", part, value, f"{place}: {name}")
        return
    result, made = _run(task, bundle.store)
    again = {(row["name"], row["subject"]): row for row in stored_metrics(result)}
    for metric in sorted(stored.keys() | again.keys()):
        where = " of ".join(filter(None, metric))
        found.compare(title, stored.get(metric), again.get(metric), f"{place}: {where}")
    for file, rows in made.items():
        found.compare(title, texts.get(file), rows, f"{place}: {file}")


def _reason(task: StepTask, store: ArtefactStore) -> str:
    """Why it cannot be computed again; empty if it can be."""
    if task.kind not in AGAIN:
        return NEEDS.get(task.kind, NEEDS_MODEL if "train" in task.inputs else NEEDS_TEXT)
    if task.params.get("digests"):
        return USERS_FILE
    if task.kind == "score" and _metric_of(task).compares == "segment scores":
        return "needs the metric's model or program; its segment scores are there with their SHA-256"
    files = [file for steps in task.inputs.values() for files in steps for file in files]
    return "" if all(store.exists(file.digest) for file in files) else NEEDS_TEXT


def _metric_of(task: StepTask) -> Metric:
    return ScoreParams.model_validate(task.params).metric


def _run(task: StepTask, store: ArtefactStore) -> tuple[StepResult, Texts]:
    """The step's result, and the rows of the text files that it leaves."""
    with opened(task, store) as context:
        result = load_module(STEP_KINDS[task.kind].module, context.cpus).run(context)
        made = {}
        for file in sorted(context.output.iterdir()):
            if file.name in TEXT_FILES:
                with file.open("rb") as lines:
                    made[file.name] = list(stored_lines(file.name, lines))
    return result, made


def _texts(session: Session, store: ArtefactStore, key: str) -> Texts:
    """The rows of the text files that a step left."""
    found = {}
    for file in session.scalars(select(StepFile).where(StepFile.step_key == key)):
        if file.name in TEXT_FILES:
            with store.open(file.digest) as lines:
                found[file.name] = list(stored_lines(file.name, lines))
    return found


def _of_texts(task: StepTask, texts: Texts) -> Iterator[tuple[str, dict[str, Any]]]:
    """Metrics that follow from the texts that a step left: (name, what of the metric's row)."""
    if task.kind == "test_set":
        yield "segments", {"value": float(len(texts["segments.jsonl"]))}
    if task.kind in ("decode", "outputs"):
        rows = texts["hypotheses.jsonl"]
        empty = sum(not row["text"] for row in rows)
        yield "empty", {"value": empty / len(rows), "detail": {"count": empty, "of": len(rows)}}
        if task.kind == "decode":
            yield "selected_size", {"value": sum(row["selected_size"] for row in rows) / len(rows)}
    if task.kind == "score":
        values = np.array([row["value"] for row in texts["segment_scores.jsonl"]])
        interval = bootstrap_interval(np.column_stack([values, np.ones_like(values)]), _mean)
        yield _metric_of(task).row(), {"value": interval.value, "low": interval.low, "high": interval.high}


def _mean(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(sums[..., 0] / sums[..., 1])
