"""The errors that raters marked, by system: of the protocols that have them (ESA, MQM)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.making.proposals import outcomes
from creamtea.human.protocols.spans import Span, spans_of
from creamtea.human.results.last_answers import last_answers
from creamtea.report.human.material import Judged, count, number, table
from creamtea.report.model import Row, Table

GOOD = 85  # points: with no marked error an output is called free of errors (WMT 2026)
COLUMNS = (
    Column("ratings", "ratings", 0),
    Column("minor", "minor errors", 2, "lower", note="per rating, neutral and undecided ones left out"),
    Column("major", "major errors", 2, "lower", note="per rating, critical ones included"),
    Column("omissions", "omissions", 2, "lower", note="of these, errors without a place in the output"),
    Column(
        "free", "free of errors, %", 1, "higher", note=f"nothing marked; with ESA also {GOOD} points or more"
    ),
)
PROPOSED = (
    Column("answers", "ratings", 0),
    Column("proposed", "proposed", 0, note="errors that were marked beforehand"),
    Column("left", "left", 0, note="still marked; with another severity or not, the file does not say"),
    Column("kept", "kept", 0),
    Column("changed", "changed", 0),
    Column("deleted", "deleted", 0),
    Column("added", "added", 0, note="errors that raters marked beside the proposed ones"),
)


def marked_errors(session: Session, judged: Judged) -> Table:
    """Means over the ratings that count; every rating weighs the same."""
    ratings: Counter[int] = Counter()
    totals: dict[int, Counter[str]] = defaultdict(Counter)
    for answer in last_answers(session, judged.ratings.campaign.id):
        spans = spans_of(answer.payload)
        ratings[answer.system] += 1
        totals[answer.system].update(_kinds(spans))
        score = answer.payload.get("score") if answer.payload else None
        totals[answer.system]["free"] += not spans and (score is None or score >= GOOD)
    rows = []
    for system, name in enumerate(judged.systems):
        given, found = ratings[system], totals[system]
        per_rating = {
            kind: found[kind] / given if given else None for kind in ("minor", "major", "omissions")
        }
        cells = {kind: number(value) for kind, value in per_rating.items()}
        free = number(100 * found["free"] / given if given else None)
        rows.append(Row(name, {"ratings": count(given), **cells, "free": free}))
    about = "Errors as raters marked them. Means over ratings; item weights are ignored here."
    return table("marked", "Marked errors", about, "system", COLUMNS, rows)


def proposed_errors(session: Session, judged: Judged) -> Table | None:
    """What became of the errors that were marked beforehand; None where none were."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for answer in last_answers(session, judged.ratings.campaign.id):
        if answer.proposed is not None:
            became = outcomes(answer.proposed, spans_of(answer.payload))
            found[answer.system].update({**became, "answers": 1, "proposed": len(answer.proposed)})
    if not found:
        return None
    settings = judged.ratings.campaign.settings
    left_only = settings.proposals_left
    hidden = ("proposed", "kept", "changed", "deleted") if left_only else ("left",)
    rows = []
    for system, name in enumerate(judged.systems):
        counts = found[system] + Counter(left=found[system]["kept"] + found[system]["changed"])
        shown = (column.key for column in PROPOSED if column.key not in hidden)
        rows.append(Row(name, {key: count(counts[key]) for key in shown}))
    source = settings.proposed_by
    by = "" if source is None else f" by {source.metric} (version {source.version})"
    about = (
        f"Errors that were marked{by} before raters began, and what they made of them; of items with such "
        "errors. "
    )
    about += (
        "The file has only those that raters left, so that nobody knows how many they deleted."
        if left_only
        else "A changed one has another severity or category."
    )
    return table("proposed", "Errors marked beforehand", about, "system", PROPOSED, rows)


def _kinds(spans: Sequence[Span]) -> Counter[str]:
    kinds = Counter("minor" if span.severity == "minor" else "major" for span in spans if _counts(span))
    kinds["omissions"] = sum(span.start is None or span.in_source for span in spans if _counts(span))
    return kinds


def _counts(span: Span) -> bool:
    return span.severity in ("minor", "major", "critical")
