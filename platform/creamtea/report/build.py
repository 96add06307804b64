"""Build a study's report from the database.

rows of the store -> nodes with their metrics -> cells -> tables, curves, provenance
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.report.cells import Measured, state_of
from creamtea.report.model import (
    CorpusSummary,
    Curve,
    CurvePoint,
    Failure,
    Provenance,
    Report,
    Training,
)
from creamtea.report.tables import Material, build_table, training_cells
from creamtea.store.database import Database
from creamtea.store.queries import Node, corpus_counts, find_study, metrics_of, points_of, study_nodes
from creamtea.store.tables import StudyRow
from creamtea.study.spec import Study

LEARNING = ("train_loss", "dev_loss", "dev_perplexity", "dev_bleu", "learning_rate")
RECALL = ("recall_sentence", "recall_idiom")


def build_report(database: Database, study: str | int) -> Report:
    """The report of the study with this number, or of the newest with this name, whatever its state.

    Raises InputError naming the known studies.
    """
    with database.session() as session:
        return _build(session, find_study(session, study))


def _build(session: Session, row: StudyRow) -> Report:
    spec = _spec(row)
    nodes = study_nodes(session, row.id)
    metrics = metrics_of(session, [node.key for node in nodes])
    material = Material(spec, [Measured(node, metrics.get(node.key, [])) for node in nodes])
    tables = tuple(build_table(material, name) for name in spec.test_sets)
    return Report(
        id=row.id,
        study=row.name,
        description=spec.description,
        state=row.state,
        created_at=row.created_at,
        finished_at=row.finished_at,
        baseline=spec.baseline,
        significance=_significance(spec),
        steps=dict(Counter(state for _, state in {(node.key, node.state) for node in nodes})),
        tables=tables,
        corpora=_corpora(session, row.id, nodes),
        training=tuple(
            Training(str(node.labels["variant"]), int(node.labels["seed"]), training_cells(one))
            for one in material.of("train")
            for node in [one.node]
        ),
        learning=_learning(session, nodes),
        recall=_recall(session, spec, nodes),
        latency_note=_latency_note(spec, material),
        provenance=Provenance(
            config_hash=row.config_hash,
            code_version=row.code_version,
            seeds={name: tuple(variant.seeds) for name, variant in spec.variants.items()},
            hardware=_hardware(material),
            signatures={
                f"{column.title} on {table.test_set}": column.signature
                for table in tables
                for column in table.columns
                if column.signature
            },
        ),
        failures=_failures(nodes),
    )


def _spec(row: StudyRow) -> Study:
    try:
        return Study.model_validate(row.spec)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"study {row.name!r} (number {row.id}) was planned by creamtea {row.code_version}, whose spec "
            f"this version cannot read ({place}: {first['msg']}); run it again"
        ) from None


def _significance(spec: Study) -> str:
    chosen = spec.significance
    return (
        f"Δ: difference from {spec.baseline}, paired bootstrap over segments ({chosen.samples} samples, "
        f"seed {chosen.seed}); brackets are 95 % intervals; p is two-sided, after Holm's correction over the "
        "systems of a test set and metric; * marks p < 0.05. Where a variant has several seeds, values are "
        "means over them: the intervals cover the choice of segments, ± the choice of seeds (sample "
        "standard deviation)."
    )


# ---------------------------------------------------------------- corpora, hardware, failures


def _corpora(session: Session, study_id: int, nodes: list[Node]) -> tuple[CorpusSummary, ...]:
    notes = {str(node.labels.get("corpus")): state_of(node) for node in nodes if node.kind == "corpus"}
    return tuple(
        CorpusSummary(counts.name, *notes[counts.name], counts.pairs, counts.dropped)
        for counts in corpus_counts(session, study_id)
    )


def _hardware(material: Material) -> tuple[str, ...]:
    """What the trainings and the latency run told of their machines, each once."""
    told: dict[str, None] = {}
    for one in material.of("train"):
        if device := one.node.facts.get("device"):
            threads = one.node.facts.get("threads")
            told[f"training: {device}" + (f", {_threads(threads)}" if threads else "")] = None
    for one in material.of("latency"):
        for metric in one.metrics:
            if hardware := metric.detail.get("hardware"):
                told[f"latency: {_flat(hardware)}"] = None
    return tuple(told)


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count != 1)}"


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return str(value)


def _latency_note(spec: Study, material: Material) -> str:
    if spec.latency is None:
        return "the study measures no latency"
    latency = spec.latency
    note = (
        f"Latency: milliseconds a sentence, batch 1, {_threads(latency.threads)}, {latency.sentences} "
        f"sentences of {latency.test_set} × {latency.repetitions} repetitions, systems "
        f"interleaved, the first seed of each; % of {spec.baseline}"
    )
    for one in material.of("latency"):
        state, reason = state_of(one.node)
        if state != "ok":
            note += f" ({state}: {reason})"
    return note


def _failures(nodes: Iterable[Node]) -> tuple[Failure, ...]:
    """One for each step that has gone wrong, the causes before what they brought down."""
    by_key: dict[str, list[Node]] = {}
    for node in nodes:
        if node.state in ("failed", "cancelled"):
            by_key.setdefault(node.key, []).append(node)
    failures = [
        Failure(
            nodes=tuple(node.name for node in places),
            kind=places[0].kind,
            state="upstream" if places[0].error_kind == "upstream" else state_of(places[0])[0],
            reason=state_of(places[0])[1],
            attempts=places[0].attempts,
        )
        for places in by_key.values()
    ]
    return tuple(sorted(failures, key=lambda failure: failure.state == "upstream"))


# ---------------------------------------------------------------- curves


def _learning(session: Session, nodes: list[Node]) -> tuple[Curve, ...]:
    trained = [node for node in nodes if node.kind == "train"]
    points = points_of(session, [node.key for node in trained])
    return tuple(
        Curve(
            series=series,
            group=f"{node.labels['variant']}, seed {node.labels['seed']}",
            test_set="",
            points=tuple(CurvePoint(p.x, p.y, p.label) for p in points[node.key][series]),
        )
        for node in trained
        for series in LEARNING
        if series in points.get(node.key, {})
    )


def _recall(session: Session, spec: Study, nodes: list[Node]) -> tuple[Curve, ...]:
    """The sweeps, each once: systems that differ in k or threshold have one curve in common.

    The sweep does not depend on a system's own k or threshold, so one curve stands for all lexicon
    systems over a corpus and its subwords, and for all NVS systems of a variant and seed.
    """
    measured = [node for node in nodes if node.kind == "recall" and node.state == "succeeded"]
    points = points_of(session, [node.key for node in measured])
    curves: dict[tuple[str, str, str], Curve] = {}
    for node in measured:
        test_set, group = str(node.labels["test_set"]), _recall_group(spec, node)
        for series in RECALL:
            if found := points.get(node.key, {}).get(series):
                curve = Curve(series, group, test_set, tuple(CurvePoint(p.x, p.y, p.label) for p in found))
                curves.setdefault((series, group, test_set), curve)
    return tuple(curves.values())


def _recall_group(spec: Study, node: Node) -> str:
    variant = spec.variants[str(node.labels["variant"])]
    if spec.systems[str(node.labels["system"])].selection.kind == "lexicon":
        several = len({(other.corpus, other.subwords) for other in spec.variants.values()}) > 1
        return f"lexicon, {variant.corpus}/{variant.subwords}" if several else "lexicon"
    seed = f", seed {node.labels['seed']}" if len(variant.seeds) > 1 else ""
    return f"NVS, {node.labels['variant']}{seed}"
