"""The order in which outputs are shown: complete, grouped, drawn from a seed, balanced."""

import random
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.human.rating.page import Order, draw_order, groups_of

TEXTS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=8)


def spread(orders: list[Order], systems: int) -> int:
    """The largest difference between two counts of (system, column)."""
    count = Counter(
        (system, column) for order in orders for column, group in enumerate(order) for system in group
    )
    cells = [count[system, column] for system in range(systems) for column in range(systems)]
    return max(cells) - min(cells)


@given(TEXTS, st.permutations(range(8)))
def test_equal_outputs_stand_together_under_their_own_systems(outputs: list[str], names: list[int]) -> None:
    systems = names[: len(outputs)]
    groups = groups_of(systems, outputs)
    text_of = dict(zip(systems, outputs, strict=True))
    assert sorted(system for group in groups for system in group) == sorted(systems)
    assert [text_of[group[0]] for group in groups] == list(dict.fromkeys(outputs))
    assert all(text_of[system] == text_of[group[0]] for group in groups for system in group)


@given(TEXTS, st.lists(TEXTS, max_size=6), st.integers(0, 3), st.text(max_size=3))
def test_an_order_shows_each_group_once_and_follows_from_what_was_drawn_before(
    outputs: list[str], others: list[list[str]], times: int, seed: str
) -> None:
    groups = groups_of(range(len(outputs)), outputs)
    of_rater = [groups_of(range(len(other)), other) for other in others]
    of_item = [draw_order(groups, seed=str(number)) for number in range(times)]
    order = draw_order(groups, of_item=of_item, of_rater=of_rater, seed=seed)
    assert sorted(order) == sorted(groups)
    assert order == draw_order(groups, of_item=of_item, of_rater=of_rater, seed=seed)


def test_seeds_reach_every_order() -> None:
    groups = groups_of(range(4), "abcd")
    drawn = Counter(str(draw_order(groups, seed=str(seed))) for seed in range(1200))
    assert len(drawn) == 24
    assert max(drawn.values()) < 100  # 50 expected, seven standard deviations away


@pytest.mark.parametrize(("systems", "k", "people"), [(4, 3, 3), (4, 3, 6), (2, 2, 4), (8, 2, 5)])
def test_columns_are_balanced_over_the_raters_of_an_item_and_the_items_of_a_rater(
    systems: int, k: int, people: int
) -> None:
    draw = random.Random(1)
    by_item: dict[int, list[Order]] = defaultdict(list)
    by_rater: dict[int, list[Order]] = defaultdict(list)
    groups = [[system] for system in range(systems)]
    for item in range(60):
        for rater in draw.sample(range(people), k):
            before = {"of_item": by_item[item], "of_rater": by_rater[rater]}
            order = draw_order(groups, **before, seed=f"{item}/{rater}")
            by_item[item].append(order)
            by_rater[rater].append(order)
    assert max(spread(orders, systems) for orders in by_item.values()) <= 1
    # the item comes first; a drawing at random has a spread of about 10 here
    assert max(spread(orders, systems) for orders in by_rater.values()) <= 3


@given(st.integers(2, 6), st.integers(1, 20), st.integers(0, 99))
def test_a_rater_alone_is_balanced_exactly(systems: int, items: int, seed: int) -> None:
    orders: list[Order] = []
    for item in range(items):
        groups = [[system] for system in range(systems)]
        orders.append(draw_order(groups, of_rater=orders, seed=f"{seed}/{item}"))
        assert spread(orders, systems) <= 1


def test_shared_outputs_are_balanced_too() -> None:
    orders: list[Order] = []
    for item in range(60):
        groups = groups_of(range(3), ("aab", "abb", "aba")[item % 3])
        orders.append(draw_order(groups, of_rater=orders, seed=str(item)))
    left = Counter(system for order in orders for system in order[0])
    assert all(abs(left[system] - 30) <= 2 for system in range(3))
