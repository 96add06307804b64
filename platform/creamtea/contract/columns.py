"""How a number is shown: its title, digits and unit, the same in every table and figure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    key: str
    title: str
    digits: int
    better: str = ""  # "higher", "lower" or "" for neither
    scale: float = 1.0  # shares are shown times 100
    unit: str = ""  # of the shown number: "%", "ms"
    signature: str = ""  # of a metric
    note: str = ""  # what is measured
    group: str = ""  # of the columns that a wide table shows together: "recall"
    less: tuple[str, str] | None = None  # the columns of the same row whose paired difference it is
    one_of: str = ""  # groups of which one is shown at a time have this in common: "human scores"
