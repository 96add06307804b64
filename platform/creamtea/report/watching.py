"""A study while it runs: how far each step is, what waits and why, what failed, and how trainings develop."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, load_only

from creamtea.contract.step import RUNNING_LOSS, LiveExample, LiveView, Resources
from creamtea.orders.controllers import live_controller
from creamtea.orders.rows import LIVE, UNFINISHED, pause_left
from creamtea.orders.submission import spec_of
from creamtea.report import vega
from creamtea.report.cells import step_title
from creamtea.report.figures import learning_figures, run_name
from creamtea.report.model import Figure, Spec
from creamtea.report.text import one_line
from creamtea.store.artefacts import EVERY_STEP, ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import CurvePoint, Node, find_study, inputs_of, points_of, steps_of, study_nodes
from creamtea.store.tables import Controller, StepRow
from creamtea.study.spec import Study
from creamtea.wording import counted, describe_progress, duration

SHOWN = ("train_loss", "dev_bleu", "dev_per", "dev_levenshtein")
NO_CONTROLLER = "no controller is running"
MAX_LISTED = 3  # steps that a reason names
MAX_BARS = 2000  # in a timeline


@dataclass(frozen=True)
class RunningStep:
    name: str  # its place in the study
    title: str
    share: float | None  # from 0 to 1; None until the step reports
    message: str
    seconds: float  # so far
    seconds_left: float | None  # at the present speed


@dataclass(frozen=True)
class FailedStep:
    name: str
    title: str
    outcome: str  # "failed", "unavailable"
    reason: str  # the first line of its error


Example = tuple[str, LiveExample]  # a training's name, a development sentence and its translations


@dataclass(frozen=True)
class Watched:
    state: str  # of the study
    done: int
    total: int
    running: tuple[RunningStep, ...]
    waiting: dict[str, list[str]]  # titles of steps by the reason for which they wait
    failed: tuple[FailedStep, ...]  # without steps that were not run because another failed
    curves: tuple[Figure, ...]
    examples: list[Example]
    languages: dict[str, str]  # "source" and "target"
    controlled: bool  # whether a controller is running

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def nothing_runs(self) -> bool:
        """Whether the study waits, and no controller is running."""
        return self.is_live and not self.controlled


def watch(database: Database, store: ArtefactStore, study_id: int) -> Watched:
    """Return a study's state now, from the database and from what steps write into the store."""
    controller = live_controller(database)
    reasons = store.read_reasons(controller.fence) if controller is not None else {}
    with database.session() as session:
        row = find_study(session, study_id)
        spec = spec_of(row)
        nodes = steps_of(study_nodes(session, study_id))
        now = database.now(session)
        views = {
            key: view
            for key, node in nodes.items()
            if node.kind == "train" and (view := store.read_live(key, node.fence)) is not None
        }
        running = [node for node in nodes.values() if node.state == "running"]
        return Watched(
            state=row.state,
            done=sum(node.state == "succeeded" for node in nodes.values()),
            total=len(nodes),
            running=tuple(_running(node, store, now) for node in running),
            waiting=_waiting(session, study_id, nodes, controller, reasons, now) if row.state in LIVE else {},
            failed=tuple(
                FailedStep(node.name, step_title(node), node.outcome, one_line(error.splitlines()[0]))
                for node in nodes.values()
                if node.has_failed and node.error_kind != "upstream"
                for error in [node.error or "no message"]
            ),
            curves=_curves(session, spec, nodes.values(), views),
            examples=[
                example for key, view in views.items() for example in watched_examples(nodes[key], view)
            ],
            languages={"source": spec.languages.source, "target": spec.languages.target},
            controlled=controller is not None,
        )


def _running(node: Node, store: ArtefactStore, now: datetime) -> RunningStep:
    seconds = (now - node.started_at).total_seconds() if node.started_at else 0.0
    progress = store.read_progress(node.key, node.fence)
    if progress is None:
        return RunningStep(node.name, step_title(node), None, "", seconds, None)
    share = min(1.0, progress.done / progress.total) if progress.total else None
    message = describe_progress(progress.done, progress.total, progress.message)
    return RunningStep(node.name, step_title(node), share, message, seconds, progress.seconds_left)


# ---------------------------------------------------------------- what waits and why


def _waiting(
    session: Session,
    study_id: int,
    nodes: dict[str, Node],
    controller: Controller | None,
    reasons: Mapping[str, str],
    now: datetime,
) -> dict[str, list[str]]:
    """Group waiting steps by reason; a step that waits for others has the first of these as its reason."""
    waiting: dict[str, list[str]] = defaultdict(list)
    queued = [key for key, node in nodes.items() if node.state == "ready"]
    shown = load_only(StepRow.key, StepRow.not_before, StepRow.resources, StepRow.error)
    rows = session.scalars(select(StepRow).where(StepRow.key.in_(queued)).options(shown))
    ready = {row.key: row for row in rows}
    busy = sum(node.state == "running" for node in nodes.values())
    roots = _roots(session, nodes)
    position = {key: place for place, key in enumerate(nodes)}
    for key, node in nodes.items():
        if key in ready:
            reason_of_controller = reasons.get(key) or reasons.get(EVERY_STEP, "")
            why = _why_ready(study_id, ready[key], controller, reason_of_controller, busy, now)
            waiting[why].append(step_title(node))
        elif node.state == "pending" and roots[key] == {key}:  # no controller has looked at it yet
            why = "queued" if controller is not None else NO_CONTROLLER
            waiting[why].append(step_title(node))
        elif node.state == "pending":
            names = [step_title(nodes[root]) for root in sorted(roots[key], key=position.__getitem__)]
            more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
            waiting[f"after {'; '.join(names[:MAX_LISTED])}{more}"].append(step_title(node))
    return dict(waiting)


