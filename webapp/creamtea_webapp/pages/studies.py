"""The studies of this database, newest first, each with a link to its report."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy.orm import Session

from creamtea.access import rights
from creamtea.orders.submission import UnreadableStudy, spec_of
from creamtea.report.text import number
from creamtea.settings import Settings
from creamtea.store.queries import StudySummary, find_study, list_studies, metrics_of, study_nodes
from creamtea.store.tables import StudyRow
from creamtea.wording import duration
from creamtea_webapp import session
from creamtea_webapp.markup import Cell, moment, render, show, show_list

TEMPLATE = "studies.html"
HEADS = ("study", "state", "steps", "best", "systems", "submitted (UTC)", "took", "earlier runs")


def page() -> None:
    who = session.require(rights.READ_STUDIES)
    with session.database().session() as reading:
        by_name: dict[str, list[StudySummary]] = {}
        for summary in list_studies(reading):
            by_name.setdefault(summary.name, []).append(summary)
        rows = [_row(reading, newest, earlier) for newest, *earlier in by_name.values()]
    takes = rights.may(who, rights.SUBMIT_STUDIES) and Settings.load().data is not None
    show(TEMPLATE, "head", submits=takes, compares=bool(rows))
    if rows:
        show_list("studies", HEADS, rows, words=[0, 1, 2, 3, 4, 7])
    else:
        show(TEMPLATE, "no_studies")


def _row(reading: Session, newest: StudySummary, earlier: list[StudySummary]) -> list[Cell]:
    study = find_study(reading, newest.id)
    ended = newest.finished_at
    took = (ended - newest.created_at).total_seconds() if ended else 0.0
    return [
        render("parts.html", "link", address=f"?study={newest.id}", text=newest.name),
        render("parts.html", "state_badge", state=newest.state),
        (render(TEMPLATE, "steps", study=newest), newest.done / max(1, newest.total)),
        _best(reading, study),
        render(TEMPLATE, "systems", systems=list(study.spec["systems"])),
        moment(newest.created_at).removesuffix(" UTC"),
        (duration(took) if ended else "", took if ended else ""),
        (render(TEMPLATE, "runs", runs=earlier), len(earlier)),
    ]


def _best(reading: Session, study: StudyRow) -> str:
    """Return the best mean over seeds, by the first metric on the first test set, with its system."""
    try:
        spec = spec_of(study)
    except UnreadableStudy:
        return "cannot be read here"
    test_set = next(iter(spec.test_sets))
    if not (metrics := spec.metrics_on(test_set)):
        return ""
    metric = metrics[0]
    column = metric.column()
    wanted = {"metric": metric.name(), "test_set": test_set}
    nodes = [
        node for node in study_nodes(reading, study.id, "score") if wanted.items() <= node.labels.items()
    ]
    stored = metrics_of(reading, [node.key for node in nodes])
    scores: dict[str, list[float]] = defaultdict(list)
    for node in nodes:
        scores[node.labels["system"]] += [
            score.value
            for score in stored.get(node.key, [])
            if score.name == metric.row() and not score.subject and score.value is not None
        ]
    means = {system: sum(values) / len(values) for system, values in scores.items() if values}
    if not means:
        return ""
    best = (min if metric.better == "lower" else max)(means, key=means.__getitem__)
    return f"{number(means[best], column)} {column.title} ({best})"
