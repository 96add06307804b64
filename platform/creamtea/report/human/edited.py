"""What raters corrected, by system: of protocols in which they post-edit."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.results.last_answers import LastAnswer, last_answers
from creamtea.report.human.material import Judged, count, number, table
from creamtea.report.model import Row, Table

COLUMNS = (
    Column("ratings", "post-edits", 0),
    Column("rate", "edit rate, %", 1, "lower", note="word edits per word of the corrected text, at most 100"),
    Column("unchanged", "unchanged, %", 1, "higher", note="outputs that the rater left as they were"),
    Column("seconds", "seconds", 1, "lower", note="median time on an output, where it was measured"),
)


def post_edits(session: Session, judged: Judged) -> Table:
    """Means over the ratings that count; every rating weighs the same."""
    answers: dict[int, list[LastAnswer]] = defaultdict(list)
    for answer in last_answers(session, judged.ratings.campaign.id):
        answers[answer.system].append(answer)
    full = judged.protocol.scale.steps - 1
    rows = []
    for system, name in enumerate(judged.systems):
        given = answers[system]
        times = [answer.active_ms / 1000 for answer in given if answer.active_ms is not None]
        kept = [answer.step / full for answer in given]
        cells = {
            "ratings": count(len(given)),
            "rate": number(100 * (1 - sum(kept) / len(kept)) if kept else None),
            "unchanged": number(100 * sum(share == 1 for share in kept) / len(kept) if kept else None),
            "seconds": number(median(times) if times else None),
        }
        rows.append(Row(name, cells))
    about = "What raters corrected. Item weights are ignored here."
    return table("edited", "Post-edits", about, "system", COLUMNS, rows)
