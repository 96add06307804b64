"""Choose the segments that people rate, and make items and pages of them as the protocol asks.

All draws depend on the campaign's seed only: the same outputs, settings and seed give the same items. With
the items' weights, the weighted mean over `rated` and `random` items is an unbiased estimate of the mean over
the population; the weights of the chosen segments have mean 1. If documents are rated, they are drawn whole,
and "segment" below means "document".
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

PART_CONTEXT = 3  # minimum of sources before a later part of a document
LENGTH_STRATA = 4  # quarters of the population, by the length of the source in characters
Piece = TypeVar("Piece")
_BETWEEN = "\x00"  # joins segments; no text of a database has it
MetricValues = Mapping[int, Sequence[float]]  # segment → the value of each system
SamplingUnit = tuple[Line, ...]  # drawn as a whole: a segment, or a document's segments in order


def choose(
    lines: Sequence[Line],
    settings: CampaignSettings,
    seed: int,
    metrics: Sequence[MetricValues] = (),
    between: Sequence[int] = (),
) -> tuple[list[Line], DrawnFrom]:
    """Return the chosen segments in the test set's order, and facts about the draw.

    `settings`: complete. `metrics`: the values of `settings.metrics`, in their order. `between`: positions of
    `settings.differ_between`. Only `all` takes segments with equal outputs of all systems; the other kinds
    draw from segments on which outputs differ. InputError if no outputs differ, or if there are more strata
    than items.
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
    """Return each segment, or each document's segments.

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
    """Draw a sample in proportion to the strata, at least one unit of each; weights correct the rounding."""
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
    """Divide `total` in proportion to `sizes`, by largest remainders.

    Each share is at least 1 and at most its size. `total` lies between the number of sizes and their sum.
    """
    counts, whole = [1] * len(sizes), sum(sizes)
    shares = [total * size / whole for size in sizes]
    # the excess of each count over its share, if it can grow: the lowest grows next, the first one on ties
    above = [(1 - share, i) for i, (share, size) in enumerate(zip(shares, sizes, strict=True)) if size > 1]
    heapify(above)
    for _ in range(total - len(sizes)):
        _, lowest = above[0]
        counts[lowest] += 1
        if counts[lowest] < sizes[lowest]:
            heapreplace(above, (counts[lowest] - shares[lowest], lowest))
        else:
            heappop(above)
    return counts


# ---------------------------------------------------------------- disagreement


def _by_disagreement(
    population: list[SamplingUnit], share: float, limit: int, seed: int, metrics: Sequence[MetricValues]
) -> list[Line]:
    """Return a part drawn at random from the whole population, and the units with the most disagreement.

    A unit's disagreement is the mean over its segments. The random part alone is a simple random sample. For
    the weights the population has two parts: the units down to the lowest rank chosen by disagreement, which
    are all rated and represent themselves, and the rest, which the random units below that rank represent.
    Given their number, these are a random sample of the rest, so the weighted mean is unbiased.
    """
    if limit < 2:
        raise wrong("sample.items", "disagreement needs 2 or more: one of them is drawn at random")
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
        attempt += 1  # no unit would represent the rest: rare, with a small random part
    low = (len(ranked) - certain) / len(below) if below else 1.0
    drawn = [line for unit in chosen for line in unit]
    for unit in picked:
        weight = low if unit in below else 1.0
        drawn += (replace(line, kind=ItemKind.RANDOM, weight=weight) for line in unit)
    return drawn


def disagreement(population: Sequence[Line], metrics: Sequence[MetricValues]) -> dict[int, float]:
    """Measure how much the metrics disagree on each segment.

    A metric's differences between two systems are divided by their root mean square over all pairs and
    segments. With one metric the measure is the largest difference. With two it is the sum, over pairs that
    the two order differently, of the product of the differences. InputError if it is 0 everywhere.
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


Blocks = Mapping[int, list[int]]  # segment → its rated systems (positions)


