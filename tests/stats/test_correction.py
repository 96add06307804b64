"""Holm's correction against its definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.stats.paired import holm

p_values = st.lists(st.floats(0, 1), max_size=8)


def test_holm_on_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(p_values)
def test_holm_rejects_what_the_step_down_procedure_rejects(ps: list[float]) -> None:
    rejected = set()
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        if not ps[index] * (len(ps) - rank) < 0.05:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(holm(ps)) if p is not None and p < 0.05} == rejected


@given(p_values)
def test_holm_lies_between_the_p_value_and_bonferronis(ps: list[float]) -> None:
    for p, adjusted in zip(ps, holm(ps), strict=True):
        assert adjusted is not None
        assert p <= adjusted <= min(1.0, p * len(ps)) or math.isclose(adjusted, p * len(ps))


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_holm_refuses_what_is_no_p_value(p: float) -> None:
    with pytest.raises(ValueError, match="not a p-value"):
        holm([0.5, p])


def test_comparisons_without_a_p_value_do_not_count() -> None:
    assert holm([None, 0.04, None, 0.03]) == [None, 0.06, None, 0.06]
    assert holm([]) == []
