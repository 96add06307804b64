"""Compare systems of several studies on a test set that the studies have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.step import Column
from creamtea.errors import InputError
from creamtea.methods.metrics import Metric, Significance
from creamtea.orders.submission import spec_of
from creamtea.report.answer import TITLE, comparison_answer
from creamtea.report.cells import (
    SEEDS_ALLOW,
    WITH_SEEDS,
    Pair,
    Scores,
    StudyResults,
    all_differences,
    correct,
    differences,
    few_segments,
    known_count,
    near_zero,
    scores_by_model,
    tested_delta,
    with_seeds,
)
from creamtea.report.configuration import spec_table
from creamtea.report.model import (
    Block,
    Cell,
    Delta,
    Document,
    Fact,
    Notes,
    Row,
    Section,
    Table,
    Warnings,
    column_meanings,
)
from creamtea.report.tables import AND, ranked, signatures_of, systems_table
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.steps.systems import CompareParams
from creamtea.store.queries import MetricValue, study_nodes
from creamtea.store.tables import StepFile, StepRow, StudyRow, StudyStep
from creamtea.wording import option

ROW = ("name", "subject", "value", "low", "high", "note", "detail")  # the fields of a comparison's row
COMPARED = ("quality", "recall", "outputs")  # groups of columns; times of different runs cannot be compared
ABOUT = (
    "The studies have the sentences and references of the test set in common. "
    "Latency belongs to one run on one machine, and is in each study's own report."
)

INCOMPLETE = "not tested: outputs of a seed are missing; its study's report says why"
NOTHING_IN_COMMON = (
    "These studies have no test set in common: the same sentences with the same references and idioms."
)
DIGITS = 12  # shown of a SHA-256
SEGMENTS = "segments.jsonl"  # a test set's text
TESTS = (
    "In brackets: 95 % intervals of the difference, by the paired bootstrap (1,000 samples). p: the same "
    "bootstrap / approximate randomisation (10,000 trials), with Holm's correction over a column's systems. "
    f"*: both are below 0.05{SEEDS_ALLOW}; {WITH_SEEDS}. Other pairs within one study are tested as in its "
    "own report; other pairs across studies are not tested."
)


@dataclass(frozen=True)
class StudyTestSet:
    """A study and the name that it gives to a common test set."""

    number: int
    name: str  # as rows show it: with its number if two studies share a name
    test_set: str


def common_test_sets(session: Session, studies: Sequence[StudyRow]) -> dict[str, list[StudyTestSet]]:
    """Return the test sets that all of these studies have, by the key of the first study's step.

    They have the same text, whatever its name, its path, and the version that prepared it. If a study has two
    names for one text, the first is used: the outputs on both are the same.
    """
    names = [study.name for study in studies]
    nodes = [  # an analysis has test sets without this label
        [node for node in study_nodes(session, study.id, "test_set") if "test_set" in node.labels]
        for study in studies
    ]
    keys = [node.key for of_study in nodes for node in of_study]
    wanted = select(StepFile).where(StepFile.name == SEGMENTS, StepFile.step_key.in_(keys))
    texts = {file.step_key: file.digest for file in session.scalars(wanted)}
    by_text: dict[str, dict[int, StudyTestSet]] = {}  # by digest, then by study
    first: dict[str, str] = {}  # keys
    for study, of_study in zip(studies, nodes, strict=True):
        shown = study.name if names.count(study.name) == 1 else f"{study.name} #{study.id}"
        for node in of_study:
            text = texts.get(node.key, node.key)
            first.setdefault(text, node.key)
            named = StudyTestSet(study.id, shown, str(node.labels["test_set"]))
            by_text.setdefault(text, {}).setdefault(study.id, named)
    return {first[text]: list(own.values()) for text, own in by_text.items() if len(own) == len(studies)}


@dataclass(frozen=True)
class TestInputs:
    """What a test of a system's score reads: `params` of a step of kind `compare`, and step keys.

    The keys name the steps whose outputs or segment scores are compared.
    """

    params: dict[str, Any]
    keys: tuple[str, ...]
    scores: Scores | None  # by model; None if one is missing


class CompareRequest(TypedDict):
    """A step of kind `compare` that no study has, as JSON (`creamtea.engine.compare_outputs`)."""

    params: dict[str, Any]
    inputs: dict[str, list[str]]  # keys of steps, by role


@dataclass(frozen=True)
class Compared:
    """A row for each system of each study, without differences until a baseline is chosen."""

    table: Table
    test_set: str  # the key of its step
    tested: dict[tuple[str, str], TestInputs]  # by row and column
    incomplete: frozenset[tuple[str, str]]  # not tested: the outputs of a seed are missing
    low: frozenset[str]  # rows whose BLEU is near zero
    pairs: dict[str, dict[Pair, Delta]]  # by column: pairs within one study, as in the study's own report
    warnings: tuple[Warnings, ...]  # of few segments

    def comparisons(self, baseline: str) -> dict[tuple[str, str], CompareRequest]:
        """Return the comparisons to run, by row and column, for each other row against this one."""
        return {
            (row, column): {
                "params": tested.params,
                "inputs": {
                    "test_set": [self.test_set],
                    "baseline": list(of_baseline.keys),
                    "system": list(tested.keys),
                },
            }
            for (row, column), tested in self.tested.items()
            if row != baseline and (of_baseline := self.tested.get((baseline, column))) is not None
        }

    def against(self, baseline: str, results: Mapping[tuple[str, str], Mapping[str, Any]]) -> Table:
        """Return the table with differences from this row. `results`: the results of the comparisons.

        Holm's correction is over the rows of a column. Differences that could not be tested say why.
        """
        deltas: dict[tuple[str, str], Delta] = {}
        for column in dict.fromkeys(column for _, column in results):
            places = [place for place in results if place[1] == column]
            deltas_of = [
                with_seeds(
                    _delta(results[place]), self.tested[place].scores, self.tested[baseline, column].scores
                )
                for place in places
            ]
            low = [{row, baseline} <= self.low for row, _ in places]
            deltas |= zip(places, correct(deltas_of, low), strict=True)
        deltas |= {
            (row, column): Delta("unavailable", INCOMPLETE)
            for row, column in (*self.tested, *self.incomplete)
            if row != baseline and not self.incomplete.isdisjoint([(row, column), (baseline, column)])
        }
        rows = [
            replace(
                row,
                cells={
                    column: replace(cell, delta=deltas.get((row.name, column)))
                    for column, cell in row.cells.items()
                },
                baseline=row.name == baseline,
                against="" if row.name == baseline else baseline,
            )
            for row in self.table.rows
        ]
        return replace(self.table, rows=tuple(rows))


def _delta(result: Mapping[str, Any]) -> Delta:
    if "error" in result:
        return Delta("unavailable", result["error"])
    return tested_delta(MetricValue(**{name: result[name] for name in ROW}))


def compared_systems(session: Session, test_set: str, studies: Sequence[StudyTestSet]) -> Compared:
    """Build the table of all systems on the test set of this key.

    Studies share a column if its values mean the same: the signatures of the systems' scores are equal, or
    else the column's notes. Raises InputError for a study that this version cannot read.
    """
    results = {
        study: StudyResults(session, study.number, spec_of(session.get_one(StudyRow, study.number)))
        for study in studies
    }
    tables = {study: systems_table(own, study.test_set) for study, own in results.items()}
    meanings = {study: _meanings(results[study], study.test_set, table) for study, table in tables.items()}
    shown: dict[tuple[str, ...], Column] = {}
    for study, table in tables.items():
        for column in (column for column in table.columns if column.group in COMPARED):
            key, *meaning = meanings[study][column.key]
            if column.signature or key in {other.key for other in shown.values()}:
                key = "|".join(filter(None, [key, *meaning]))
            first = shown.setdefault((column.key, *meaning), replace(column, key=key))
            signatures = {*first.signature.split(AND), *column.signature.split(AND)} - {""}
            shown[column.key, *meaning] = replace(first, signature=AND.join(sorted(signatures)))
    rows: list[Row] = []
    tested: dict[tuple[str, str], TestInputs] = {}
    incomplete: set[tuple[str, str]] = set()
    low: set[str] = set()
    pairs: dict[str, dict[Pair, Delta]] = {}
    references: set[str] = set()
    for study, table in tables.items():
        own = meanings[study].values()
        names = {row.name: f"{study.name}: {row.name}" for row in table.rows}
        for row in table.rows:
            cells = {
                column.key: replace(row.cells[place[0]], delta=None)
                if place in own
                else Cell("absent", f"study {study.name} does not measure this, or not with these settings")
                for place, column in shown.items()
            }
            rows.append(Row(names[row.name], cells, description=row.description))
        systems = results[study].spec.systems
        references |= {name for system, name in names.items() if systems[system].reference is not None}
        low |= {names[name] for name in near_zero(results[study], study.test_set)}
        for metric in results[study].spec.metrics_on(study.test_set):
            key = shown[meanings[study][metric.name()]].key
            tests = (results[study], study.test_set, metric)
            for (one, other), delta in (all_differences(*tests) or differences(*tests)).items():
                places = names[one], names[other]
                pairs.setdefault(key, {}).update({places: delta, places[::-1]: delta.scaled(-1)})
            for system, name in names.items():
                place = name, key
                inputs = _test_inputs(results[study], study.test_set, system, metric)
                if inputs is not None:
                    tested[place] = inputs
                elif name not in references and results[study].outputs(system, study.test_set):
                    incomplete.add(place)
    table = Table("compared", "", "study: system", tuple(shown.values()), tuple(rows), ABOUT)
    first_study = studies[0]
    steps = results[first_study].of("test_set", test_set=first_study.test_set)
    few = few_segments(shared_title(studies), known_count(steps, "segments"))
    systems_of_all = ranked(table, references)
    return Compared(systems_of_all, test_set, tested, frozenset(incomplete), frozenset(low), pairs, few)


def _meanings(results: StudyResults, test_set: str, table: Table) -> dict[str, tuple[str, ...]]:
    """Return the meaning of each column's values by its key; studies share columns with equal meanings."""
    systems = [name for name, system in results.spec.systems.items() if system.reference is None]
    signatures = {
        metric.name(): signatures_of(results, test_set, metric, systems)
        for metric in results.spec.metrics_on(test_set)
    }
    return {
        column.key: (column.key, *(signatures.get(column.key) or [column.note])) for column in table.columns
    }


