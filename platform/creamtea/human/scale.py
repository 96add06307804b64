"""The rating scale of contrastive direct assessment: 26 values from 1 to 6 in steps of 0.2.

A score is kept as the integer number of 0.2-steps above 1, since 1 + 0.2·i is not exact in binary
(Domhan et al. 2022 use the same scale). Everything here is integer or `Fraction` arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

STEPS = 26
LOWEST, HIGHEST = 1, 6


def check_step(step: object) -> int:
    """The step itself, if it is an integer from 0 to 25; ValueError otherwise (also for True and 3.0)."""
    if type(step) is not int or not 0 <= step < STEPS:
        raise ValueError(f"a score is a whole number of steps from 0 to {STEPS - 1}, not {step!r}")
    return step


def value(step: int) -> Fraction:
    """The exact value on the scale: 0 is 1, 25 is 6."""
    return LOWEST + Fraction(check_step(step), 5)


def label(step: int) -> str:
    """What people read: "1.0", "1.2", …, "6.0"."""
    tenths = 10 * LOWEST + 2 * check_step(step)
    return f"{tenths // 10}.{tenths % 10}"


def step_of(text: str) -> int:
    """The step of a label; ValueError where the text is no value of the scale."""
    try:
        exact = (Fraction(text) - LOWEST) * 5
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is no number") from None
    if exact.denominator != 1:
        raise ValueError(f"{text!r} is no value of the scale 1.0, 1.2, …, 6.0")
    return check_step(int(exact))


def mean(steps: Sequence[int]) -> Fraction:
    """The exact mean value of some scores."""
    if not steps:
        raise ValueError("the mean of no scores is undefined")
    return LOWEST + Fraction(sum(check_step(step) for step in steps), 5 * len(steps))
