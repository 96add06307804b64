"""Where the labels of a figure's points go, so that no two lie on one another.

Vega-Lite places a text only by a fixed offset from its point. The figures give every label an offset of
its own, offsets here for a figure of usual size; a narrower one moves the points together, not the labels'
heights.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 250.0, 320.0  # pixels between the axes, on a phone
LETTER, LINE = 6.4, 12.0  # pixels of a letter, and of a line of text
LETTERS = 17  # of a line of a label: with its gap it fits into half the width
GAP = 8.0  # pixels between a point and its label
MARK = 4.0  # pixels from the middle of a point to its edge
LIFTS = (-9.0, 12.0, -22.0, 25.0, -35.0, 38.0, -48.0, 51.0)  # offsets to try, in this order
_PARTS = re.compile(r"[^-_./\s]*[-_./\s]*")


class Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float


class Point(NamedTuple):
    x: float
    y: float
    text: str


def lifts(
    points: Sequence[Point], xs: Sequence[float], ys: Sequence[float], logarithmic: bool = False
) -> list[float] | None:
    """The vertical offset of each label in pixels, downwards positive. None if some label has no place.

    `xs` and `ys` are all that the figure draws, intervals and curves too: they make its axes.

    A label stands right of a point in the left half and left of one in the right half. The offset is the
    first of LIFTS at which it touches neither another point nor a label placed before it.
    """
    measure = math.log if logarithmic else float
    across = _units([measure(point.x) for point in points], [measure(x) for x in xs], WIDTH)
    up = _units([point.y for point in points], ys, HEIGHT)
    marks = {(x, y): Box(x - MARK, x + MARK, -y - MARK, -y + MARK) for x, y in zip(across, up, strict=True)}
    placed: list[Box] = []
    offsets = []
    for x, y, point in zip(across, up, points, strict=True):
        words = lines(point.text)
        length, deep = LETTER * max(map(len, words), default=0), LINE * len(words)
        start = x + GAP if x <= WIDTH / 2 else x - GAP - length
        taken = [*placed, *(box for place, box in marks.items() if place != (x, y))]
        for lift in LIFTS:
            box = Box(start, start + length, lift - y - deep / 2, lift - y + deep / 2)
            if not any(_touch(box, other) for other in taken):
                break
        else:
            return None
        placed += [box] if words else []
        offsets.append(lift)
    return offsets


def lines(name: str, letters: int = LETTERS) -> list[str]:
    """A name in lines of at most this many letters, broken after its hyphens, dots, underscores and spaces
    where that does."""
    pieces = (
        part[start : start + letters]
        for part in _PARTS.findall(name)
        for start in range(0, len(part), letters)
    )
    broken: list[str] = []
    for piece in pieces:
        if broken and len(broken[-1]) + len(piece.rstrip()) <= letters:
            broken[-1] += piece
        else:
            broken.append(piece)
    return [line.rstrip() for line in broken]


def _touch(one: Box, other: Box) -> bool:
    return (
        one.left < other.right
        and other.left < one.right
        and one.top < other.bottom
        and other.top < one.bottom
    )


def _units(values: Sequence[float], drawn: Sequence[float], size: float) -> list[float]:
    low, high = min(drawn, default=0.0), max(drawn, default=0.0)
    return [size * (value - low) / (high - low) if high > low else size / 2 for value in values]
