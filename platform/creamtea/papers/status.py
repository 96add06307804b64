"""Whether creamtea's authors have run the studies of a table or figure, as docs/results has them. It says
nothing of the studies in a reader's own database."""

from __future__ import annotations

from enum import StrEnum

from creamtea.papers.model import Collection, Drawing, Exhibit, Paper, Source


class Status(StrEnum):
    PAPER_SIZE = "reproduced at the paper's size"
    OUR_SIZE = "reproduced at our size"
    NOT_RUN = "specified, not run"
    NOT_SPECIFIED = "not specified"
    NO_RESULT = "not a result"


def status_of(paper: Paper, exhibit: Exhibit) -> Status:
    """Of the collections that have it: that they ran, not what came out."""
    used = collections_of(paper, exhibit).values()
    if not exhibit.result:
        return Status.NO_RESULT
    for size, status in (("paper", Status.PAPER_SIZE), ("ours", Status.OUR_SIZE)):
        if any(collection.size == size and collection.ran for collection in used):
            return status
    return Status.NOT_RUN if used else Status.NOT_SPECIFIED


def collections_of(paper: Paper, exhibit: Exhibit) -> dict[str, Collection]:
    """Those with cells or figures of the exhibit, by name."""
    parts: tuple[Source | Drawing, ...] = (*exhibit.sources, *exhibit.drawings)
    names = dict.fromkeys(part.collection for part in parts)
    return {name: paper.collections[name] for name in names}


def why_not_run(paper: Paper, exhibit: Exhibit) -> list[str]:
    """A sentence for each reason, with the collections that it holds back."""
    waiting: dict[str, list[str]] = {}
    for collection in collections_of(paper, exhibit).values():
        if collection.not_run:
            waiting.setdefault(collection.not_run, []).append(collection.title)
    return [f"{'; '.join(titles)}: needs {why}." for why, titles in waiting.items()]
