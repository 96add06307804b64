"""Documents as pages: consecutive segments that one rater sees and answers together.

A document longer than a page is cut into parts of about equal length, and a later part begins with the
sources before it. A protocol that shows one output at a time makes a page of each part and system, so that
the rater reads one system's text as it runs; one that shows several makes a page of each part.

Systems share a page only if they say the same in all its segments (where the document has a score of its own:
in all of its segments): on a page a sentence is judged in its text, and equal sentences in different texts
are not the same thing to judge. Within a page of several systems equal outputs of a segment are shown once
and share the score, as everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TypeVar

from creamtea.human.making.choosing import ChosenSegment, new_item
from creamtea.human.making.new_items import NewItem
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.protocols import Protocol

PART_CONTEXT = 3  # sources at least that a later part of a document begins with
Piece = TypeVar("Piece")
_BETWEEN = "\x00"  # joins segments; no text of a database has it


def make_pages(
    choices: Sequence[ChosenSegment],
    protocol: Protocol,
    settings: CampaignSettings,
    baseline: int,
    seed: int,
) -> list[list[NewItem]]:
    """The items of every page.

    The pages of a document follow one another, by systems in an order drawn for the document, then by
    parts; documents come in an order drawn from the seed. `choices` hold whole documents in the test set's
    order, each line with its context.
    """
    documents = [list(part) for _, part in groupby(choices, key=lambda choice: choice.line.document)]
    random.Random(f"{seed}/order").shuffle(documents)
    return [
        page for document in documents for page in _pages_of(document, protocol, settings, baseline, seed)
    ]


def _pages_of(
    document: Sequence[ChosenSegment],
    protocol: Protocol,
    settings: CampaignSettings,
    baseline: int,
    seed: int,
) -> list[list[NewItem]]:
    rank = list(range(len(document[0].line.outputs)))
    random.Random(f"{seed}/order/{document[0].line.index}").shuffle(rank)
    pages: list[tuple[tuple[int, ...], int, list[NewItem]]] = []
    for number, part in enumerate(parts(document, settings.segments_per_page)):
        read = document if settings.document_score else part  # what has to be equal to share a page
        texts = [_BETWEEN.join(choice.line.outputs[system] for choice in read) for system in range(len(rank))]
        for systems in protocol.shown_together(texts, settings.pairs, baseline):
            page = [new_item(choice, systems) for choice in part]
            for at, item in enumerate(page):
                if number == 0 or at > 0:  # nothing comes before, or the page has it
                    item.context = []
            # systems that share one part and not the next stand where the first of them does
            shown = tuple(sorted(rank[system] for system in systems)[: protocol.max_outputs])
            pages.append((shown, number, page))
    return [page for _, _, page in sorted(pages, key=lambda page: page[:2])]


def parts(document: Sequence[Piece], at_most: int) -> list[Sequence[Piece]]:
    """As few parts as there can be of at most so many segments, their lengths equal but for one."""
    count = -(-len(document) // at_most)
    ends = [len(document) * part // count for part in range(count + 1)]
    return [document[start:end] for start, end in pairwise(ends)]