def draw_blocks(
    lines: Sequence[Line], settings: CampaignSettings, systems: Sequence[str], seed: int
) -> Blocks | None:
    """Draw the systems of each segment, or of all segments of each document if documents are rated.

    None if all systems are rated, or if an adaptive design draws them later. The draw does not depend on the
    order of the systems. InputError if the segments (documents) are too few to show every system.
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
    _shuffle(units, seed)  # into the order of rating, so that the units rated first are balanced, too
    by_name = sorted(range(len(systems)), key=lambda system: systems[system])
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
    """Return the groups of the block's systems (positions) that share an item."""
    baseline = settings.position_of_baseline(systems)
    if block is None:
        return protocol.shown_together(outputs, settings.pairs, baseline)
    own = [outputs[system] for system in block]
    # a block without the baseline has no pairs with it
    place = block.index(baseline) if baseline in block else len(block)
    groups = protocol.shown_together(own, settings.pairs, place)
    return [tuple(block[index] for index in group) for group in groups]


def new_item(
    line: Line, systems: Sequence[str], shown: Sequence[int], block: Sequence[int] | None
) -> ItemContent:
    """Return the item that shows the outputs of the systems `shown` (positions), which are in `block`."""
    drawn: Block[str] | None = None
    if block is not None:
        chances = block_of(block, len(systems))["chances"]
        drawn = {"systems": [systems[system] for system in block], "chances": chances}
    return ItemContent(
        kind=line.kind,
        segment=line.index,
        document=line.document,
        source=line.source,
        context=line.context,
        systems=tuple(systems[system] for system in shown),
        outputs=tuple(line.outputs[system] for system in shown),
        weight=line.weight,
        block=drawn,
    )


# ---------------------------------------------------------------- pages
# A document longer than a page is cut into parts of about equal length, and a later part begins with the
# sources before it. A protocol that shows one output at a time has a page for each part and system, so that
# the rater reads one system's running text; a protocol that shows several has a page for each part.
#
# Where outputs are shown one at a time, systems share a page only if their texts are equal in all its
# segments (in the whole document, if it has a score of its own): raters judge a sentence in its text, and
# equal sentences in different texts may deserve different scores. On a page with several systems, equal
# outputs of a segment are shown once and share the score, as everywhere.


def make_pages(
    lines: Sequence[Line],
    protocol: Protocol,
    settings: CampaignSettings,
    systems: Sequence[str],
    seed: int,
    blocks: Blocks | None = None,
) -> list[list[ItemContent]]:
    """Make the items of every page; the protocol says which systems of a segment share an item.

    Unless documents are rated, each item has its own page, in an order drawn from the seed. The pages of a
    document follow one another, by systems in an order drawn for the document, then by parts; documents come
    in an order drawn from the seed. `lines` has whole documents in the test set's order, with context.
    """
    if not settings.by_documents:
        items = [
            new_item(line, systems, shown, block)
            for line in lines
            for block in [None if blocks is None else blocks[line.index]]
            for shown in _shown_together(protocol, line.distinct, settings, systems, block)
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
            equal_in = document if settings.document_score else part  # for systems that share a page
            texts = [_BETWEEN.join(line.distinct[system] for line in equal_in) for system in range(len(rank))]
            for shown in _shown_together(protocol, texts, settings, systems, block):
                first_item, *others = (new_item(line, systems, shown, block) for line in part)
                if number == 0:  # nothing comes before
                    first_item = replace(first_item, context=())
                # the page itself is the context of the other items
                page = [first_item, *(replace(item, context=()) for item in others)]
                # systems that share only some parts stand at the place of the first of them
                place = tuple(sorted(rank[system] for system in shown)[: protocol.max_outputs])
                pages.append((place, number, page))
        ordered += [page for _, _, page in sorted(pages, key=lambda page: page[:2])]
    return ordered


def parts(document: Sequence[Piece], at_most: int) -> list[Sequence[Piece]]:
    """Cut into the fewest parts of at most `at_most` segments; their lengths differ by at most one."""
    count = -(-len(document) // at_most)
    ends = [len(document) * part // count for part in range(count + 1)]
    return [document[start:end] for start, end in pairwise(ends)]
