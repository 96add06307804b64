"""Gather the evidence on every marked output of a campaign: `creamtea blame`.

Each output's evidence is stored at once, under a key of everything that it depends on: an interrupted run
continues, and a run with new ratings adds what is new.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.blame.labels import (
    Marked,
    Output,
    has_marks,
    low_scores,
    marks_of,
    of_edit,
    of_reference,
    of_system,
    of_variant,
)
from creamtea.document.values import digest
from creamtea.engine.runner import load_module
from creamtea.engine.try_out import TranslatingStep, opened, translating_step
from creamtea.errors import InputError
from creamtea.human.making.texts import is_about
from creamtea.human.results.ratings import load_ratings
from creamtea.orders.submission import spec_of
from creamtea.steps.systems import DecodeParams
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import Node, find_campaign, find_study, study_nodes
from creamtea.store.tables import Blame, Campaign, Hypothesis, Item, Segment, StepFile, StudyRow
from creamtea.study.spec import Study

VERSION = 1  # of the evidence
MODULE = "creamtea_workers.analysis.origins"
FILE = "segments.jsonl"  # written by a step `test_set`; rows of the database have only the first references


@dataclass(frozen=True)
class Settings:
    """Limits of the searches for evidence.

    `beam`: the width of the wider beam. `states`: how many states exact search may explore per sentence.
    `below`: if no errors are marked, the score up to which an output counts as one mark.
    """

    beam: int = 16
    states: int = 10_000
    below: float | None = None


@dataclass
class Gathered:
    """How many marked outputs have evidence, from this run and from earlier ones.

    `others`: outputs of systems without a model here, or that the study translates differently.
    """

    now: int = 0
    before: int = 0
    others: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Work:
    """The outputs of one system to examine, with their sources and other translations."""

    system: str
    step: TranslatingStep
    sources: dict[Output, str]
    texts: dict[Output, dict[str, str]]
    other_models: dict[str, TranslatingStep]  # by variant; their translations are also evidence


@dataclass(frozen=True)
class _BlameInputs:
    study: int
    spec: Study
    campaign: int
    systems: list[str]
    marked: Marked
    sources: dict[int, str]
    references: dict[int, list[str]]
    hypotheses: dict[tuple[str, int], str]  # by system and segment
    trained: frozenset[str]  # systems whose outputs are decoded by a model of the study


def gather(
    database: Database,
    store: ArtefactStore,
    study: str | int,
    campaign: str,
    settings: Settings,
    only: Sequence[str] = (),
    progress: Callable[[int, int, str], None] = lambda done, total, system: None,
) -> Gathered:
    """Gather evidence on the marked outputs; `only`: of these systems.

    InputError for an unknown study or campaign, if they have no system in common, and if nothing could be
    marked.
    """
    with database.session() as session:
        inputs = _read(session, store, study, campaign, settings)
    unknown = sorted(set(only) - set(inputs.systems))
    if unknown:
        raise InputError(f"--system {unknown[0]}: campaign {campaign!r} rates {', '.join(inputs.systems)}")
    gathered = Gathered()
    work = _plan(database, store, inputs, only, gathered)
    with database.session() as session:
        stored = select(Blame.segment_index, Blame.system, Blame.key)
        rows = session.execute(stored.where(Blame.campaign_id == inputs.campaign))
        keys = {(segment, system): key for segment, system, key in rows}
    to_examine: list[tuple[_Work, list[Output]]] = []
    for part in work:
        missing = [output for output in part.sources if keys.get(output) != _key(part, output, settings)]
        gathered.before += len(part.sources) - len(missing)
        to_examine.append((part, missing))
    total = sum(len(missing) for _, missing in to_examine)
    if not only:  # forget outputs that have lost their marks: a rater was excluded, or the bound is lower
        with database.transaction() as session:
            for row in session.scalars(select(Blame).where(Blame.campaign_id == inputs.campaign)):
                if (row.segment_index, row.system) not in inputs.marked.marks:
                    session.delete(row)
    for part, missing in to_examine:
        if not missing:
            continue
        texts = _texts_with_models(store, part, missing)
        with opened(part.step.task, store) as context:
            module = load_module(MODULE, context.cpus)
            investigation = module.Investigation.of_step(context, settings.beam, settings.states)
        for output in missing:
            examined = investigation.examine(part.sources[output], inputs.marked.texts[output], texts[output])
            row = Blame(
                campaign_id=inputs.campaign,
                segment_index=output[0],
                system=output[1],
                step_key=part.step.node.key,
                key=_key(part, output, settings),
                evidence={**examined, "settings": asdict(settings)},
            )
            with database.transaction() as session:
                session.merge(row)  # it replaces earlier evidence on the output
            gathered.now += 1
            progress(gathered.now, total, part.system)
    return gathered


def _read(
    session: Session, store: ArtefactStore, study: str | int, campaign: str, settings: Settings
) -> _BlameInputs:
    study_row, rated = find_study(session, study), find_campaign(session, campaign)
    _check_same_study(session, study_row, rated)
    ratings = load_ratings(session, rated)
    marked = marks_of(session, ratings)
    if not has_marks(ratings.campaign.protocol):
        if settings.below is None:
            raise InputError(
                f"campaign {campaign!r} ({rated.protocol}): raters mark no errors; --below SCORE counts "
                "outputs with at most this mean score as one error"
            )
        marked = low_scores(marked, ratings, settings.below)
    nodes = study_nodes(session, study_row.id)
    on_test_set = [node for node in nodes if node.labels.get("test_set") == rated.test_set]
    test_set = next((node for node in on_test_set if node.kind == "test_set"), None)
    if test_set is None:
        raise InputError(
            f"study {study!r} has no test set {rated.test_set!r}, which campaign {campaign!r} rates"
        )
    first: dict[str, Node] = {}
    for node in on_test_set:
        if node.kind == "decode":
            first.setdefault(str(node.labels["system"]), node)
    systems = {node.key: name for name, node in first.items()}
    hypotheses = session.execute(
        select(Hypothesis.step_key, Hypothesis.index, Hypothesis.text).where(
            Hypothesis.step_key.in_(systems), Hypothesis.index.in_({segment for segment, _ in marked.marks})
        )
    )
    sources = session.execute(select(Segment.index, Segment.source).where(Segment.step_key == test_set.key))
    return _BlameInputs(
        study=study_row.id,
        spec=spec_of(study_row),
        campaign=rated.id,
        systems=list(rated.systems),
        marked=marked,
        sources=dict(sources.all()),
        references=references_of(session, store, test_set.key, rated.id),
        hypotheses={(systems[key], index): text for key, index, text in hypotheses},
        trained=frozenset(first),
    )


def _check_same_study(session: Session, study: StudyRow, campaign: Campaign) -> None:
    """Raise InputError if the campaign rates outputs of another study.

    Another submission may have the same models; ratings made elsewhere may belong to any study.
    """
    rated = None if campaign.study_id is None else session.get(StudyRow, campaign.study_id)
    if rated is not None and not is_about(session, campaign, study):
        raise InputError(
            f"campaign {campaign.name!r} rates outputs of study {rated.name!r}, number {rated.id}, not of "
            f"number {study.id} ({study.name!r}): give {rated.id}"
        )


def _plan(
    database: Database,
    store: ArtefactStore,
    inputs: _BlameInputs,
    only: Sequence[str],
    gathered: Gathered,
) -> list[_Work]:
    """Return what to examine for each system; count in `gathered` what no model of the study can explain."""
    work = []
    for position, system in enumerate(inputs.systems):
        outputs = sorted(output for output in inputs.marked.marks if output[1] == position)
        if not outputs or (only and system not in only):
            continue
        ours = [
            output
            for output in outputs
            if inputs.hypotheses.get((system, output[0])) == inputs.marked.texts.get(output)
            and output[0] in inputs.sources
        ]
        if len(ours) < len(outputs):
            gathered.others[system] = len(outputs) - len(ours)
        if ours:
            step = translating_step(database, store, inputs.study, system, None)
            texts = {output: _texts(inputs, output) for output in ours}
            sources = {output: inputs.sources[output[0]] for output in ours}
            other_models = _other_models(database, store, inputs, system)
            work.append(_Work(system, step, sources, texts, other_models))
    if not work and gathered.others:
        raise InputError(
            "none of the outputs with marked errors is a translation by this study: "
            f"{why_none(inputs.spec, list(gathered.others))}"
        )
    return work


def why_none(spec: Study, systems: Sequence[str]) -> str:
    """Say why no model of the study made an output of these systems."""
    given = [name for name in systems if name in spec.systems and not spec.systems[name].variant]
    others = [name for name in systems if name not in given]
    reasons = []
    if given:
        reasons.append(
            f"the outputs of {', '.join(given)} are given as texts: no model of the study made them"
        )
    if others:
        reasons.append(f"{', '.join(others)} are not among its systems, or their texts differ")
    return "; ".join(reasons)


def _other_models(
    database: Database, store: ArtefactStore, inputs: _BlameInputs, system: str
) -> dict[str, TranslatingStep]:
    """Return a step that translates with each of the study's variants of another objective.

    Ensembles are left out, because they combine several models.
    """
    variants, systems = inputs.spec.variants, inputs.spec.systems
    objective, models = variants[systems[system].variant].objective, dict[str, TranslatingStep]()
    for name, variant in variants.items():
        using_variant = [
            other
            for other in systems
            if other in inputs.trained and systems[other].variant == name and not systems[other].ensemble
        ]
        if variant.objective != objective and using_variant:
            models[name] = translating_step(database, store, inputs.study, using_variant[0], None)
    return models


def _texts(inputs: _BlameInputs, output: Output) -> dict[str, str]:
    """Return other systems' rated outputs, raters' corrections of this output, and the references."""
    beside = {
        of_system(inputs.systems[position]): text
        for position, text in sorted(inputs.marked.beside(output).items())
    }
    edits = {of_edit(number): text for number, text in enumerate(inputs.marked.edits.get(output, []))}
    references = {
        of_reference(number): text for number, text in enumerate(inputs.references.get(output[0], []))
    }
    return {**beside, **edits, **references}


def _texts_with_models(
    store: ArtefactStore, work: _Work, outputs: Sequence[Output]
) -> dict[Output, dict[str, str]]:
    """Add translations by the study's variants of another objective: same search, full vocabulary."""
    texts = {output: dict(work.texts[output]) for output in outputs}
    search = DecodeParams.model_validate(work.step.task.params).search
    for name, step in work.other_models.items():
        with opened(step.task, store) as context:
            other = load_module(MODULE, context.cpus).OtherModel.of_step(context, search)
        for output, text in zip(
            outputs, other.translate([work.sources[output] for output in outputs]), strict=True
        ):
            texts[output][of_variant(name)] = text
    return texts


def _key(work: _Work, output: Output, settings: Settings) -> str:
    models = {name: step.task.key for name, step in work.other_models.items()}
    texts = [work.sources[output], work.texts[output]]
    return digest([VERSION, work.step.task.key, *texts, asdict(settings), *output, models])


def references_of(
    session: Session, store: ArtefactStore, test_set: str, campaign: int
) -> dict[int, list[str]]:
    """Return all references by segment, each text once, without empty ones.

    `test_set`: the key of its step.
    """
    references: dict[int, list[str]] = defaultdict(list)
    first = select(Segment.index, Segment.reference).where(Segment.step_key == test_set)
    for index, text in session.execute(first):
        references[index].append(text)
    if (file := session.get(StepFile, (test_set, FILE))) is not None:
        with store.open(file.digest) as lines:
            for line in lines:
                if b"more_references" in line:
                    row = json.loads(line)
                    references[row["index"]] += row["more_references"]
    shown = select(Item.segment_index, Item.references).where(Item.campaign_id == campaign)
    for index, texts in session.execute(shown):
        references[index] += texts
    return {index: [text for text in dict.fromkeys(texts) if text] for index, texts in references.items()}
