"""Whether creamtea's authors have run the studies of a table or figure, as docs/results has them. It says
nothing of the studies in a reader's own database."""

from __future__ import annotations

from enum import StrEnum

from creamtea.papers.cells import SIZES, share_run
from creamtea.papers.model import Collection, Drawing, Exhibit, Paper, Size, Source


class Status(StrEnum):
    PAPER_SIZE = f"run {SIZES['paper']}"
    OUR_SIZE = f"run {SIZES['ours']}"
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


def status_words(paper: Paper, exhibit: Exhibit) -> str:
    """Name the status, with the share of the paper's cells that ran: "run at our size: 15 of 156 cells"."""
    status = status_of(paper, exhibit)
    if status not in (Status.PAPER_SIZE, Status.OUR_SIZE):
        return status
    size: Size = "paper" if status == Status.PAPER_SIZE else "ours"
    run, cells = share_run(paper, exhibit, size)
    used = [paper.collections[drawing.collection] for drawing in exhibit.drawings]
    drawn = any(collection.size == size and collection.ran for collection in used)
    return f"{status}: {run} of {cells} cells" + (", and the figure" if drawn else "")


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
