"""What was done on Pearmut's page (bench/pearmut_run.py), and what an import of its files says."""

from typing import Any

from creamtea.human.record import Content, counted_scores
from creamtea.store.tables import ItemKind

Answers = dict[tuple[str, str, str], dict[str, Any]]  # user, source and output → score and errors


def as_done(done: dict[str, list[dict[str, Any]]]) -> Answers:
    return {
        (user, one["source"], one["output"]): {"score": one["score"], "spans": one["spans"]}
        for user, answers in done.items()
        for one in answers
    }


def as_imported(content: Content) -> Answers:
    """Practice and checks, too; of MQM, no score."""
    found = {}
    for counted in counted_scores(content, tuple(ItemKind)):
        payload = counted.score.payload
        found[counted.answer.rater, counted.item.source, counted.output] = {
            "score": counted.score.step if payload is None else payload.get("score"),
            "spans": sorted((payload or {}).get("spans", []), key=repr),
        }
    return found
