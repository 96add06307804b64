"""Where the labels of a figure's points go, so that no two lie on one another.

Vega-Lite places a text only by a fixed offset from its point. The figures give every label an offset of
its own, offsets here for a figure of usual size; a narrower one moves the points together, not the labels'
heights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 330.0, 320.0  # pixels between the axes, a narrow desktop column
LETTER, LINE, LIMIT = 6.2, 12.0, 190.0  # pixels of a letter, of a line of text, and of the longest label
GAP = 8.0  # pixels between a point and its label
LIFTS = (-9.0, 12.0, -22.0, 25.0, -35.0, 38.0, -48.0, 51.0)  # offsets to try, in this order


class Point(NamedTuple):
    x: float
    y: float
    text: str


def lifts(
    points: Sequence[Point], xs: Sequence[float], ys: Sequence[float], logarithmic: bool = False
) -> list[float]:
    """The vertical offset of each label in pixels, downwards positive.

    `xs` and `ys` are all that the figure draws, intervals and curves too: they make its axes.

    A label stands right of a point in the left half and left of one in the right half. The offset is the
    first of LIFTS at which it touches no label placed before it; the last one if there is none.
    """
    measure = math.log if logarithmic else float
    across = _units([measure(point.x) for point in points], [measure(x) for x in xs], WIDTH)
    up = _units([point.y for point in points], ys, HEIGHT)
    placed: list[tuple[float, float, float]] = []  # from x, to x, middle y
    offsets = []
    for x, height, point in zip(across, up, points, strict=True):
        length = min(LETTER * len(point.text), LIMIT)
        start = x + GAP if x <= WIDTH / 2 else x - GAP - length
        fits = (lift for lift in LIFTS if not _touches(placed, start, start + length, lift - height))
        lift = next(fits, LIFTS[-1]) if point.text else LIFTS[0]
        if point.text:
            placed.append((start, start + length, lift - height))
        offsets.append(lift)
    return offsets


def _touches(placed: Sequence[tuple[float, float, float]], start: float, end: float, middle: float) -> bool:
    return any(start < to and origin < end and abs(middle - y) < LINE for origin, to, y in placed)


def _units(values: Sequence[float], drawn: Sequence[float], size: float) -> list[float]:
    low, high = min(drawn, default=0.0), max(drawn, default=0.0)
    return [size * (value - low) / (high - low) if high > low else size / 2 for value in values]
