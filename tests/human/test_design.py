"""Balanced incomplete blocks: counts of systems and pairs, by their properties."""

from collections import Counter
from itertools import combinations, pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creamtea.human.making import design
from creamtea.human.making.design import balanced_blocks, block_of


def counts(blocks: list[list[int]], systems: int) -> tuple[list[int], list[int]]:
    """How many blocks each system is in, and how many each pair shares."""
    shown = Counter(system for block in blocks for system in block)
    met = Counter(pair for block in blocks for pair in combinations(block, 2))
    pairs = combinations(range(systems), 2)
    return [shown[system] for system in range(systems)], [met[pair] for pair in pairs]


def spread(values: list[int]) -> int:
    return max(values) - min(values)


# blocks, systems, size: the projective planes of orders 2 and 3, the affine plane of order 3, a biplane,
# Kirkman's fifteen, and pairs alone
EXACT = [(7, 7, 3), (13, 13, 4), (12, 9, 3), (11, 11, 5), (35, 15, 3), (290, 30, 3), (45, 10, 2)]


@pytest.mark.parametrize(("blocks", "systems", "size"), EXACT)
def test_designs_that_exist_are_found(blocks: int, systems: int, size: int) -> None:
    for seed in range(3):
        shown, met = counts(balanced_blocks(blocks, systems, size, str(seed)), systems)
        assert (spread(shown), spread(met)) == (0, 0)


# as campaigns have them; the sixth has 9 of 435 pairs one further off
USUAL = [
    *((500, 13, 3, 1), (71, 13, 3, 1), (500, 30, 3, 1), (1000, 60, 3, 1), (300, 12, 5, 1)),
    *((145, 30, 3, 2), (100, 30, 7, 3), (60, 60, 8, 3)),
]


@pytest.mark.parametrize(("blocks", "systems", "size", "apart"), USUAL)
def test_pairs_of_campaigns_meet_equally_often(blocks: int, systems: int, size: int, apart: int) -> None:
    shown, met = counts(balanced_blocks(blocks, systems, size, "1/blocks"), systems)
    assert spread(shown) <= 1
    assert spread(met) <= apart
    usual = round(sum(met) / len(met))
    assert sum(abs(count - usual) > 1 for count in met) <= len(met) / 20


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_blocks_of_any_size_are_drawn_by_the_seed(data: st.DataObject) -> None:
    systems = data.draw(st.integers(3, 14))
    size = data.draw(st.integers(2, min(8, systems - 1)))
    blocks, seed = data.draw(st.integers(0, 40)), data.draw(st.text(max_size=5))
    with patch.object(design, "MAX_EXCHANGES", 3000):
        found = balanced_blocks(blocks, systems, size, seed)
        assert found == balanced_blocks(blocks, systems, size, seed)
    assert len(found) == blocks
    assert all(len(set(block)) == size and block == sorted(block) for block in found)
    assert all(0 <= system < systems for block in found for system in block)
    shown, met = counts(found, systems)
    assert spread(shown) <= 1
    usual = round(sum(met) / len(met))
    assert sum(abs(count - usual) > 1 for count in met) <= len(met) / 8  # there are none of some sizes


def test_every_stretch_of_pages_shows_all_systems_about_equally_often() -> None:
    """A campaign that ends early is balanced, too, and so are the segments of a document."""
    blocks = balanced_blocks(500, 30, 3, "1")
    for start, end in pairwise(range(0, 501, 50)):  # 5 of each
        shown, _ = counts(blocks[start:end], 30)
        assert 3 <= min(shown) <= max(shown) <= 7


def test_systems_and_pairs_are_drawn_with_the_stored_chances() -> None:
    """Of one block, over seeds: the search favours nobody."""
    draws, systems, size = 2000, 7, 3
    firsts = [balanced_blocks(5, systems, size, str(seed))[2] for seed in range(draws)]
    shown, met = counts(firsts, systems)
    chances = block_of(firsts[0], systems)["chances"]
    for number, chance in [(n, chances[1][1]) for n in shown] + [(n, chances[0][2]) for n in met]:
        deviation = (chance * (1 - chance) / draws) ** 0.5
        assert abs(number / draws - chance) < 4.5 * deviation


def test_the_stored_chances_add_up() -> None:
    """Each page shows k systems, so Σ_j P(i, j) = k·P(i)."""
    block = block_of([2, 5, 9, 11], 13)
    assert block["systems"] == [2, 5, 9, 11]
    assert [block["chances"][at][at] for at in range(4)] == [4 / 13] * 4
    assert block["chances"][0][1] * 12 + 4 / 13 == pytest.approx(4 * 4 / 13)


@pytest.mark.parametrize("size", [1, 5, 6])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="a block has from 2 to 4 of 5 systems"):
        balanced_blocks(3, 5, size, "1")
