"""Proposals that a metric of the study has made: the errors that its scorer found (docs/scorers.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.error_spans import SPANS_FILE
from creamtea.errors import InputError
from creamtea.human.making.outputs import check_names, metric_names, succeeded_key
from creamtea.human.making.proposals import Proposal
from creamtea.human.making.settings import ProposedBy
from creamtea.human.protocols.spans import Span
from creamtea.store.queries import find_study, study_nodes
from creamtea.store.tables import StepFile, StepRow, StudyRow
from creamtea.wording import key_name

FIELD = "protocol.proposals_from"


def one_of_the_two() -> InputError:
    """Refuse proposals of a metric and of a file at once."""
    both = f"{key_name(FIELD)} and {key_name('protocol.proposals')}"
    return InputError(f"{both}: give one of the two", about=FIELD)


def metrics_with_errors(session: Session, study: StudyRow) -> list[str]:
    """The metrics whose scorer has found errors in outputs of some system of the study, sorted."""
    nodes = study_nodes(session, study.id, "score")
    has_errors = set(
        session.scalars(
            select(StepFile.step_key).where(
                StepFile.name == SPANS_FILE, StepFile.step_key.in_({node.key for node in nodes})
            )
        )
    )
    return sorted({str(node.labels.get("metric")) for node in nodes if node.key in has_errors})


def proposals_of_metric(
    session: Session,
    read: Callable[[str], bytes],
    study: str | int,
    test_set: str,
    systems: Sequence[str],
    metric: str,
) -> tuple[list[Proposal], ProposedBy]:
    """The stored errors of each system's outputs, and the scorer that found them. `read` gives the content of
    an artefact by its digest. InputError for a metric that the study does not have, or whose scorer finds no
    errors."""
    asked = f"{key_name(FIELD)}: {metric}"
    row = find_study(session, study)
    check_names(session, row, test_set, systems)
    known = metric_names(session, row)
    if metric not in known:
        raise InputError(
            f"{asked}: study {row.name!r} has no such metric; it has {', '.join(known) or 'none'}",
            about=FIELD,
        )
    nodes = study_nodes(session, row.id, "score")
    proposals: list[Proposal] = []
    scorers: dict[str, ProposedBy] = {}
    for system in systems:
        what = f"values of {metric!r} on {test_set!r}"
        key = succeeded_key(nodes, row, what, system=system, test_set=test_set, metric=metric)
        file = session.get(StepFile, (key, SPANS_FILE))
        if file is None:
            raise InputError(
                f"{asked}: its scorer gave no `spans` with the scores of {system}: docs/scorers.md "
                "says how it can; then give it another `version`, and run the study again",
                about=FIELD,
            )
        proposals += [_proposal(metric, system, line) for line in read(file.digest).split(b"\n") if line]
        scorers[system] = _scorer(session.get_one(StepRow, key), metric)
    first, *others = scorers.values()
    if any(other != first for other in others):
        raise InputError(
            f"{asked}: the systems were scored by different versions: run the study again", about=FIELD
        )
    return proposals, first


def _proposal(metric: str, system: str, line: bytes) -> Proposal:
    row = json.loads(line)
    spans = tuple(Span.model_validate(span) for span in row["spans"])
    return Proposal(f"{metric} of {system}, segment {row['index'] + 1}", system, row["index"], spans)


def _scorer(step: StepRow, metric: str) -> ProposedBy:
    spec, pins = step.params["metric"], step.params.get("scorer") or {}
    return ProposedBy(
        metric=metric,
        scorer=spec.get("scorer", spec["kind"]),
        model=spec.get("model"),
        version=pins.get("version", ""),
        digest=pins.get("digest", ""),
    )
