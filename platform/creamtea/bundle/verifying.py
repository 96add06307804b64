"""Compute the numbers of a bundle again, without a database or a network, and say which differ."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

import creamtea
from creamtea.bundle.archive import MANIFEST, Archive, Difference, sha256
from creamtea.bundle.packing import ABOUT, PAGE, README, REPORT, Opened, media_file, opened_bundle, versions
from creamtea.contract.step import StepResult, step_key
from creamtea.document.canonical import digest
from creamtea.engine.runner import load_module
from creamtea.engine.state import task_of
from creamtea.engine.task import StepTask
from creamtea.engine.trained_systems import opened
from creamtea.errors import CreamteaError
from creamtea.human.making.launching import changed_parts
from creamtea.human.media import types_of
from creamtea.human.protocols import find_protocol
from creamtea.methods.metrics import Metric
from creamtea.methods.plugins import not_here, plugins_of
from creamtea.report.build import report_of
from creamtea.report.export import to_values
from creamtea.report.html import to_html
from creamtea.stats.resampling import bootstrap_interval
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.steps.systems import ScoreParams
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.ingest import TABLES as TEXT_FILES
from creamtea.store.ingest import stored_lines, stored_metrics
from creamtea.store.queries import find_study, metrics_of
from creamtea.store.tables import (
    Assignment,
    Campaign,
    CampaignMedia,
    Item,
    Rater,
    Rating,
    StepFile,
    StepInput,
    StepRow,
    StudyRow,
)

# what other processors and versions of NumPy may change in the last digits of a sum
RELATIVE, ABSOLUTE = 1e-9, 1e-12
CONTAINERS = ("sections", "blocks", "rows", "cells", "figures", "entries", "tables")
NAMES = ("key", "name", "label", "title")
NOTHING = "(not there)"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(stored: Any, recomputed: Any) -> bool:
    if is_number(stored) and is_number(recomputed):
        return math.isclose(stored, recomputed, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return type(stored) is type(recomputed) and bool(stored == recomputed)


def differences(stored: Any, recomputed: Any, place: str) -> Iterator[Difference]:
    if isinstance(stored, dict) and isinstance(recomputed, dict):
        for name in [*stored, *(name for name in recomputed if name not in stored)]:
            inner = place if name in CONTAINERS else f"{place}/{name}"
            yield from differences(stored.get(name, NOTHING), recomputed.get(name, NOTHING), inner)
    elif isinstance(stored, list) and isinstance(recomputed, list):
        for number in range(max(len(stored), len(recomputed))):
            pair = [values[number] if number < len(values) else NOTHING for values in (stored, recomputed)]
            yield from differences(pair[0], pair[1], f"{place}/{_label(pair, number)}")
    elif not same(stored, recomputed):
        yield Difference(place, stored, recomputed)


def numbers(value: Any, place: str = "") -> dict[str, float]:
    """All numbers by their places. Elements of a list that have no name, or one that came before, are told
    apart by their number."""
    if is_number(value):
        return {place: value}
    inner: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
    if isinstance(value, list):
        for number, item in enumerate(value):
            name = _label([item], number)
            inner[f"{name} ({number + 1})" if name in inner else name] = item
    found: dict[str, float] = {}
    for name, item in inner.items():
        found |= numbers(item, place if name in CONTAINERS else f"{place}/{name}".lstrip("/"))
    return found


def _label(pair: list[Any], number: int) -> str:
    """Of an element of a list: its name where it has one, else its number from 1."""
    return next(filter(None, map(_name, pair)), str(number + 1))


def _name(element: Any) -> str:
    for name in NAMES if isinstance(element, dict) else ():
        if isinstance(element.get(name), str) and element[name]:
            return " ".join(filter(None, [element[name], element.get("setting")]))
    return ""


def count_numbers(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(count_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(count_numbers, value))
    return int(is_number(value))


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


NAMED = 3  # places of numbers that are not compared
AROUND = 60  # characters shown on both sides of where two pages differ


@dataclass(frozen=True)
class NotRecomputed:
    """What was not recomputed, and why."""

    what: str
    reason: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class Verification:
    """`recomputed`: how many numbers, by what they are of. `versions`: package → (packed with, here)."""

    study: str
    number: int
    packed_by: str
    versions: dict[str, tuple[str, str]]
    recomputed: dict[str, int]
    not_recomputed: tuple[NotRecomputed, ...]
    differences: tuple[Difference, ...]


def verify(path: Path, progress: Callable[[str], None] = lambda place: None) -> Verification:
    """`progress` is told of each step that is computed again. InputError for a file that is no bundle."""
    found = Findings()
    with Archive(path) as archive, opened_bundle(archive) as bundle:
        found.differences += bundle.differences
        with bundle.database.session() as session:
            _guarded("plan of the study", found, partial(check_plan, session, found))
            steps = session.scalars(select(StepRow).where(StepRow.state == "succeeded")).all()
            for row in sorted(steps, key=lambda row: bundle.places.get(row.key, "")):
                place = bundle.places.get(row.key, row.key[:12])
                progress(place)
                _guarded(place, found, partial(check_step, bundle, session, row, place, found))
            for campaign in session.scalars(select(Campaign).order_by(Campaign.id)):
                place = f"campaign {campaign.name}"
                _guarded(place, found, partial(_check_campaign, session, campaign, archive, found))
            progress("report")
            _guarded(REPORT, found, partial(_check_report, bundle, session, archive, found))
            _check_rest(bundle, session, archive, found)
        manifest = archive.manifest
    here = versions() | {"creamtea": creamtea.__version__}
    packed = manifest.versions | {"creamtea": manifest.creamtea}
    return Verification(
        study=manifest.study.name,
        number=manifest.study.number,
        packed_by=manifest.creamtea,
        versions={
            name: (packed.get(name, NOTHING), here.get(name, NOTHING)) for name in sorted(packed | here)
        },
        recomputed=found.recomputed,
        not_recomputed=tuple(NotRecomputed(*key, tuple(places)) for key, places in found.left.items()),
        differences=tuple(found.differences),
    )


def _guarded(place: str, found: Findings, check: Callable[[], None]) -> None:
    """Rows that nothing can be computed of (a rating of a system that is not there, say) are a difference."""
    try:
        check()
    except CreamteaError as error:
        found.differences.append(Difference(place, "a result", f"cannot be computed: {error}"))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError) as error:
        reason = f"cannot be computed: {type(error).__name__}: {error}"
        found.differences.append(Difference(place, "a result", reason))


def _check_campaign(session: Session, campaign: Campaign, archive: Archive, found: Findings) -> None:
    """What was registered at the launch, and ratings that follow from their payload (marked errors)."""
    place = f"campaign {campaign.name}"
    registered, what = campaign.registered, "registered plans"
    if registered is not None:
        kept = {part: value for part, value in registered.items() if part != "digest"}
        emptied = [line for line in archive.manifest.left_out if line.startswith(f"{place}: ")]
        if emptied:
            found.leave(what, f"its digest covers what is left out ({', '.join(emptied)})", place)
        else:
            found.compare(what, registered["digest"], digest(kept), f"{place}: registered plan: digest")
        for part, (then, now) in changed_parts(session, campaign).items():
            found.differences += differences(then, now, f"{place}: registered plan: {part}")
    _check_media(session, campaign, archive, found)
    protocol = find_protocol(campaign.protocol, campaign.settings)
    with_payload = (
        select(Rating, Item, Rater.pseudonym)
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .join(Item, Item.id == Assignment.item_id)
        .join(Rater, Rater.id == Assignment.rater_id)
        .where(Item.campaign_id == campaign.id)
        .order_by(Rating.id)
    )
    for rating, item, rater in session.execute(with_payload):
        where = f"{place}: rating of {campaign.systems[rating.system]}, item {item.position}, by {rater}"
        step: Any = protocol.scale.check(rating.step)
        if rating.payload is not None:
            text = item.outputs[item.systems.index(rating.system)]
            step = protocol.read_answer(rating.payload, text).step
        found.compare("ratings", rating.step, step, where)


def _check_media(session: Session, campaign: Campaign, archive: Archive, found: Findings) -> None:
    """That the files beside sources are those that the items name."""
    place = f"campaign {campaign.name}: files beside sources"
    kept = select(CampaignMedia).where(CampaignMedia.campaign_id == campaign.id)
    files = {file.digest: file for file in session.scalars(kept.order_by(CampaignMedia.digest))}
    items = session.scalars(select(Item).where(Item.campaign_id == campaign.id).order_by(Item.position))
    named = set(types_of(entry for item in items for entry in item.media))
    for content_digest in sorted(named ^ set(files)):
        both = ("named by an item", NOTHING) if content_digest in named else (NOTHING, "there")
        found.differences.append(Difference(f"{place}: {content_digest}", *both))
    there = set(archive.names("media/"))
    for content_digest, file in files.items():
        where = f"{place}: {content_digest}"
        if media_file(content_digest) not in there:
            found.differences.append(Difference(where, "a file", NOTHING))
            continue
        content = archive.read(media_file(content_digest))
        found.compare(
            "files beside sources", [content_digest, file.size], [sha256(content), len(content)], where
        )


def _check_report(bundle: Opened, session: Session, archive: Archive, found: Findings) -> None:
    missing = next(filter(None, map(plugins_missing, session.scalars(select(StepRow)))), "")
    if missing:  # without it not even the study can be read
        found.leave(REPORT, missing, REPORT)
        return
    report = report_of(session, find_study(session, bundle.study), alone=True)
    stored, recomputed = archive.read_json(REPORT), _as_json(to_values(report))
    if archive.manifest.creamtea != creamtea.__version__:  # its words and what it shows may differ
        stored, recomputed = numbers(stored), numbers(recomputed)
        lacking = stored.keys() - recomputed.keys()
        if lacking:
            reason = (
                f"this version of creamtea does not report all numbers: {len(lacking):,} are not compared"
            )
            found.leave(REPORT, reason, ", ".join(sorted(lacking)[:NAMED]))
        both = [name for name in stored if name in recomputed]
        stored, recomputed = {name: stored[name] for name in both}, {name: recomputed[name] for name in both}
    found.compare("report", stored, recomputed, REPORT)
    page, again = archive.read(PAGE).decode(errors="replace"), to_html(report)
    if page != again:
        at = next(
            (number for number, pair in enumerate(zip(page, again, strict=False)) if pair[0] != pair[1]),
            min(len(page), len(again)),
        )
        shown = slice(max(0, at - AROUND), at + AROUND)
        line = page[:at].count("\n") + 1
        if archive.manifest.creamtea != creamtea.__version__:
            found.leave(PAGE, "was written by another version of creamtea", f"line {line}")
        else:
            found.differences.append(Difference(f"{PAGE}, line {line}", page[shown], again[shown]))


def _check_rest(bundle: Opened, session: Session, archive: Archive, found: Findings) -> None:
    """What people read and nothing is computed from; last, as it knows the files that no row is about."""
    row = find_study(session, bundle.study)
    if archive.manifest.study.name != row.name:
        found.differences.append(Difference(f"{MANIFEST}: study", archive.manifest.study.name, row.name))
    if archive.manifest.creamtea != creamtea.__version__:
        found.leave(README, "was written by another version of creamtea", README)
    elif (text := archive.read(README).decode(errors="replace")) != ABOUT:
        found.differences.append(Difference(README, text, ABOUT))
    known = {REPORT, PAGE, README, *map(media_file, session.scalars(select(CampaignMedia.digest)))}
    found.differences += [
        Difference(name, "there", "a file that no row is about")
        for name in archive.unread()
        if name not in known
    ]


def _as_json(value: Any) -> Any:
    """As a file has it: tuples as lists, keys as texts."""
    return json.loads(json.dumps(value, allow_nan=False))
