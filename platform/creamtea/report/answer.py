"""What came out: a report's first block, in sentences made of the numbers of its tables.

A sentence says only what a test has said. Two systems that no test has compared are not ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from creamtea.contract.columns import Column
from creamtea.document.warning import StudyWarning
from creamtea.report import text
from creamtea.report.columns import P50, RECALL_IDIOM, RECALL_WORDS, SPEED
from creamtea.report.figures import SystemsOn, ranking
from creamtea.report.human.section import CampaignReport, progress
from creamtea.report.model import Block, Cell, Delta, Notes, Row, Section, Table
from creamtea.report.tables import ranked
from creamtea.stats.verdict import Outcome
from creamtea.study.spec import Study

TITLE = "What came out"
REVERSIBLE = "One training each: another may reverse this."


def answer_section(
    spec: Study,
    tables: Sequence[SystemsOn],
    campaigns: Sequence[CampaignReport],
    warnings: Sequence[StudyWarning],
) -> Section:
    """One block for each test set: quality, people, speed, idioms, and what to look at first; then a picture
    of the systems, if there are several."""
    blocks = []
    for systems in tables:
        people = [
            report for report in campaigns if report.judged.ratings.campaign.test_set == systems.test_set
        ]
        sentences = (
            *_quality(spec, systems.table),
            *(sentence for report in people for sentence in _people(report)),
            *_speed(spec, systems.table),
            *_idioms(systems.table),
            *_first_look(warnings),
        )
        told: tuple[Block, ...] = (Notes("sentences", sentences, lead=True),)
        column = _main_metric(spec, systems.table)
        if column is not None and sum(_is_scored(spec, row, column) for row in systems.table.rows) > 1:
            references = {name for name, system in spec.systems.items() if system.reference is not None}
            told = (*told, ranking(systems, column, references))
        title = systems.test_set if len(tables) > 1 else ""
        blocks.append(Section(systems.test_set, title, told, test_set=systems.test_set))
    return Section("answer", TITLE, tuple(blocks))


# ---------------------------------------------------------------- quality


def _main_metric(spec: Study, table: Table) -> Column | None:
    """The study's first metric."""
    keys = [metric.name() for metric in spec.metrics]
    return next((column for column in table.columns if column.key in keys[:1]), None)


def _quality(spec: Study, table: Table) -> Iterator[str]:
    """The best system by the main metric, and the systems that the tests do not tell apart from it."""
    column = _main_metric(spec, table)
    if column is None:
        return
    scored = [row for row in table.rows if _is_scored(spec, row, column)]
    if not scored:
        yield f"No system has a {column.title} score yet."
        return
    sign = 1 if column.better != "lower" else -1
    best = max(scored, key=lambda row: sign * (row.cells[column.key].value or 0.0))
    baseline = next((row for row in scored if row.name == (best.against or best.name)), None)
    rest = [row for row in scored if row is not best]
    if not rest:
        yield f"{best.name}: {_score(best, column)}."
    elif baseline is best or baseline is None:
        yield f"The baseline {best.name} has the highest score: {_score(best, column)}."
    else:
        delta = best.cells[column.key].delta
        sentence = f"{best.name} has the highest score: {_score(best, column)}"
        if delta is not None and delta.value is not None:
            found = "significant" if delta.significant else delta.note or "not significant"
            sentence += f"; against the baseline {baseline.name} {_difference(delta, column)}, {found}"
        yield f"{sentence}."
        if not any(_standing(row, column) == "better" for row in scored):
            yield f"No system is shown to be better than the baseline, {_score(baseline, column)}."
    yield from _others(rest, best, column)
    yield from _seeds(spec, scored)


def _is_scored(spec: Study, row: Row, column: Column) -> bool:
    """A human reference is scored against the other references only, and compared with nothing."""
    return row.cells[column.key].value is not None and spec.systems[row.name].reference is None


def _standing(row: Row, column: Column) -> str:
    """What the test against the row's baseline found: better, worse or alike; "" if there was none."""
    delta = row.cells[column.key].delta
    if not row.against or delta is None or delta.value is None:
        return ""
    return text.shown(row.cells[column.key], column).change_state or "alike"


def _others(rest: Sequence[Row], best: Row, column: Column) -> Iterator[str]:
    """What the tests against the baseline say of the systems beside the best one."""
    for standing, words in (
        ("better", "Better than"),
        ("alike", "Not told apart from"),
        ("worse", "Worse than"),
    ):
        found: dict[str, list[str]] = {}
        for row in rest:
            if _standing(row, column) == standing:
                found.setdefault(row.against, []).append(row.name)
        for against, names in found.items():
            yield f"{words} {against}: {', '.join(names)}."
        if standing == "better" and found and best.against:
            yield f"No test has compared {best.name} with these: each was compared with the baseline."


