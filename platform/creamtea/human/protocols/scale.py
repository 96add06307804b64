"""Scales of scores. A score is kept as the whole number of steps above the scale's lowest value.

1 + 0.2·i is not exact in binary, so everything here is integer or `Fraction` arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

MAX_DIGITS = 60  # of a number, and of its exponent: Fraction("1e999999999") takes all memory


@dataclass(frozen=True)
class Scale:
    """Values from `lowest` in `steps` − 1 equal steps of `size`; `decimals` is how labels are written."""

    steps: int
    lowest: Fraction
    size: Fraction
    decimals: int

    @property
    def highest(self) -> Fraction:
        return self.lowest + (self.steps - 1) * self.size

    def check(self, step: object) -> int:
        """The step itself, if it is one of the scale's; ValueError otherwise (also for True and 3.0)."""
        if type(step) is not int or not 0 <= step < self.steps:
            raise ValueError(f"a score is a whole number of steps from 0 to {self.steps - 1}, not {step!r}")
        return step

    def value(self, step: int) -> Fraction:
        """The exact value of a step."""
        return self.lowest + self.check(step) * self.size

    def label(self, step: int) -> str:
        """What people read: "1.0", "1.2", …, "6.0"; "0", …, "100"."""
        return f"{float(self.value(step)):.{self.decimals}f}"

    def step_of(self, text: str) -> int:
        """The step of a written value; ValueError where the text is not a value of the scale."""
        steps = (exact(text) - self.lowest) / self.size
        if steps.denominator != 1 or not 0 <= steps < self.steps:
            first, second, last = (self.label(step) for step in (0, 1, self.steps - 1))
            raise ValueError(f"{text!r} is not a value of the scale {first}, {second}, …, {last}")
        return int(steps)


def exact(text: str) -> Fraction:
    """A decimal number (-0.1, 3, 1e-05) as a fraction. ValueError for others, infinity too."""
    try:
        if len(text) > MAX_DIGITS or "/" in text or "_" in text:
            raise ValueError
        _, _, exponent = text.lower().partition("e")
        if exponent and abs(int(exponent)) > MAX_DIGITS:
            raise ValueError
        return Fraction(text)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is not a number") from None
