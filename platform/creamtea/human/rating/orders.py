"""In which column a rater sees which output: drawn once for a rater and an item, balanced, and stored.

Columns are not equal (what is read first anchors the rest), so each output should stand in each of them
equally often, over the raters of an item and over the items of a rater. A fixed cyclic Latin square cannot
do both when raters come and go and items have different numbers of distinct outputs. So each order is
drawn as the cheapest assignment of outputs to columns, where a cell costs how often the output has stood
there: first among the item's raters, then among the rater's items; ties are drawn from the seed.

Over the raters of an item the counts of two cells never differ by more than one: counts after n full orders
are a sum of n permutation matrices, so their smallest cells hold a perfect matching (König) and the next
order takes one.

A page of several segments has one order for all of them, so that a rater can follow a system through the
text. Systems that say the same in a segment stand there in the place of the first of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

Order = list[list[int]]  # for each column the positions in Campaign.systems whose (equal) output it shows

_ITEM = 1e3  # above any sum of a rater's deviations, so that the item's balance comes first
_TIE = 1e-6  # below any difference of deviations


def groups_of(systems: Sequence[int], outputs: Sequence[str]) -> Order:
    """Group systems with equal outputs, in the order of first appearance."""
    groups: dict[str, list[int]] = {}
    for system, text in zip(systems, outputs, strict=True):
        groups.setdefault(text, []).append(system)
    return list(groups.values())


def together(groups: Iterable[Order]) -> Order:
    """Return the groups of a page, from those of its items: systems that are in one group in all of them."""
    everywhere: dict[tuple[int, ...], list[int]] = {}
    placed: dict[int, list[int]] = {}
    for of_item in groups:
        for number, group in enumerate(of_item):
            for system in group:
                placed.setdefault(system, []).append(number)
    for system in sorted(placed):
        everywhere.setdefault(tuple(placed[system]), []).append(system)
    return list(everywhere.values())


def order_on(page: Order, groups: Order) -> Order:
    """Put the groups of an item into the page's order."""
    place = {system: at for at, group in enumerate(page) for system in group}
    return sorted(groups, key=lambda group: min(place[system] for system in group))


def joint_order(orders: Sequence[Order]) -> Order:
    """Find an order of the page that gives its items these orders (`order_on`).

    It is the only one, unless equal outputs leave some of it open.

    The next group is one that stands in each item's order where the next unseen group does, or in a group
    that has been seen. Taking one that qualifies never disqualifies another, so this finds an order
    wherever there is one. ValueError where there is none.
    """
    if orders.count(orders[0]) == len(orders):
        return list(orders[0])
    column = [{system: at for at, group in enumerate(order) for system in group} for order in orders]
    left, page = together(orders), []
    seen = [0] * len(orders)  # groups of each item
    while left:
        fits = (
            group
            for group in left
            if all(places[group[0]] <= count for places, count in zip(column, seen, strict=True))
        )
        group = next(fits, None)
        if group is None:
            raise ValueError("these orders are not of one page")
        seen = [max(count, places[group[0]] + 1) for places, count in zip(column, seen, strict=True)]
        left.remove(group)
        page.append(group)
    return page


def draw_order(
    groups: Order, *, of_item: Iterable[Order] = (), of_rater: Iterable[Order] = (), seed: str = ""
) -> Order:
    """Draw an order for these groups, given the orders drawn so far for the item and for the rater.

    The same arguments give the same order.
    """
    columns = len(groups)
    draw = random.Random(seed)
    cost = np.array([[_TIE * draw.random() for _ in range(columns)] for _ in range(columns)])
    row_of = {group[0]: row for row, group in enumerate(groups)}
    for order in of_item:
        for column, group in enumerate(order):
            cost[row_of[group[0]], column] += _ITEM
    # how much more often than its fair share a system has stood in a column before this rater
    shown = {system for group in groups for system in group}
    excess: dict[tuple[int, int], float] = {}
    for order in of_rater:
        share = 1 / len(order)
        for column, group in enumerate(order):
            for system in shown.intersection(group):
                for other in range(len(order)):
                    excess[system, other] = excess.get((system, other), 0.0) + (other == column) - share
    for row, group in enumerate(groups):
        for column in range(columns):
            cost[row, column] += sum(excess.get((system, column), 0.0) for system in group)
    from scipy.optimize import (
        linear_sum_assignment,  # here, because importing it takes as long as the command line does
    )

    rows, places = linear_sum_assignment(cost)
    at = dict(zip(places.tolist(), rows.tolist(), strict=True))
    return [groups[at[column]] for column in range(columns)]