def _seeds(spec: Study, scored: Sequence[Row]) -> Iterator[str]:
    """How far another training could change the order, if several variants were trained."""
    names = {spec.systems[row.name].variant for row in scored if spec.systems[row.name].runs}
    counts = {len(spec.variants[name].seeds) for name in names if name in spec.variants}
    if len(names) > 1 and counts == {1}:
        yield REVERSIBLE
    elif counts and min(counts) > 1:
        yield f"Scores are means over {min(counts)} trainings each."


def _score(row: Row, column: Column) -> str:
    """As "34.2 BLEU [32.9, 35.6]"."""
    cell = row.cells[column.key]
    return " ".join(filter(None, [_value(cell, column), text.interval(cell.low, cell.high, column)]))


def _value(cell: Cell, column: Column) -> str:
    return f"{text.value(cell, column)} {column.title}"


def _difference(delta: Delta, column: Column) -> str:
    """As "+1.2 [0.4, 2.0]"."""
    sign = "+" if (delta.value or 0.0) > 0 else "−" if (delta.value or 0.0) < 0 else "±"
    low, high = delta.bounds
    size = text.number(abs(delta.value or 0.0), column)
    return " ".join(filter(None, [f"{sign}{size}", text.interval(low, high, column)]))


# ---------------------------------------------------------------- people, speed, idioms, warnings


def campaign_answer(report: CampaignReport) -> Section:
    """What came out of one campaign alone."""
    sentences = (*_highest_mean(report), *_people(report))
    return Section("answer", TITLE, (Notes("sentences", sentences, lead=True),))


def _highest_mean(report: CampaignReport) -> Iterator[str]:
    means = next((table for table in report.tables if table.key == "means"), None)
    if means is None:
        return
    column = next(column for column in means.columns if column.key == "mean")
    best = ranked(replace(means, columns=(column,))).rows[0]
    if best.cells["mean"].value is not None:
        cell = best.cells["mean"]
        shown = f"{text.value(cell, column)} {text.interval(cell.low, cell.high, column)}".strip()
        yield f"People put {best.name} first: {shown} ({column.title})."


def _people(report: CampaignReport) -> Iterator[str]:
    """The verdicts of a campaign on its comparisons with the baseline."""
    ratings, baseline = report.judged.ratings, report.judged.systems[report.judged.baseline]
    compared = next((table for table in report.tables if table.key == "comparisons"), None)
    if compared is None:
        yield f"People: campaign {ratings.campaign.name} has no rating that counts yet."
        return
    found: dict[str, list[str]] = {}
    for row in compared.rows:
        found.setdefault(row.cells["verdict"].words or Outcome.UNDECIDED.value, []).append(row.name)
    listed = "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in found.items())
    yield f"People, against {baseline}: {listed} ({progress(ratings)})."


def _speed(spec: Study, table: Table) -> Iterator[str]:
    """The fastest system, its share of the baseline's time, and what its speed costs in quality."""
    column = next((column for column in (P50, SPEED) if column in table.columns), None)
    if column is None:
        return
    timed = [row for row in table.rows if row.cells[column.key].value is not None]
    if len(timed) < 2:
        return
    sign = 1 if column.better == "lower" else -1
    fastest = min(timed, key=lambda row: sign * (row.cells[column.key].value or 0.0))
    cell = fastest.cells[column.key]
    shown = f"{text.value(cell, column)} {column.unit}".strip() if column.unit else _value(cell, column)
    sentence = f"{fastest.name} is the fastest: {shown}"
    if shares := [
        f"{text.percent(share)} of {name}" for name, share in cell.percents.items() if name != fastest.name
    ]:
        sentence += f", {', '.join(shares)}"
    metric = _main_metric(spec, table)
    delta = None if metric is None else fastest.cells[metric.key].delta
    if metric is not None and delta is not None and delta.value is not None:
        sentence += f"; its {metric.title} differs from {fastest.against} by {_difference(delta, metric)}"
    yield f"{sentence}."


def _idioms(table: Table) -> Iterator[str]:
    """The recall of each selection on idioms; a full vocabulary holds everything by definition."""
    column = next((column for column in (RECALL_WORDS, RECALL_IDIOM) if column in table.columns), None)
    if column is None:
        return
    recalls: dict[str, list[str]] = {}
    for row in table.rows:
        cell = row.cells[column.key]
        if cell.value is not None and not cell.by_definition:
            shown = (
                f"{text.number(cell.value, column)} % {text.interval(cell.low, cell.high, column)}".strip()
            )
            recalls.setdefault(shown, []).append(row.name)
    if recalls:
        listed = "; ".join(f"{', '.join(names)} {shown}" for shown, names in recalls.items())
        yield f"{column.title[:1].upper()}{column.title[1:]}: {listed}."


def _first_look(warnings: Sequence[StudyWarning]) -> Iterator[str]:
    """The first warning; the rest stand below."""
    if warnings:
        more = f" {len(warnings) - 1} more below." if len(warnings) > 1 else ""
        yield f"Look first at: {warnings[0].place}: {warnings[0].found}.{more}"
