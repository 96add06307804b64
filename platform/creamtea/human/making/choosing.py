"""Which segments people rate, and the items and pages that the protocol makes of them.

Everything is drawn from the campaign's seed alone: the same outputs, settings and seed give the same
items. An item's weight makes the weighted mean over `rated` and `random` items an unbiased estimate of the
mean over the population; the weights of the chosen segments have mean 1. Where documents are rated they are
drawn whole: what is said below of a segment then holds for a document.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace
from itertools import combinations, groupby, pairwise
from statistics import fmean
from typing import Any, TypeVar

import numpy as np

from creamtea.errors import InputError, wrong
from creamtea.human.making.design import balanced_blocks, block_of, min_blocks
from creamtea.human.making.settings import CampaignSettings, DrawnFrom, number_of
from creamtea.human.making.texts import Line
from creamtea.human.protocols import Protocol
from creamtea.human.record import ItemContent
from creamtea.store.tables import Block, ItemKind
from creamtea.wording import counted, key_name

PART_CONTEXT = 3  # sources at least that a later part of a document begins with
LENGTH_STRATA = 4  # quarters of the population, by the length of the source in characters
Piece = TypeVar("Piece")
_BETWEEN = "\x00"  # joins segments; no text of a database has it
MetricValues = Mapping[int, Sequence[float]]  # segment → the value of each system
SamplingUnit = tuple[Line, ...]  # what is drawn as a whole: a segment, or a document's segments in order


def choose(
    lines: Sequence[Line],
    settings: CampaignSettings,
    seed: int,
    metrics: Sequence[MetricValues] = (),
    between: Sequence[int] = (),
) -> tuple[list[Line], DrawnFrom]:
    """Return the chosen segments in the test set's order, and what they were drawn from.

    `settings` are complete; `metrics` are the values of `settings.metrics`, in their order, and `between`
    the positions of `settings.differ_between`. Only `all` takes segments on which all systems say the same;
    the others draw from the differing ones. InputError where nothing differs, or there are more strata than
    items.
    """
    population = [
        unit
        for unit in _sampling_units(lines, by_documents=settings.by_documents)
        if settings.select == "all" or any(line.differs(between) for line in unit)
    ]
    if not population:
        names = " and ".join(settings.differ_between) or "the systems"
        raise InputError(
            f"{names} give the same output for every segment: nothing to rate; choose other systems or "
            "another test set"
        )
    limit = min(settings.items or len(population), len(population))
    match settings.select:
        case "stratified":
            drawn = _stratified(population, settings.strata, limit, seed)
        case "disagreement":
            drawn = _by_disagreement(population, settings.random_share, limit, seed, metrics)
        case _:
            drawn = [line for unit in _drawn(population, limit, f"{seed}/items") for line in unit]
    drawn.sort(key=lambda line: line.index)
    mean = sum(line.weight for line in drawn) / len(drawn)
    chosen = [replace(line, weight=line.weight / mean) for line in drawn]
    return chosen, DrawnFrom(
        segments=len(lines),
        differing=sum(line.differs() for line in lines),
        population=sum(map(len, population)),
        between=settings.differ_between,
        chosen=len(chosen),
        documents=len({line.document for line in chosen}) if settings.by_documents else None,
        of_documents=len(population) if settings.by_documents else None,
    )


def _sampling_units(lines: Sequence[Line], *, by_documents: bool) -> list[SamplingUnit]:
    """Return each segment, or each document.

    InputError if the segments of a document do not follow one another.
    """
    if not by_documents:
        return [(line,) for line in lines]
    units = [tuple(part) for _, part in groupby(lines, key=lambda line: line.document)]
    seen: set[str] = set()
    for first, *_ in units:
        if first.document in seen:
            raise wrong(
                "documents",
                f"document {first.document!r} begins again at segment {first.index + 1}; the segments of a "
                "document must follow one another, so give its parts names of their own",
            )
        seen.add(first.document)
    return units


def _drawn(units: Sequence[SamplingUnit], count: int, seed: str) -> list[SamplingUnit]:
    return random.Random(seed).sample(list(units), count)


# ---------------------------------------------------------------- strata


def _stratified(population: list[SamplingUnit], names: Sequence[str], limit: int, seed: int) -> list[Line]:
    """Draw a sample in proportion to the strata, at least one unit of each; weights make up for rounding."""
    strata = _strata(population, names)
    if len(strata) > limit:
        raise InputError(
            f"{len(strata)} strata by {' and '.join(names)} for {counted(limit, 'segment')}: ask for more "
            f"with {key_name('sample.items')}, or stratify by less with {key_name('sample.strata')}",
            about="sample.items",
        )
    sizes = [len(units) for units in strata.values()]
    return [
        replace(line, weight=len(units) / count)
        for (key, units), count in zip(strata.items(), proportional(sizes, limit), strict=True)
        for unit in _drawn(units, count, f"{seed}/stratum/{key}")
        for line in unit
    ]


def _strata(
    population: list[SamplingUnit], names: Sequence[str]
) -> dict[tuple[Any, ...], list[SamplingUnit]]:
    length_of = {unit[0].index: sum(len(line.source) for line in unit) for unit in population}  # characters
    lengths = sorted(length_of.values())
    bounds = [lengths[len(lengths) * part // LENGTH_STRATA] for part in range(1, LENGTH_STRATA)]
    keys: dict[str, Callable[[SamplingUnit], Any]] = {
        "length": lambda unit: sum(length_of[unit[0].index] >= bound for bound in bounds),
        "document": lambda unit: unit[0].document,
    }
    strata: dict[tuple[Any, ...], list[SamplingUnit]] = defaultdict(list)
    for unit in population:
        strata[tuple(keys[name](unit) for name in names)].append(unit)
    return dict(sorted(strata.items()))


def proportional(sizes: Sequence[int], total: int) -> list[int]:
    """Share `total` out in proportion to `sizes`, by largest remainders.

    Each share is at least 1 and at most its size. `total` lies between the number of sizes and their sum.
    """
    counts, whole = [1] * len(sizes), sum(sizes)
    shares = [total * size / whole for size in sizes]
    # how far each lies above its share, of those with room: the lowest gets the next, the first of equals
    above = [(1 - share, at) for at, (share, size) in enumerate(zip(shares, sizes, strict=True)) if size > 1]
    heapify(above)
    for _ in range(total - len(sizes)):
        _, at = above[0]
        counts[at] += 1
        if counts[at] < sizes[at]:
            heapreplace(above, (counts[at] - shares[at], at))
        else:
            heappop(above)
    return counts


# ---------------------------------------------------------------- disagreement


def _by_disagreement(
    population: list[SamplingUnit], share: float, limit: int, seed: int, metrics: Sequence[MetricValues]
) -> list[Line]:
    """Return a part drawn at random from the whole population, then the units with the most disagreement.

    A unit's disagreement is the mean over its segments. The random part alone is a simple random sample. For
    the weights the population falls in two: the units down to the lowest rank chosen by disagreement, which
    are all rated and stand for themselves, and the rest, for which the random part below that rank stands.
    Given how many units of the random part fall below, they are a random sample of the rest, so the weighted
    mean is unbiased.
    """
    if limit < 2:
        raise wrong("sample.items", "disagreement needs 2 or more, of which one is drawn at random")
    of_segment = disagreement([line for unit in population for line in unit], metrics)
    scores = {unit: fmean(of_segment[line.index] for line in unit) for unit in population}
    ranked = sorted(population, key=lambda unit: (-scores[unit], unit[0].index))
    number = min(max(1, number_of(share, limit)), limit - 1)
    attempt = 0
    while True:
        picked = set(_drawn(population, number, f"{seed}/random/{attempt}"))
        chosen = [unit for unit in ranked if unit not in picked][: limit - number]
        certain = ranked.index(chosen[-1]) + 1
        below = {unit for unit in ranked[certain:] if unit in picked}
        if below or certain == len(ranked):
            break
        attempt += 1  # nothing would stand for the rest: rare, with a random part of a few units
    low = (len(ranked) - certain) / len(below) if below else 1.0
    drawn = [line for unit in chosen for line in unit]
    for unit in picked:
        weight = low if unit in below else 1.0
        drawn += (replace(line, kind=ItemKind.RANDOM, weight=weight) for line in unit)
    return drawn


def disagreement(population: Sequence[Line], metrics: Sequence[MetricValues]) -> dict[int, float]:
    """Measure how much the metrics disagree on each segment.

    A metric's differences of two systems are divided by their root mean square over all pairs and
    segments. One metric: the largest difference. Two: the sum over pairs, ordered differently by the two,
    of the product of the differences; 0 where no pair is. InputError where that is 0 everywhere.
    """
    pairs = list(combinations(range(len(population[0].outputs)), 2))
    differences = []
    for values in metrics:
        missing = [line.index for line in population if line.index not in values]
        if missing:
            raise InputError(
                f"a metric has no value for segment {missing[0] + 1}: run the study again (`creamtea run`)",
                about="sample.metrics",
            )
        table = np.array([values[line.index] for line in population])  # (segments, systems)
        between = np.stack([table[:, first] - table[:, second] for first, second in pairs], axis=1)
        scale = float(np.sqrt((between**2).mean()))
        differences.append(between / scale if scale else between)
    if len(differences) == 1:
        scores = np.abs(differences[0]).max(axis=1)
    else:
        scores = np.maximum(0.0, -differences[0] * differences[1]).sum(axis=1)
    if not scores.any():
        raise InputError(
            f"the metrics never disagree about these systems: use another {key_name('sample.kind')}",
            about="sample.kind",
        )
    return {line.index: float(score) for line, score in zip(population, scores, strict=True)}


# ---------------------------------------------------------------- items


Blocks = Mapping[int, list[int]]  # segment → the systems (positions) that are rated of it


def draw_blocks(
    lines: Sequence[Line], settings: CampaignSettings, systems: Sequence[str], seed: int
) -> Blocks | None:
    """Draw the systems of each segment, the same for all segments of a document that is rated as a whole.

    None if all systems are rated, or if an adaptive design draws them later. The order of the systems does
    not matter. InputError if the segments (documents) are too few to show every system.
    """
    size = settings.block_size(len(systems))
    if size is None:
        return None
    units = [[line.index] for line in lines]
    if settings.by_documents:
        documents = groupby(lines, key=lambda line: line.document)
        units = [[line.index for line in document] for _, document in documents]
    if len(units) < (needed := min_blocks(len(systems), size)):
        shown = f"{counted(len(units), settings.unit)} with {size} of {len(systems)} systems each"
        more = f"take at least {needed} {settings.unit}s ({key_name('sample.items')}), or show more systems"
        raise wrong("sample.systems_per_page", f"{shown} cannot show every system: {more}")
    if settings.design == "adaptive":
        return None
    _shuffle(units, seed)  # as they will be rated: then what is rated first is balanced, too
    by_name = sorted(range(len(systems)), key=lambda at: systems[at])
    drawn = balanced_blocks(len(units), len(systems), size, f"{seed}/blocks")
    return {
        index: sorted(by_name[number] for number in block)
        for unit, block in zip(units, drawn, strict=True)
        for index in unit
    }


def _shuffle(units: list[Piece], seed: int) -> None:
    random.Random(f"{seed}/order").shuffle(units)


def _shown_together(
    protocol: Protocol,
    outputs: Sequence[str],
    settings: CampaignSettings,
    systems: Sequence[str],
    block: Sequence[int] | None,
) -> list[tuple[int, ...]]:
    """Return the groups of systems (positions) that share an item, of those in the block."""
    baseline = settings.position_of_baseline(systems)
    if block is None:
        return protocol.shown_together(outputs, settings.pairs, baseline)
    own = [outputs[system] for system in block]
    # a block without the baseline has no pairs with it
    place = block.index(baseline) if baseline in block else len(block)
    return [tuple(block[at] for at in group) for group in protocol.shown_together(own, settings.pairs, place)]


def new_item(
    line: Line, systems: Sequence[str], shown: Sequence[int], block: Sequence[int] | None
) -> ItemContent:
    """Return the item that shows the outputs of some `systems` (positions), all of the segment's `block`."""
    drawn: Block[str] | None = None
    if block is not None:
        chances = block_of(block, len(systems))["chances"]
        drawn = {"systems": [systems[at] for at in block], "chances": chances}
    return ItemContent(
        kind=line.kind,
        segment=line.index,
        document=line.document,
        source=line.source,
        context=line.context,
        systems=tuple(systems[at] for at in shown),
        outputs=tuple(line.outputs[at] for at in shown),
        weight=line.weight,
        block=drawn,
    )


