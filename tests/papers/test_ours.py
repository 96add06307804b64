"""Which of our systems a row of a paper shows."""

from __future__ import annotations

import pytest

from creamtea.contract.columns import Column
from creamtea.papers.model import OfSystem
from creamtea.report.model import Cell, Document, Row, Section, Table
from creamtea.report.papers.ours import _best


def distances(first: float | None, second: float | None) -> Document:
    """Two systems' distances on dev."""
    column = Column("levenshtein", "Levenshtein", 2, "lower")
    rows = tuple(
        Row(name, {"levenshtein": Cell("pending" if value is None else "ok", value=value)})
        for name, value in (("a", first), ("b", second))
    )
    table = Table("systems", "", "system", (column,), rows)
    sections = (Section("systems", "Systems", (Section("dev", "dev", (table,)),)),)
    return Document(
        kind="study",
        name="tea",
        number=1,
        state="succeeded",
        about="",
        facts=(),
        test_sets=("dev",),
        sections=sections,
    )


@pytest.mark.parametrize(
    ("first", "second", "chosen"), [(0.5, 1.9, "a"), (1.9, 0.5, "b"), (None, 1.9, "b"), (None, None, "a")]
)
def test_the_best_is_the_lowest_where_lower_is_better(
    first: float | None, second: float | None, chosen: str
) -> None:
    place = OfSystem(system=["a", "b"], test_set="test", metric="levenshtein", chosen_on="dev")
    assert _best(distances(first, second), place).system == chosen
