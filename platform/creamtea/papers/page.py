"""docs/papers.md, the tables and figures of the papers with our studies: `python -m creamtea.papers.page`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator

from creamtea.papers.catalogue import (
    Collection,
    Exhibit,
    Paper,
    Status,
    collections_of,
    exhibits,
    papers,
    status_words,
    why_not_run,
)

INTRODUCTION = """\
# The papers' tables and figures

The tables and figures of the three papers, and the studies of ours that have their cells. This page is
generated (`make docs`) from `platform/creamtea/papers/`, where every published value stands as printed; a
test keeps it true.

`creamtea report --paper scones --table 3` shows one of them in the paper's own rows and columns: published
values, ours with their intervals, and a verdict on each claim. *Run* says that creamtea's authors have run
studies that measure so many of the paper's cells, or draw its figure. What came out is in the verdicts and in
[claims](results/claims.md). Pages are counted from the paper's first. Left out are drawings of models and
losses and a listing, which show no data: SCONES, Figures 1 and 10; NVS, Figure 2; entmax, Figures 1 and 2."""


def markdown() -> str:
    """Write the page."""
    parts = (line for name, paper in papers().items() for line in _paper(name, paper))
    return "\n".join([INTRODUCTION, *parts]) + "\n"


def _paper(name: str, paper: Paper) -> Iterator[str]:
    yield f"\n## {paper.short}: {paper.authors} {paper.year}\n\n*{paper.title}*\n"
    yield "| | page | what it shows | study and command | status |\n|:--|--:|:--|:--|:--|"
    for exhibit in exhibits(name):
        yield _row(paper, exhibit)
    yield f"\n### Studies of the {paper.short} paper\n"
    yield "| study | size | command | run |\n|:--|:--|:--|:--|"
    for collection in paper.collections.values():
        for key, member in collection.members.items():
            size = "the paper's" if collection.size == "paper" else "ours"
            ran = f"yes: [results]({collection.ran})" if collection.ran else f"no: needs {collection.not_run}"
            yield f"| {member.name} | {size} | {_code(collection.command(key))} | {ran} |"


def _row(paper: Paper, exhibit: Exhibit) -> str:
    studies = [_study(collection) for collection in collections_of(paper, exhibit).values()]
    status = status_words(paper, exhibit)
    why = why_not_run(paper, exhibit) if status == Status.NOT_RUN else []
    words = " ".join([f"**{status}**{'.' * bool(why or exhibit.missing)}", *why, exhibit.missing]).strip()
    return (
        f"| {exhibit.label} | {exhibit.page} | {exhibit.title} | {'<br>'.join(studies) or 'none'} | {words} |"
    )


def _study(collection: Collection) -> str:
    """Name a collection, with the command of its first study if that is short."""
    first, *others = collection.members
    if collection.members[first].overrides:
        return f"{collection.title}: {_code(collection.members[first].name)} (command below)"
    more = f" and {len(others)} more below" if others else ""
    return f"{collection.title}: {_code(collection.command(first))}{more}"


def _code(words: str) -> str:
    return f"`{words}`"


if __name__ == "__main__":
    ArgumentParser(prog="python -m creamtea.papers.page", description=f"Prints {__doc__}").parse_args()
    print(markdown(), end="")
