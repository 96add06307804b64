"""Build a study's report from the database.

rows of the store -> nodes with their metrics -> cells -> tables, figures, texts and facts -> a document
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from sqlalchemy.orm import Session

from creamtea.orders.submission import spec_of
from creamtea.report.analyses import AnalysisResults, analyses_section, build_analysis, missed_idioms
from creamtea.report.answer import answer_section
from creamtea.report.cells import (
    SEEDS_ALLOW,
    WITH_SEEDS,
    StudyResults,
    all_differences,
    few_segments,
    idioms_of,
    known_count,
    state_of,
    step_title,
)
from creamtea.report.configuration import configuration_section, imported_models
from creamtea.report.figures import (
    SystemsOn,
    learning_choice,
    recall_choice,
    recall_curves,
    speed_of,
    sweep_choice,
    sweeps,
)
from creamtea.report.human.build import campaign_reports
from creamtea.report.human.campaign import human_columns
from creamtea.report.model import (
    Block,
    Document,
    Entry,
    Fact,
    Facts,
    Notes,
    Passage,
    Section,
    Texts,
    Warnings,
    column_meanings,
)
from creamtea.report.outputs import ngrams_section
from creamtea.report.tables import (
    agreement_table,
    corpora_table,
    further_table,
    group_tables,
    latency_note,
    latency_table,
    pairs_table,
    ranked,
    systems_table,
    time_shares,
    trainings_table,
)
from creamtea.report.text import one_line
from creamtea.report.vega import styles_of
from creamtea.report.warnings import result_warnings
from creamtea.store.database import Database
from creamtea.store.queries import Node, find_study, steps_of
from creamtea.store.tables import StudyRow
from creamtea.study.spec import Study
from creamtea.wording import counted


def build_report(database: Database, study: str | int, complete: bool = True) -> Document:
    """Build the report of the study with this number, or of the newest study with this name.

    Without `complete`, campaigns have only means, differences and verdicts: no resampling, no agreement, no
    metrics against human scores. No hypotheses are read either, so there are no characteristic n-grams
    (`outputs.build_ngrams` adds them). Raises InputError naming the known studies.
    """
    with database.session() as session:
        return report_of(session, find_study(session, study), complete)


def report_of(session: Session, row: StudyRow, complete: bool = True, *, alone: bool = False) -> Document:
    """Build the report within a session. `alone`: do not mention other submissions, which a bundle lacks."""
    spec = spec_of(row)
    results = StudyResults(session, row.id, spec)
    nodes = results.nodes
    campaigns, left_out = campaign_reports(session, row, results, complete, alone=alone)
    styles = styles_of(spec)
    tables = []
    for name in spec.test_sets:
        table = systems_table(results, name, human_columns(campaigns, name))
        metrics, clock = spec.metrics_on(name), speed_of(table)
        further = further_table(results, name, table)
        pairs = all_differences(results, name, metrics[0]) if metrics else {}
        times = {} if clock is None else time_shares(results, clock.key)
        tables.append(SystemsOn(name, table, further, styles, pairs, times))
    analyses = [build_analysis(results, name, analysis) for name, analysis in spec.analyses.items()]
    warnings = result_warnings(session, results, tables)
    sections = [
        answer_section(spec, tables, campaigns, warnings, _failure_sentences(nodes), analyses),
        Section("warnings", "Warnings", (Warnings("warnings", warnings),) if warnings else (), folded=True),
        Section("systems", "Systems", tuple(_systems_section(results, systems) for systems in tables)),
        Section("reading", "", (Notes("notes", tuple(_notes(spec, results))),)),
        _failures_section(nodes),
        Section(
            "figures",
            "Figures",
            (*_figure_sections(results, tables, analyses), learning_choice(results)) if spec.variants else (),
        ),
        Section(
            "human",
            "Human evaluation",
            (
                *(campaign.section() for campaign in campaigns),
                *([Notes("left_out", tuple(left_out))] if left_out else []),
            ),
        ),
        analyses_section(analyses),
        ngrams_section(session, results) if complete else None,
        _provenance_section(row, results, tables),
        configuration_section(session, row, spec, alone, imported_models(results)),
    ]
    outcomes = Counter(node.outcome for node in steps_of(nodes).values())
    by_number = sorted(outcomes.items(), key=lambda outcome: (-outcome[1], outcome[0]))
    steps = ", ".join(f"{number} {outcome}" for outcome, number in by_number)
    return Document(
        kind="study",
        name=row.name,
        number=row.id,
        state=row.state,
        about=spec.description,
        facts=(
            Fact("number", row.id),
            Fact("started", row.created_at),
            Fact("finished", row.finished_at or "not yet"),
            Fact("steps", steps),
            Fact("baseline", spec.baseline),
        ),
        test_sets=tuple(spec.test_sets),
        sections=tuple(section for section in sections if section is not None and section.blocks),
    )


# ---------------------------------------------------------------- systems and figures


def _systems_section(results: StudyResults, systems: SystemsOn) -> Section:
    segments = known_count(results.of("test_set", test_set=systems.test_set), "segments")
    idioms = idioms_of(results, systems.test_set)
    facts = ["not prepared" if segments is None else counted(segments, "segment")]
    if idioms.count:
        different = f" ({idioms.distinct:,} different)" if idioms.repeated else ""
        facts.append(f"{counted(idioms.count, 'idiom')}{different}")
    if baselines := ", ".join(row.name for row in systems.table.rows if row.baseline):
        facts.append(f"baseline {baselines}")
    missed = missed_idioms(results, systems.test_set)
    few = few_segments(systems.test_set, segments)
    references = {name for name, system in results.spec.systems.items() if system.reference is not None}
    sorted_table = ranked(systems.table, references)
    more = (
        pairs_table(sorted_table, systems.pairs) if systems.pairs else None,
        agreement_table(results, systems.table, systems.test_set),
        systems.further,
        *group_tables(results, systems.test_set),
        None if speed_of(systems.table) is None else latency_table(results),
    )
    meanings = column_meanings(systems.table.columns)
    blocks: list[Block] = [sorted_table, *few, *meanings, *missed, *filter(None, more)]
    name = systems.test_set
    return Section(name, name, tuple(blocks), facts=tuple(facts), test_set=name)


def _figure_sections(
    results: StudyResults, tables: Sequence[SystemsOn], analyses: Sequence[AnalysisResults]
) -> list[Section]:
    curves = recall_curves(results)
    variants = {name: system.variant for name, system in results.spec.systems.items() if system.variant}
    swept = sweeps(results.spec)
    selects = any(system.runs and system.selection.selects for system in results.spec.systems.values())
    sections = []
    for systems in tables:
        idioms = bool(idioms_of(results, systems.test_set).count)
        parameters = sweep_choice(systems, tables, analyses, swept, variants)
        blocks: list[Block] = [recall_choice(systems, curves, idioms)] if selects else []
        blocks += [parameters] if parameters else []
        sections.append(Section(systems.test_set, "", tuple(blocks), test_set=systems.test_set))
    return sections


# ---------------------------------------------------------------- how to read it


def _notes(spec: Study, results: StudyResults) -> Iterator[str]:
    if any(map(spec.metrics_on, spec.test_sets)):
        yield _significance(spec)
    human = [name for name, system in spec.systems.items() if system.reference is not None]
    if human:
        what = "human references" if len(human) > 1 else "a human reference"
        yield (
            f"{', '.join(human)}: {what}. Metrics score such a text against the other references only, so "
            "its values are not comparable with a system's, and no test compares it; people can rate it."
        )
    for name, test_set in spec.test_sets.items():
        unused = [metric.describe() for metric in spec.metrics if metric not in spec.metrics_on(name)]
        if not test_set.has_references and unused:
            yield f"{name} has no references, which {', '.join(unused)} would need."
    if any(system.runs for system in spec.systems.values()):
        yield latency_note(results)


def _significance(spec: Study) -> str:
    chosen = spec.significance
    other_baselines = any({*spec.comparisons(name)} - {spec.baseline} for name in spec.systems)
    baseline = f"{spec.baseline}, or from what the row names" if other_baselines else spec.baseline
    seeds = spec.has_several_seeds
    allow = SEEDS_ALLOW if seeds else ""
    reach = (
        "Where a variant has several seeds, values are means over them, and ± is their sample standard "
        f"deviation. p and intervals cover the choice of segments alone; {WITH_SEEDS}."
        if seeds
        else "p and intervals cover the choice of segments alone."
    )
    if any(system.ensemble for system in spec.systems.values()):
        reach += " An ensemble counts as one seed; against its own models, p and intervals cover segments."
    return (
        f"Δ: difference from {baseline}, paired over segments; brackets are 95 % intervals. p: paired "
        f"bootstrap ({chosen.samples} samples) / approximate randomisation ({chosen.trials} trials; seed "
        f"{chosen.seed}), both two-sided, each after Holm's correction over the comparisons of a test set "
        f"and metric; * marks where both are below 0.05{allow}. {reach}"
    )


# ---------------------------------------------------------------- failures, provenance


UPSTREAM = "not run: an earlier step failed"


def _failure_sentences(nodes: Collection[Node]) -> tuple[str, ...]:
    """Say which step failed first and why, and count the other reasons; else count cancelled steps."""
    reasons: dict[str, str] = {}
    for node in nodes:
        if node.has_failed and node.error_kind not in ("upstream", "unavailable"):
            reasons.setdefault(node.error or state_of(node)[1], step_title(node))
    if not reasons:
        cancelled = sum(node.state == "cancelled" for node in nodes)
        return (f"Cancelled: {counted(cancelled, 'step')} did not run to the end.",) if cancelled else ()
    reason, place = next(iter(reasons.items()))
    more = f" {counted(len(reasons) - 1, 'more failure')} below." if len(reasons) > 1 else ""
    first_line = reason.partition("\n")[0].rstrip(".")
    return (f"Failed: {place}: {one_line(first_line, 200)}.{more}",)


def _failures_section(nodes: Iterable[Node]) -> Section:
    """List what failed, is unavailable or was cancelled: each reason with every place it concerns.

    Steps that could not run because of these come last, in one entry: their cells name the causes.
    """
    by_cause: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        if node.has_failed or node.state == "cancelled":
            cause = (UPSTREAM, "") if node.error_kind == "upstream" else state_of(node)
            if node.state == "succeeded":
                cause = ("failed when it ran again", node.error or "")
            by_cause.setdefault(cause, []).append(node)
    entries = []
    for state, reason in sorted(by_cause, key=lambda cause: cause[0] == UPSTREAM):
        failed = by_cause[state, reason]
        kinds = ", ".join(dict.fromkeys(node.kind for node in failed))
        attempts = max(node.attempts for node in failed)
        name = f"{kinds}: {state}" + (f" after {attempts} attempts" if attempts > 1 else "")
        places = f"{counted(len(failed), 'place')} in the study"
        passages = [Passage("reason", reason)] if reason else []
        passages.append(Passage(places, "; ".join(map(step_title, failed))))
        entries.append(Entry(name, (), tuple(passages)))
    texts = (Texts("failures", "", "", tuple(entries)),) if entries else ()
    return Section("missing", "What is missing", texts)


def _hardware(results: StudyResults) -> tuple[str, ...]:
    """Return the machines of the trainings and of the latency run, each once."""
    machines: dict[str, None] = {}
    for training in results.of("train"):
        if device := training.node.facts.get("device"):
            threads = training.node.facts.get("threads")
            words = [f"training: {device}", *([counted(threads, "thread")] if threads else [])]
            if training.node.facts.get("deterministic") is False:
                words.append("not deterministic")
            machines[", ".join(words)] = None
    for timing in results.of("latency"):
        for metric in timing.metrics:
            if hardware := metric.detail.get("hardware"):
                if isinstance(hardware, dict):
                    hardware = ", ".join(f"{key} {item}" for key, item in hardware.items())
                machines[f"latency: {hardware}"] = None
    return tuple(machines)


def _provenance_section(row: StudyRow, results: StudyResults, tables: Sequence[SystemsOn]) -> Section:
    seeds = tuple(
        f"{name}: {', '.join(map(str, variant.seeds))}" for name, variant in results.spec.variants.items()
    )
    signatures = {
        f"{column.title} on {systems.test_set}": column.signature
        for systems in tables
        for column in systems.table.columns
        if column.signature
    }
    hardware = _hardware(results)
    # the versions that ran the steps, perhaps in an earlier run of a study
    plugins = {
        f"{name} {version}"
        for node in results.nodes
        for name, version in node.facts.get("plugins", {}).items()
    }
    facts = (
        Fact("config hash", row.config_hash, code=True),
        Fact("code version", row.code_version),
        *([Fact("plug-ins", tuple(sorted(plugins)))] if plugins else []),
        *([Fact("seeds", seeds)] if seeds else []),
        *(Fact(f"model {model.label}", model.value) for model in imported_models(results)),
        *([Fact("hardware", hardware or "not reported")] if seeds or hardware else []),
        *(Fact(name, signature, code=True) for name, signature in signatures.items()),
    )
    made_from = [table for table in (corpora_table(results), trainings_table(results)) if table.rows]
    blocks: tuple[Block, ...] = (
        *made_from,
        *column_meanings(column for table in made_from for column in table.columns),
        Facts("versions", "Versions, seeds, hardware", facts),
    )
    return Section("provenance", "Provenance", blocks)
