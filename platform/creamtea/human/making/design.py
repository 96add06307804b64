"""Which systems share a page where a page shows some of them: balanced or adaptive incomplete blocks.

With v systems, k on a page and b pages, a page is a block. Each system is on b·k/v pages and each pair of
systems shares b·k(k − 1)/(v(v − 1)); where these are not whole numbers, counts of systems differ by at most
one, and those of pairs as little as the search finds. A greedy start (systems that were shown least, of these
those that met least) is followed by exchanges of two systems between two pages, which leave the counts of
systems as they are and never raise the sum of squares of the pairs' counts. That sum is smallest exactly if
pairs differ by at most one, so the search knows when it has arrived. It finds small exact designs and most
large balanced ones; where it ends before, a few pairs differ by one more (tests/human/test_design.py).

The blocks are then put in an order in which every stretch of them shows all systems about equally often. At
last the systems are put in the places of the design at random. So on each page a system is shown with
probability k/v, and a pair with k(k − 1)/(v(v − 1)), exactly, whatever the search has found: weights by
inverse probabilities are then equal, and plain means are unbiased.

An adaptive design draws the blocks of a campaign in `STEPS` parts, each when its turn comes. Before the
second and every later part it is known which of the systems are still worth comparing, the open ones
(`stats.incomplete.open_systems`). Of a part's pages a share `EVERYONE` shows balanced blocks of all systems,
the others balanced blocks of the open ones, and which page gets which is drawn at random. A page so has block
B with probability EVERYONE/C(v, k) + (1 − EVERYONE)·[B open]/C(m, k), m open systems, given everything that
was rated before: each pair of systems can meet on each page, and how probably it does is known exactly. In
the first part all systems are open, and it has at least as many pages as show each of them (`min_blocks`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import combinations

from creamtea.store.tables import Block

MAX_EXCHANGES = 100_000  # tried: a second or two, for designs that are not reached before
AHEAD = 100  # blocks, of which the next one is taken
STEPS = 10  # of an adaptive design: parts that are drawn one after the other; fewer if the first is longer
EVERYONE = 0.2  # share of their pages, about, whose systems are drawn from all


def balanced_blocks(blocks: int, systems: int, size: int, seed: str) -> list[list[int]]:
    """Draw the systems (numbers below `systems`) of each block, `size` of them in ascending order.

    The same arguments give the same blocks. ValueError unless 2 ≤ size < systems.
    """
    if not 2 <= size < systems:
        raise ValueError(f"a block has from 2 to {systems - 1} of {systems} systems, not {size}")
    draw = random.Random(seed)
    shown = [0] * systems
    met = [[0] * systems for _ in range(systems)]  # how often each pair shares a block
    design: list[list[int]] = []
    holding: list[list[int]] = [[] for _ in range(systems)]  # by system its blocks
    for number in range(blocks):
        block: list[int] = []
        for _ in range(size):
            left = (system for system in range(systems) if system not in block)
            block.append(
                min(left, key=lambda one: (shown[one], sum(met[one][o] for o in block), draw.random()))
            )
        for system in block:
            shown[system] += 1
            holding[system].append(number)
        for one, other in combinations(block, 2):
            _meet(met, one, other, 1)
        design.append(block)
    _exchange(design, holding, met, draw)
    names = draw.sample(range(systems), systems)
    return [sorted(names[system] for system in block) for block in _evenly(design, systems)]


def _evenly(design: list[list[int]], systems: int) -> Iterator[list[int]]:
    """Yield the blocks, next the one of the first `AHEAD` whose systems have come least."""
    left, shown = list(design), [0] * systems
    while left:
        at = min(range(min(AHEAD, len(left))), key=lambda at: sum(shown[system] for system in left[at]))
        block = left.pop(at)
        for system in block:
            shown[system] += 1
        yield block


def _meet(met: list[list[int]], one: int, other: int, more: int) -> None:
    met[one][other] += more
    met[other][one] += more


def _exchange(
    design: list[list[int]], holding: list[list[int]], met: list[list[int]], draw: random.Random
) -> None:
    """Exchange systems between blocks until the counts of pairs differ by one at most, or it takes too long.

    A try brings together two systems that meet least: one of them comes from its block into a block of the
    other, in exchange for a system there.
    """
    pairs = list(combinations(range(len(met)), 2))
    counts = [met[one][other] for one, other in pairs]
    usual, more = divmod(sum(counts), len(pairs))
    # of Σ count², less what it is at best
    excess = sum(count**2 for count in counts) - len(pairs) * usual**2 - more * (2 * usual + 1)
    rarest: list[tuple[int, int]] = []
    for _ in range(MAX_EXCHANGES):
        if excess == 0:
            return
        if not rarest:
            below = [pair for pair in pairs if met[pair[0]][pair[1]] < usual]
            rarest = below or [pair for pair in pairs if met[pair[0]][pair[1]] == usual]
        host, guest = draw.sample(draw.choice(rarest), 2)
        at, source = draw.choice(holding[host]), draw.choice(holding[guest])
        here, there = design[at], design[source]
        leaving = draw.choice(here)
        if leaving == host or guest in here or leaving in there:
            continue
        # systems in both blocks meet as many as before
        company = [system for system in here if system != leaving and system not in there]
        left = [system for system in there if system != guest and system not in here]
        change = sum(met[guest][system] - met[leaving][system] + 1 for system in company)
        change += sum(met[leaving][system] - met[guest][system] + 1 for system in left)
        if change > 0:
            continue
        excess += 2 * change
        rarest = []
        for coming, going, others in ((guest, leaving, company), (leaving, guest, left)):
            for system in others:
                _meet(met, coming, system, 1)
                _meet(met, going, system, -1)
        here[here.index(leaving)], there[there.index(guest)] = guest, leaving
        for system, old, new in ((leaving, at, source), (guest, source, at)):
            holding[system].remove(old)
            holding[system].append(new)


def min_blocks(systems: int, size: int) -> int:
    """Return how many balanced blocks it takes to show every system."""
    return math.ceil(systems / size)


def adaptive_blocks(
    blocks: int, systems: int, size: int, open_ones: Sequence[int], seed: str
) -> list[Block[int]]:
    """Draw the next part of an adaptive design: what is stored of each block (`block_of`).

    `open_ones` are at least `size` systems, or none: then all are.
    """
    if not open_ones:
        open_ones = range(systems)
    of_all = blocks if len(open_ones) == systems else math.ceil(EVERYONE * blocks)
    drawn = balanced_blocks(of_all, systems, size, f"{seed}/all")
    if len(open_ones) == size:
        drawn += [sorted(open_ones)] * (blocks - of_all)
    elif blocks > of_all:
        few = balanced_blocks(blocks - of_all, len(open_ones), size, f"{seed}/open")
        drawn += [sorted(open_ones[number] for number in block) for block in few]
    random.Random(f"{seed}/part").shuffle(drawn)
    return [block_of(block, systems, open_ones, of_all / blocks) for block in drawn]


def block_of(
    block: Sequence[int], systems: int, open_ones: Sequence[int] = (), share_of_all: float = 1.0
) -> Block[int]:
    """Return what is stored of a block (`Item.block`): its systems and their drawing probabilities.

    The probability of each system is on the diagonal, that of each pair beside it. With `share_of_all` the
    block was drawn from all systems, otherwise from the open ones.
    """
    size = len(block)

    def chance(pair: set[int]) -> float:
        found = 0.0
        for share, members in ((share_of_all, range(systems)), (1 - share_of_all, open_ones)):
            if share and pair.issubset(members):
                few = len(members)
                found += share * (size / few if len(pair) == 1 else size * (size - 1) / (few * (few - 1)))
        return found

    return {"systems": list(block), "chances": [[chance({a, b}) for b in block] for a in block]}
