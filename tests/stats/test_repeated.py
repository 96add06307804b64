"""A rater's several ratings of one output are one: in every place by the same rule."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.stats.agreement import one_rating_each

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 100)))


@given(ROWS)
def test_the_mean_of_each(rows: list[tuple[int, int, int]]) -> None:
    grouped = defaultdict(list)
    for rater, output, value in rows:
        grouped[rater, output].append(value)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    (raters, outputs), means = one_rating_each(columns[0], columns[1], value=columns[2])
    assert list(zip(raters, outputs, strict=True)) == sorted(grouped)
    assert means.tolist() == pytest.approx([np.mean(grouped[key]) for key in sorted(grouped)])


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="2 keys and 1 ratings"):
        one_rating_each([1, 2], value=[3])
