"""What every form of a report says of people's judgements in words."""

from __future__ import annotations

from dataclasses import dataclass

from creamtea import languages
from creamtea.human.protocols import find_protocol
from creamtea.report import text
from creamtea.report.model import Disagreement, Dispute, HumanReport


@dataclass(frozen=True)
class Judgement:
    """A text that is judged differently; `head` says which it is and how."""

    head: str
    source: str
    output: str


@dataclass(frozen=True)
class Texts:
    """A list of such texts."""

    title: str
    about: str
    shown: tuple[Judgement, ...]


def about(report: HumanReport) -> list[str]:
    """Protocol and scale, progress, test set."""
    return [
        f"{find_protocol(report.protocol).title}, {report.scale}",
        f"{report.state}: {report.progress}",
        f"{report.test_set}, {languages.pair(report.source_language, report.target_language)}",
    ]


def judged_differently(report: HumanReport) -> list[Texts]:
    """By people and metrics, and by raters; only lists that have something in them."""
    lists = [
        Texts(
            "Where people and metrics disagree most",
            "Standard scores over all rated outputs: people's less the metric's. Above 0 people like the "
            "output better than the metric does.",
            tuple(Judgement(_gap(one, report), one.source, one.output) for one in report.disagreements),
        ),
        Texts(
            "Where raters disagree most",
            "The outputs whose ratings lie furthest apart, by their standard deviation.",
            tuple(Judgement(_spread(one, report), one.source, one.output) for one in report.disputes),
        ),
    ]
    return [one for one in lists if one.shown]


def _gap(found: Disagreement, report: HumanReport) -> str:
    """As "segment 12, beam: people 5.20, COMET 0.612, gap +2.1"."""
    people = text.number(found.people, report.points)
    score, gap = f"{found.score:.3f}".replace("-", "−"), f"{found.gap:+.1f}".replace("-", "−")
    return (
        f"segment {found.segment + 1}, {found.system}: people {people}{report.points.unit}, "
        f"{found.metric} {score}, gap {gap}"
    )


def _spread(found: Dispute, report: HumanReport) -> str:
    """As "segment 12, beam: 3 ratings from 1.20 to 5.80, deviation 2.42"."""
    low, high, deviation = (
        text.number(value, report.points) + report.points.unit
        for value in (found.lowest, found.highest, found.deviation)
    )
    return (
        f"segment {found.segment + 1}, {found.system}: {found.ratings} ratings from {low} to {high}, "
        f"deviation {deviation}"
    )


def column_notes(report: HumanReport) -> dict[str, str]:
    """What columns mean, by title; those that say the same in several tables once."""
    return {column.title: column.note for one in report.tables for column in one.table.columns if column.note}
