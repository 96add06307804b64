"""Which systems share a page if a page shows only some of them: balanced or adaptive incomplete blocks.

With v systems, k per page and b pages, a page is a block. Each system is on b·k/v pages, and each pair of
systems shares b·k(k − 1)/(v(v − 1)) pages. If these are not whole numbers, counts of systems differ by at
most one, and counts of pairs by as little as the search finds. The search starts greedily (systems that were
shown least, then systems that met least). Then it exchanges two systems between two pages, which keeps the
counts of systems and never raises the sum of squares of the pairs' counts. That sum is smallest exactly if
counts of pairs differ by at most one, so the search knows when to stop. It finds small exact designs and most
large balanced ones; if it gives up earlier, a few pairs differ by one more (tests/human/test_blocks.py).

The blocks are then sorted so that every stretch of them shows all systems about equally often. Finally the
systems get the places of the design at random. So on each page a system is shown with probability k/v, and a
pair with k(k − 1)/(v(v − 1)), exactly, for every result of the search: weights by inverse probabilities are
then equal, and plain means are unbiased.

An adaptive design draws the blocks of a campaign in `STEPS` parts, each once the pages before it are rated.
Before the second and every later part, `stats.incomplete.open_systems` names the open systems, which are
still worth comparing. A share `EVERYONE` of a part's pages shows balanced blocks of all systems, the others
show balanced blocks of the open ones, in random order. So, given all earlier ratings, a page has block B with
probability EVERYONE/C(v, k) + (1 − EVERYONE)·[B open]/C(m, k), with m open systems: each pair of systems can
meet on each page, and the probability is known exactly. In the first part all systems are open, and it has at
least as many pages as showing each of them needs (`min_blocks`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import combinations

from creamtea.store.tables import Block

MAX_EXCHANGES = 100_000  # tries before the search gives up, after a second or two
AHEAD = 100  # blocks from which the next one is chosen
STEPS = 10  # parts of an adaptive design, drawn one after the other; fewer if the first is longer
EVERYONE = 0.2  # approximate share of a part's pages whose systems are drawn from all


def balanced_blocks(blocks: int, systems: int, size: int, seed: str) -> list[list[int]]:
    """Draw the systems (numbers below `systems`) of each block, `size` of them in ascending order.

    The same arguments give the same blocks. ValueError unless 2 ≤ size < systems.
    """
    if not 2 <= size < systems:
        raise ValueError(f"a block has from 2 to {systems - 1} of {systems} systems, not {size}")
    draw = random.Random(seed)
    shown = [0] * systems
    met = [[0] * systems for _ in range(systems)]  # number of blocks that each pair shares
    design: list[list[int]] = []
    holding: list[list[int]] = [[] for _ in range(systems)]  # numbers of each system's blocks
    for number in range(blocks):
        block: list[int] = []
        for _ in range(size):
            others = (system for system in range(systems) if system not in block)
            block.append(
                min(others, key=lambda new: (shown[new], sum(met[new][old] for old in block), draw.random()))
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
    """Yield the blocks, each time the one among the next `AHEAD` whose systems were shown least."""
    rest, shown = list(design), [0] * systems
    while rest:
        ahead = range(min(AHEAD, len(rest)))
        block = rest.pop(min(ahead, key=lambda place: sum(shown[system] for system in rest[place])))
        for system in block:
            shown[system] += 1
        yield block


def _meet(met: list[list[int]], one: int, other: int, change: int) -> None:
    met[one][other] += change
    met[other][one] += change


def _exchange(
    design: list[list[int]], holding: list[list[int]], met: list[list[int]], draw: random.Random
) -> None:
    """Exchange systems between blocks until the counts of pairs differ by one at most, or tries run out.

    A try brings together two systems that meet least: it moves one of them (the guest) into a block of the
    other (the host), in exchange for a system there.
    """
    pairs = list(combinations(range(len(met)), 2))
    counts = [met[one][other] for one, other in pairs]
    usual, more = divmod(sum(counts), len(pairs))
    # Σ count² less its minimum
    excess = sum(count**2 for count in counts) - len(pairs) * usual**2 - more * (2 * usual + 1)
    rarest: list[tuple[int, int]] = []
    for _ in range(MAX_EXCHANGES):
        if excess == 0:
            return
        if not rarest:
            below = [pair for pair in pairs if met[pair[0]][pair[1]] < usual]
            rarest = below or [pair for pair in pairs if met[pair[0]][pair[1]] == usual]
        host, guest = draw.sample(draw.choice(rarest), 2)
        target, source = draw.choice(holding[host]), draw.choice(holding[guest])
        hosts, guests = design[target], design[source]
        leaving = draw.choice(hosts)
        if leaving == host or guest in hosts or leaving in guests:
            continue
        # the counts of systems in both blocks do not change
        staying = [system for system in hosts if system != leaving and system not in guests]
        left = [system for system in guests if system != guest and system not in hosts]
        change = sum(met[guest][system] - met[leaving][system] + 1 for system in staying)
        change += sum(met[leaving][system] - met[guest][system] + 1 for system in left)
        if change > 0:
            continue
        excess += 2 * change
        rarest = []
        for coming, going, others in ((guest, leaving, staying), (leaving, guest, left)):
            for system in others:
                _meet(met, coming, system, 1)
                _meet(met, going, system, -1)
        hosts[hosts.index(leaving)], guests[guests.index(guest)] = guest, leaving
        for system, old, new in ((leaving, target, source), (guest, source, target)):
            holding[system].remove(old)
            holding[system].append(new)


def min_blocks(systems: int, size: int) -> int:
    """Return the number of balanced blocks that show every system."""
    return math.ceil(systems / size)


def adaptive_blocks(
    blocks: int, systems: int, size: int, open_ones: Sequence[int], seed: str
) -> list[Block[int]]:
    """Draw the blocks of the next part of an adaptive design, as they are stored (`block_of`).

    `open_ones`: the open systems, at least `size`; empty if all systems are open.
    """
    if not open_ones:
        open_ones = range(systems)
    of_all = blocks if len(open_ones) == systems else math.ceil(EVERYONE * blocks)
    drawn = balanced_blocks(of_all, systems, size, f"{seed}/all")
    if len(open_ones) == size:
        drawn += [sorted(open_ones)] * (blocks - of_all)
    elif blocks > of_all:
        of_open = balanced_blocks(blocks - of_all, len(open_ones), size, f"{seed}/open")
        drawn += [sorted(open_ones[number] for number in block) for block in of_open]
    random.Random(f"{seed}/part").shuffle(drawn)
    return [block_of(block, systems, open_ones, of_all / blocks) for block in drawn]


def block_of(
    block: Sequence[int], systems: int, open_ones: Sequence[int] = (), share_of_all: float = 1.0
) -> Block[int]:
    """Return a block as it is stored (`Item.block`): its systems and their drawing probabilities.

    The diagonal of the matrix has the probability of each system, the other cells of each pair. With
    probability `share_of_all` the block was drawn from all systems, otherwise from the open ones.
    """
    size = len(block)

    def chance(pair: set[int]) -> float:
        total = 0.0
        for share, members in ((share_of_all, range(systems)), (1 - share_of_all, open_ones)):
            if share and pair.issubset(members):
                n = len(members)
                total += share * (size / n if len(pair) == 1 else size * (size - 1) / (n * (n - 1)))
        return total

    return {"systems": list(block), "chances": [[chance({a, b}) for b in block] for a in block]}
