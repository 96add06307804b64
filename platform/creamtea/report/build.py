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
from creamtea.methods.analysis import ANALYSES
from creamtea.report.analysis_tables import build_analyses
from creamtea.report.cells import Material, Measured, state_of
from creamtea.report.curves import learning_curves, recall_curves
from creamtea.report.human.build import human_reports
from creamtea.report.human.columns import human_columns
from creamtea.report.model import CorpusSummary, Failure, Provenance, Report, Training
from creamtea.report.parameters import sweeps
from creamtea.report.tables import build_table, latency_baselines, training_cells
from creamtea.store.database import Database
from creamtea.store.queries import Node, corpus_counts, find_study, metrics_of, points_of, study_nodes
from creamtea.store.tables import StudyRow
from creamtea.study.spec import Study


def build_report(database: Database, study: str | int, complete: bool = True) -> Report:
    """The report of the study with this number, or of the newest with this name, whatever its state.

    Without `complete`, of people's judgements there is a summary only: means, differences and verdicts, but
    nothing that takes resampling, nor agreement, nor metrics against people. No texts of hypotheses are read
    for it. Raises InputError naming the known studies.
    """
    with database.session() as session:
        return _build(session, find_study(session, study), complete)


def _build(session: Session, row: StudyRow, complete: bool) -> Report:
    spec = _spec(row)
    nodes = study_nodes(session, row.id)
    metrics = metrics_of(session, [node.key for node in nodes])
    material = Material(spec, [Measured(node, metrics.get(node.key, [])) for node in nodes])
    analysed = [node.key for node in nodes if node.kind in ANALYSES.kinds]
    human = human_reports(session, row, material, complete)
    tables = tuple(build_table(material, name, human_columns(human, name)) for name in spec.test_sets)
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
        learning=learning_curves(session, nodes),
        recall=recall_curves(session, spec, nodes),
        analyses=build_analyses(material, points_of(session, analysed)),
        sweeps=sweeps(spec),
        human=human,
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
    own = any(spec.baseline_of(name) not in (name, spec.baseline) for name in spec.systems)
    baseline = f"{spec.baseline}, or from what the row names" if own else spec.baseline
    return (
        f"Δ: difference from {baseline}, paired over segments; brackets are 95 % intervals. p: paired "
        f"bootstrap ({chosen.samples} samples) / approximate randomisation ({chosen.trials} trials; seed "
        f"{chosen.seed}), both two-sided, each after Holm's correction over the systems of a test set and "
        "metric; * marks where both are below 0.05. Where a variant has several seeds, values are means over "
        "them: the intervals and p cover the choice of segments, ± the choice of seeds (sample standard "
        "deviation)."
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
        f"interleaved, the first seed of each; % of {' / '.join(latency_baselines(spec))}, paired over "
        "repetitions"
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