def _roots(session: Session, nodes: dict[str, Node]) -> dict[str, set[str]]:
    """Return the roots of each unfinished step: the steps that it waits for and that wait for none.

    A step that waits for no other is its own root.
    """
    inputs = inputs_of(session, [key for key, node in nodes.items() if node.state == "pending"])
    unfinished = {key for key, node in nodes.items() if node.state in UNFINISHED}
    roots: dict[str, set[str]] = {}
    for key in nodes:  # inputs come first
        before = unfinished.intersection(row.input_key for row in inputs.get(key, ()))
        roots[key] = set().union(*(roots.get(earlier, {earlier}) for earlier in before)) if before else {key}
    return roots


def _why_ready(
    study_id: int, step: StepRow, controller: Controller | None, reason: str, busy: int, now: datetime
) -> str:
    if controller is None:
        return NO_CONTROLLER
    if controller.study_id not in (None, study_id):
        return "the controller that is running has another study to finish first"
    if seconds := pause_left(step.not_before, now):
        return f"tried again in {seconds:.0f} s, after: {one_line(step.error or 'a failure', 200)}"
    if reason:
        return reason
    needs = Resources.model_validate(step.resources)
    size = f"{counted(needs.cpus, 'processor')}"
    size += f" and {counted(needs.gpus, 'GPU')}" if needs.gpus else ""
    if busy:
        return f"needs {size} while other steps are running"
    return f"needs a machine with {size} free"


# ---------------------------------------------------------------- when and where steps ran


def timeline(nodes: Iterable[Node], since: datetime, now: datetime) -> Figure:
    """Draw the steps that have run since a study was submitted; steps that ran at once have separate rows.

    Reused steps ran before and are not drawn. Of more than MAX_BARS steps, the longest are drawn.
    """
    runs = [
        (node, node.started_at, node.finished_at or now)
        for node in nodes
        if node.started_at is not None and node.started_at >= since and node.state != "pending"
    ]
    longest = sorted(runs, key=lambda run: run[1] - run[2])[:MAX_BARS]
    seconds: Counter[str] = Counter()
    for node, start, end in longest:
        seconds[node.kind] += round((end - start).total_seconds())
    # the other kinds share a colour
    main = {kind for kind, _ in seconds.most_common(len(vega.PALETTE) - 1)}
    free: dict[tuple[str, int], datetime] = {}  # (machine, lane) -> when the last step there ended
    rows: list[dict[str, Any]] = []
    for node, start, end in sorted(longest, key=lambda run: run[1]):
        machine = str(node.facts.get("node") or "running")
        lane = next((machine, number) for number in count(1) if free.get((machine, number), start) <= start)
        free[lane] = end
        begun, ended = ((moment - since).total_seconds() / 60 for moment in (start, end))
        kind = node.kind.replace("_", " ") if node.kind in main else "other"
        took = duration((end - start).total_seconds())
        named = {"lane": f"{lane[0]} ({lane[1]})", "kind": kind, "step": step_title(node)}
        rows.append({**named, "from": begun, "to": ended, "took": took})
    minutes = vega.quantity("from", "minutes since the study was submitted", zero=True, padding=0)
    lanes = [f"{machine} ({number})" for machine, number in sorted(free)]
    styles = vega.styles(sorted((row["kind"] for row in rows), key="other".__eq__))
    encoding: Spec = {
        "x": minutes,
        "x2": {"field": "to"},
        "y": vega.named("lane", lanes),
        **vega.by_style("kind", styles, "color"),
        "tooltip": vega.tooltip(("step", "step", ""), ("took", "took", "")),
    }
    bars = {"mark": {"type": "bar", "stroke": vega.GREY, "strokeWidth": 0.5}, "encoding": encoding}
    left_out = (counted(len(runs) - len(longest), "shorter step"),) if len(runs) > len(longest) else ()
    return vega.figure("timeline", "When and where steps ran", rows, [bars], left_out, names=lanes)


# ---------------------------------------------------------------- how trainings develop


def _curves(
    session: Session, spec: Study, nodes: Iterable[Node], views: dict[str, LiveView]
) -> tuple[Figure, ...]:
    """Draw the training loss, one figure per objective, and the scores on development text."""
    trainings = [node for node in nodes if node.kind == "train"]
    stored = points_of(session, [node.key for node in trainings if node.state == "succeeded"])
    points = {node.key: stored.get(node.key) or _live_points(views.get(node.key)) for node in trainings}
    figures = learning_figures(spec, trainings, points).figures
    return tuple(figure for figure in figures if figure.key.split("-")[0] in SHOWN and figure.rows)


def _live_points(view: LiveView | None) -> dict[str, list[CurvePoint]]:
    series: dict[str, list[CurvePoint]] = defaultdict(list)
    for point in view.points if view else ():
        series[point.series].append(CurvePoint(point.x, point.y, point.label))
    if finer := series.pop(RUNNING_LOSS, None):
        series["train_loss"] = finer
    return dict(series)


def watched_examples(node: Node, view: LiveView | None) -> list[Example]:
    """Return the example translations of a training's live view (`ArtefactStore.read_live`)."""
    return [(run_name(node.labels), example) for example in (view.examples if view else ())]
