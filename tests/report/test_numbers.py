"""Numbers as they are printed."""

from __future__ import annotations

import pytest

from creamtea.contract.step import Column
from creamtea.report.text import number


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-0.0002, "0.00"),
        (-0.0, "0.00"),
        (0.0002, "0.00"),
        (-0.01, "−0.01"),
        (-1204.5, "−1,204.50"),
        (10, "10.00"),
    ],
)
def test_what_rounds_to_zero_has_no_sign(value: float, shown: str) -> None:
    assert number(value, Column("z", "z", 2)) == shown