def compared_specs(session: Session, studies: Sequence[StudyTestSet]) -> Table | None:
    """Build a table of the settings in which the studies differ; None if they do not.

    It also has differences that no setting shows: files with the same path but different contents, and the
    versions of creamtea that ran the studies.
    """
    read = [files_read(session, study.number) for study in studies]
    paths = sorted(set(read[0]).intersection(*read))
    specs = {}
    for study, own in zip(studies, read, strict=True):
        row = session.get_one(StudyRow, study.number)
        contents = {f"contents of {path} (SHA-256)": own[path][:DIGITS] for path in paths}
        specs[study.name] = row.spec | contents | {"code version": row.code_version}
    return spec_table(specs, "Settings in which the studies differ")


def files_read(session: Session, study: int) -> dict[str, str]:
    """Return the SHA-256 of each file that the study's steps have read, by its path."""
    kinds = [name for name, kind in STEP_KINDS.items() if "digests" in kind.params.model_fields]
    of_study = select(StepRow.params).join(StudyStep, StudyStep.step_key == StepRow.key)
    digests: dict[str, str] = {}
    for params in session.scalars(of_study.where(StudyStep.study_id == study, StepRow.kind.in_(kinds))):
        digests |= params.get("digests") or {}
    return digests


def shared_title(studies: Sequence[StudyTestSet]) -> str:
    """Return what the studies call their common test set."""
    return " / ".join(dict.fromkeys(study.test_set for study in studies))


