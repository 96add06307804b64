"""Compute the numbers of a bundle again, without a database or a network, and report differences."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

import creamtea
from creamtea.bundle.archive import MANIFEST, Archive, Difference, sha256
from creamtea.bundle.packing import (
    ABOUT,
    PAGE,
    README,
    REPORT,
    OpenedBundle,
    media_file,
    opened_bundle,
    study_place,
    versions,
)
from creamtea.contract.step import StepResult, step_key
from creamtea.document.values import digest
from creamtea.engine.executors.base import StepTask
from creamtea.engine.runner import load_step
from creamtea.engine.state import task_of
from creamtea.engine.try_out import opened
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

# other processors and versions of NumPy may change the last digits of a sum
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
    """Return all numbers by their places.

    Elements of a list without a name, or with an earlier element's name, are distinguished by their number.
    """
    if is_number(value):
        return {place: value}
    inner: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
    if isinstance(value, list):
        for number, item in enumerate(value):
            name = _label([item], number)
            inner[f"{name} ({number + 1})" if name in inner else name] = item
    by_place: dict[str, float] = {}
    for name, item in inner.items():
        by_place |= numbers(item, place if name in CONTAINERS else f"{place}/{name}".lstrip("/"))
    return by_place


def _label(pair: list[Any], number: int) -> str:
    """Label an element of two lists: by its name if it has one, else by its number from 1."""
    for element in pair:
        for name in NAMES if isinstance(element, dict) else ():
            if isinstance(element.get(name), str) and element[name]:
                return " ".join(filter(None, [element[name], element.get("setting")]))
    return str(number + 1)


def count_numbers(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(count_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(count_numbers, value))
    return int(is_number(value))


# kinds of steps that are recomputed in full; for the others, only metrics that follow from their texts
RECOMPUTED = ("score", "compare", "pairs", "agreement", "buckets", "outputs")
NEEDS = {
    "corpus": "its text is not in a bundle",
    "train": "needs the training text and the computer's time",
    "import_model": "needs the model's files, which are not in a bundle",
    "test_set": "made of files that are not in a bundle; its segments are there with their SHA-256",
    "decode": "needs the trained model; its outputs are there with their SHA-256",
    "latency": "needs the computer that was measured",
    "differences": "needs statistics of each sentence, which are not in a bundle",
}
USERS_FILE = "needs a file that is not in a bundle; the text read from it is there with its SHA-256"
NEEDS_MODEL, NEEDS_TEXT = "needs the trained model", "needs the training text"
Texts = dict[str, list[dict[str, Any]]]  # the rows of text files, by name


@dataclass
class Findings:
    """What a verification found.

    `recomputed`: how many numbers, by kind. `skipped`: places that were not recomputed, by kind and reason.
    """

    differences: list[Difference] = field(default_factory=list)
    recomputed: dict[str, int] = field(default_factory=dict)
    skipped: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def compare(self, what: str, stored: Any, recomputed: Any, place: str) -> None:
        self.recomputed[what] = self.recomputed.get(what, 0) + (count_numbers(recomputed) or 1)
        self.differences += differences(stored, recomputed, place)

    def skip(self, what: str, reason: str, place: str) -> None:
        self.skipped.setdefault((what, reason), []).append(place)

    @contextmanager
    def guarded(self, place: str) -> Iterator[None]:
        """Note a difference if the block cannot compute with its rows: a rating of an unknown system, say."""
        try:
            yield
        except CreamteaError as error:
            self.differences.append(Difference(place, "a result", f"cannot be computed: {error}"))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError) as error:
            reason = f"cannot be computed: {type(error).__name__}: {error}"
            self.differences.append(Difference(place, "a result", reason))

    def covers_left_out(self, what: str, left_out: list[str], place: str) -> bool:
        """Return whether a digest covers settings that are left out; it is then noted as skipped."""
        covered = [line for line in left_out if line.startswith(f"{place}: ")]
        if covered:
            self.skip(what, f"its digest covers settings that are left out ({', '.join(covered)})", place)
        return bool(covered)


def check_plan(session: Session, left_out: list[str], findings: Findings) -> None:
    """Compare the studies' digests, and each step's key, which covers its parameters and inputs."""
    for study in session.scalars(select(StudyRow).order_by(StudyRow.id)):
        what, place = "digests of the study", study_place(study)
        if not findings.covers_left_out(what, left_out, place):
            findings.compare(what, study.config_hash, digest(study.spec), f"{place}: config hash")
    inputs: dict[str, dict[str, list[str]]] = {}
    in_order = select(StepInput).order_by(StepInput.step_key, StepInput.role, StepInput.position)
    for row in session.scalars(in_order):
        inputs.setdefault(row.step_key, {}).setdefault(row.role, []).append(row.input_key)
    for step in session.scalars(select(StepRow).order_by(StepRow.key)):
        place = f"step {step.key[:12]} ({step.kind}): key"
        if missing := plugins_missing(step):
            findings.skip("keys of steps", missing, place)
            continue
        key = step_key(step.kind, step.version, step.params, inputs.get(step.key, {}), _own_plugins(step))
        findings.compare("keys of steps", step.key, key, place)


def plugins_missing(step: StepRow) -> str:
    """Name the plug-ins that made the step and are not installed here; "" if there are none."""
    return not_here(step.resources.get("plugins") or {})


def _own_plugins(step: StepRow) -> dict[str, str]:
    """Return the plug-ins in the step's key; its resources also have its inputs' plug-ins."""
    needed: dict[str, str] = step.resources.get("plugins") or {}
    if not needed:
        return {}
    kind = STEP_KINDS[step.kind]
    step_plugins = plugins_of(kind, kind.params.model_validate(step.params))
    return {name: version for name, version in needed.items() if name in step_plugins}


def check_step(bundle: OpenedBundle, session: Session, step: StepRow, place: str, findings: Findings) -> None:
    """Compute the outputs of a succeeded step again, if possible, and compare them."""
    kind = STEP_KINDS.get(step.kind)
    title = kind.title if kind is not None else step.kind
    if kind is None or kind.version != step.version:
        findings.skip(title, f"version {step.version} of this step is not in this creamtea", place)
        return
    if missing := plugins_missing(step):
        findings.skip(title, missing, place)
        return
    task = task_of(session, step, bundle.study, bundle.store.root)
    inputs = {  # of steps with texts, only these: no recomputed step reads other files, no bundle has them
        role: [[file for file in files if file.name in TEXT_FILES] or files for files in steps]
        for role, steps in task.inputs.items()
    }
    task = replace(task, inputs=inputs)
    texts = _texts(session, bundle.store, step.key)
    stored = {
        (metric.name, metric.subject): asdict(metric)
        for metric in metrics_of(session, [step.key]).get(step.key, [])
    }
    if reason := _reason(task, bundle.store):
        findings.skip(title, reason, place)
        for name, value in _metrics_of_texts(task, texts):
            known = stored.get((name, ""))
            if known is not None:
                part = {key: known[key] for key in value}
                findings.compare(f"{title}: numbers from its texts", part, value, f"{place}: {name}")
        return
    result, made = _run(task, bundle.store)
    again = {(row["name"], row["subject"]): row for row in stored_metrics(result)}
    for metric in sorted(stored.keys() | again.keys()):
        where = " of ".join(filter(None, metric))
        findings.compare(title, stored.get(metric), again.get(metric), f"{place}: {where}")
    for file, rows in made.items():
        findings.compare(title, texts.get(file), rows, f"{place}: {file}")


def _reason(task: StepTask, store: ArtefactStore) -> str:
    """Say why a step cannot be computed again; "" if it can."""
    if task.kind not in RECOMPUTED:
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
    """Run the step; return its result, and the rows of its text files."""
    with opened(task, store) as context:
        result = load_step(STEP_KINDS[task.kind], context.cpus)(context)
        made = {}
        for file in sorted(context.output.iterdir()):
            if file.name in TEXT_FILES:
                with file.open("rb") as lines:
                    made[file.name] = list(stored_lines(file.name, lines))
    return result, made


def _texts(session: Session, store: ArtefactStore, key: str) -> Texts:
    """Return the rows of the text files that a step left."""
    texts = {}
    for file in session.scalars(select(StepFile).where(StepFile.step_key == key)):
        if file.name in TEXT_FILES:
            with store.open(file.digest) as lines:
                texts[file.name] = list(stored_lines(file.name, lines))
    return texts


def _metrics_of_texts(task: StepTask, texts: Texts) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the metrics that follow from a step's texts: (name, fields of the metric's row)."""
    if task.kind == "test_set":
        yield "segments", {"value": float(len(texts["segments.jsonl"]))}
    if task.kind in ("decode", "outputs"):
        rows = texts["hypotheses.jsonl"]
        empty = sum(not row["text"] for row in rows)
        yield "empty", {"value": empty / len(rows), "detail": {"count": empty, "of": len(rows)}}
        if task.kind == "decode":
            yield "selected_size", {"value": sum(row["selected_size"] for row in rows) / len(rows)}
    if task.kind == "score" and _metric_of(task).compares == "segment scores":
        values = np.array([row["value"] for row in texts["segment_scores.jsonl"]])

        def mean(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(sums[..., 0] / sums[..., 1])

        interval = bootstrap_interval(np.column_stack([values, np.ones_like(values)]), mean)
        yield _metric_of(task).row(), {"value": interval.value, "low": interval.low, "high": interval.high}


NAMED = 3  # places of numbers that are not compared
AROUND = 60  # characters shown on both sides of the first difference between two pages


@dataclass(frozen=True)
class NotRecomputed:
    """Something that was not recomputed, and why."""

    what: str
    reason: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    `recomputed`: how many numbers, by kind. `versions`: package → (packed with, here).
    """

    study: str
    number: int
    packed_by: str
    versions: dict[str, tuple[str, str]]
    recomputed: dict[str, int]
    not_recomputed: tuple[NotRecomputed, ...]
    differences: tuple[Difference, ...]


def verify(path: Path, progress: Callable[[str], None] = lambda place: None) -> Verification:
    """Recompute a bundle's numbers; InputError if the file is not a bundle.

    `progress` is called with each step that is computed again.
    """
    findings = Findings()
    with Archive(path) as archive, opened_bundle(archive) as bundle:
        findings.differences += bundle.differences
        with bundle.database.session() as session:
            with findings.guarded("plan of the study"):
                check_plan(session, archive.manifest.left_out, findings)
            steps = session.scalars(select(StepRow).where(StepRow.state == "succeeded")).all()
            for row in sorted(steps, key=lambda row: bundle.places.get(row.key, "")):
                place = bundle.places.get(row.key, row.key[:12])
                progress(place)
                with findings.guarded(place):
                    check_step(bundle, session, row, place, findings)
            for campaign in session.scalars(select(Campaign).order_by(Campaign.id)):
                with findings.guarded(f"campaign {campaign.name}"):
                    _check_campaign(session, campaign, archive, findings)
            progress("report")
            with findings.guarded(REPORT):
                _check_report(bundle, session, archive, findings)
            _check_rest(bundle, session, archive, findings)
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
        recomputed=findings.recomputed,
        not_recomputed=tuple(NotRecomputed(*key, tuple(places)) for key, places in findings.skipped.items()),
        differences=tuple(findings.differences),
    )


def _check_campaign(session: Session, campaign: Campaign, archive: Archive, findings: Findings) -> None:
    """Compare the plan registered at the launch, and scores that follow from payloads (marked errors)."""
    place = f"campaign {campaign.name}"
    registered, what = campaign.registered, "registered plans"
    if registered is not None:
        plan = {part: value for part, value in registered.items() if part != "digest"}
        if not findings.covers_left_out(what, archive.manifest.left_out, place):
            findings.compare(what, registered["digest"], digest(plan), f"{place}: registered plan: digest")
        for part, (then, now) in changed_parts(session, campaign).items():
            findings.differences += differences(then, now, f"{place}: registered plan: {part}")
    _check_media(session, campaign, archive, findings)
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
        findings.compare("ratings", rating.step, step, where)


def _check_media(session: Session, campaign: Campaign, archive: Archive, findings: Findings) -> None:
    """Check the media files against the items that name them."""
    place = f"campaign {campaign.name}: media files"
    query = select(CampaignMedia).where(CampaignMedia.campaign_id == campaign.id)
    files = {file.digest: file for file in session.scalars(query.order_by(CampaignMedia.digest))}
    items = session.scalars(select(Item).where(Item.campaign_id == campaign.id).order_by(Item.position))
    named = set(types_of(entry for item in items for entry in item.media))
    for content_digest in sorted(named ^ set(files)):
        both = ("named by an item", NOTHING) if content_digest in named else (NOTHING, "there")
        findings.differences.append(Difference(f"{place}: {content_digest}", *both))
    packed = set(archive.names("media/"))
    for content_digest, file in files.items():
        where = f"{place}: {content_digest}"
        if media_file(content_digest) not in packed:
            findings.differences.append(Difference(where, "a file", NOTHING))
            continue
        content = archive.read(media_file(content_digest))
        findings.compare("media files", [content_digest, file.size], [sha256(content), len(content)], where)


def _check_report(bundle: OpenedBundle, session: Session, archive: Archive, findings: Findings) -> None:
    missing = next(filter(None, map(plugins_missing, session.scalars(select(StepRow)))), "")
    if missing:  # without the plug-in, even the study cannot be read
        findings.skip(REPORT, missing, REPORT)
        return
    report = report_of(session, find_study(session, bundle.study), alone=True)
    as_written = json.dumps(to_values(report), allow_nan=False)  # tuples become lists, keys texts
    stored, recomputed = archive.read_json(REPORT), json.loads(as_written)
    if archive.manifest.creamtea != creamtea.__version__:  # another version may use other words or numbers
        stored, recomputed = numbers(stored), numbers(recomputed)
        lacking = stored.keys() - recomputed.keys()
        if lacking:
            reason = (
                f"this version of creamtea does not report all numbers: {len(lacking):,} are not compared"
            )
            findings.skip(REPORT, reason, ", ".join(sorted(lacking)[:NAMED]))
        both = [name for name in stored if name in recomputed]
        stored, recomputed = {name: stored[name] for name in both}, {name: recomputed[name] for name in both}
    findings.compare("report", stored, recomputed, REPORT)
    page, again = archive.read(PAGE).decode(errors="replace"), to_html(report)
    if page != again:
        pairs = enumerate(zip(page, again, strict=False))
        first = next((position for position, pair in pairs if pair[0] != pair[1]), min(len(page), len(again)))
        shown = slice(max(0, first - AROUND), first + AROUND)
        line = page[:first].count("\n") + 1
        if archive.manifest.creamtea != creamtea.__version__:
            findings.skip(PAGE, "was written by another version of creamtea", f"line {line}")
        else:
            findings.differences.append(Difference(f"{PAGE}, line {line}", page[shown], again[shown]))


def _check_rest(bundle: OpenedBundle, session: Session, archive: Archive, findings: Findings) -> None:
    """Check the files that only people read, and find files that no row refers to.

    This check comes last, when all other files have been read.
    """
    row = find_study(session, bundle.study)
    if archive.manifest.study.name != row.name:
        findings.differences.append(Difference(f"{MANIFEST}: study", archive.manifest.study.name, row.name))
    if archive.manifest.creamtea != creamtea.__version__:
        findings.skip(README, "was written by another version of creamtea", README)
    elif (text := archive.read(README).decode(errors="replace")) != ABOUT:
        findings.differences.append(Difference(README, text, ABOUT))
    known = {REPORT, PAGE, README, *map(media_file, session.scalars(select(CampaignMedia.digest)))}
    findings.differences += [
        Difference(name, "there", "a file that no row is about")
        for name in archive.unread()
        if name not in known
    ]