# ---------------------------------------------------------------- pages
# A document longer than a page is cut into parts of about equal length, and a later part begins with the
# sources before it. A protocol that shows one output at a time makes a page of each part and system, so that
# the rater reads one system's text as it runs; one that shows several makes a page of each part.
#
# Systems share a page only if they say the same in all its segments (where the document has a score of its
# own: in all of its segments): on a page a sentence is judged in its text, and equal sentences in different
# texts are not the same thing to judge. Within a page of several systems equal outputs of a segment are shown
# once and share the score, as everywhere.


def make_pages(
    lines: Sequence[Line],
    protocol: Protocol,
    settings: CampaignSettings,
    systems: Sequence[str],
    seed: int,
    blocks: Blocks | None = None,
) -> list[list[ItemContent]]:
    """Make the items of every page; the protocol says which systems of a segment share an item.

    Segments that are no documents' have a page for each item, in an order drawn from the seed.

    The pages of a document follow one another, by systems in an order drawn for the document, then by
    parts; documents come in an order drawn from the seed. `lines` hold whole documents in the test set's
    order, each line with its context.
    """
    if not settings.by_documents:
        items = [
            new_item(line, systems, shown, block)
            for line in lines
            for block in [None if blocks is None else blocks[line.index]]
            for shown in _shown_together(protocol, line.outputs, settings, systems, block)
        ]
        _shuffle(items, seed)
        return [[item] for item in items]
    documents = [list(part) for _, part in groupby(lines, key=lambda line: line.document)]
    _shuffle(documents, seed)
    ordered: list[list[ItemContent]] = []
    for document in documents:
        first = document[0]
        block = None if blocks is None else blocks[first.index]
        rank = list(range(len(first.outputs)))
        random.Random(f"{seed}/order/{first.index}").shuffle(rank)
        pages: list[tuple[tuple[int, ...], int, list[ItemContent]]] = []
        for number, part in enumerate(parts(document, settings.segments_per_page)):
            read = document if settings.document_score else part  # what has to be equal to share a page
            texts = [_BETWEEN.join(line.outputs[system] for line in read) for system in range(len(rank))]
            for shown in _shown_together(protocol, texts, settings, systems, block):
                first_item, *others = (new_item(line, systems, shown, block) for line in part)
                if number == 0:  # nothing comes before
                    first_item = replace(first_item, context=())
                page = [first_item, *(replace(item, context=()) for item in others)]  # the page has theirs
                # systems that share one part and not the next stand where the first of them does
                place = tuple(sorted(rank[system] for system in shown)[: protocol.max_outputs])
                pages.append((place, number, page))
        ordered += [page for _, _, page in sorted(pages, key=lambda page: page[:2])]
    return ordered


def parts(document: Sequence[Piece], at_most: int) -> list[Sequence[Piece]]:
    """Cut into as few parts as there can be of at most so many segments, their lengths equal but for one."""
    count = -(-len(document) // at_most)
    ends = [len(document) * part // count for part in range(count + 1)]
    return [document[start:end] for start, end in pairwise(ends)]