def comparison_report(
    session: Session,
    studies: Sequence[StudyRow],
    run: Callable[[CompareRequest], Mapping[str, Any]],
    baseline: str | None = None,
) -> Document:
    """Compare the studies on each test set that all of them have, with every difference tested.

    `run` makes one test; `baseline` is a row, "study: system" (default: the first study's baseline). Raises
    InputError if the studies share no test set, or none has such a row.
    """
    common = common_test_sets(session, studies)
    if not common:
        raise InputError(NOTHING_IN_COMMON)
    answers: list[Section] = []
    sections: list[Section] = []
    tested, refused = False, ""
    for key, shared in common.items():
        compared = compared_systems(session, key, shared)
        rows = list(dict.fromkeys(row for row, _ in compared.tested))
        against = baseline or f"{shared[0].name}: {spec_of(studies[0]).baseline}"
        title, tests = shared_title(shared), TESTS
        table = compared.table
        if against in rows:
            tested = True
            comparisons = compared.comparisons(against)
            table = compared.against(against, {place: run(test) for place, test in comparisons.items()})
        else:
            why = "no such system"
            if against in {row for row, _ in compared.incomplete}:
                why = "outputs of a seed are missing, so that nothing can be compared with it"
            refused = f"{option('baseline')} {against}: {why}; there are {', '.join(rows)}"
            tests = f"Nothing is tested here. {refused}."
        if (answer := comparison_answer(table, compared.pairs, rows)) is not None:
            shown = title if len(common) > 1 else ""
            answers.append(Section(f"answer-{len(sections)}", shown, (answer,), test_set=title))
        meanings = column_meanings(table.columns)
        blocks: tuple[Block, ...] = (table, *compared.warnings, *meanings, Notes("tests", (tests,)))
        sections.append(Section(f"systems-{len(sections)}", title, blocks))
    if not tested:
        raise InputError(refused)
    specs = compared_specs(session, next(iter(common.values())))
    names = [study.name for study in next(iter(common.values()))]
    return Document(
        kind="comparison",
        name=", ".join(names),
        number=0,
        state=next((study.state for study in studies if study.state != "succeeded"), "succeeded"),
        about="",
        facts=(Fact("studies", tuple(f"{study.name} #{study.id}" for study in studies)),),
        test_sets=tuple(section.title for section in sections),
        sections=(
            *([Section("answer", TITLE, tuple(answers))] if answers else []),
            *sections,
            *([Section("settings", "", (specs,))] if specs is not None else []),
        ),
    )


def _test_inputs(results: StudyResults, test_set: str, system: str, metric: Metric) -> TestInputs | None:
    """Return the inputs of a score's test; None for a reference, or if a seed's outputs are missing.

    All studies are tested in the same way, whatever their own `significance` says.
    """
    if results.spec.systems[system].reference is not None:
        return None
    if metric.compares == "segment scores":
        steps = results.of("score", system=system, test_set=test_set, metric=metric.name())
    else:
        steps = results.outputs(system, test_set)
    if not steps or any(step.node.state != "succeeded" for step in steps):
        return None
    params = CompareParams(
        metric=metric.of_step(), significance=Significance(), languages=results.spec.languages
    )
    scores = scores_by_model(results, system, test_set, metric)
    return TestInputs(params.to_json(), tuple(step.node.key for step in steps), scores)
