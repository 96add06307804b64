from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.human.protocols import Scale, find_protocol, usable_protocols

WHOLE = range(1, 6)
CONTRASTIVE, HUNDRED, PREFERENCE = (
    find_protocol(name).scale for name in ("contrastive-da", "da", "preference")
)
LABELS = [f"{whole}.{tenth}" for whole in WHOLE for tenth in (0, 2, 4, 6, 8)] + ["6.0"]


def test_labelled_points_are_on_the_scale() -> None:
    for protocol in usable_protocols():
        assert all(0 <= step < protocol.scale.steps for step, _ in protocol.labelled_points)


def test_the_26_labels_are_exact() -> None:
    assert [CONTRASTIVE.label(step) for step in range(CONTRASTIVE.steps)] == LABELS
    assert [CONTRASTIVE.value(step) for step in range(CONTRASTIVE.steps)] == list(map(Fraction, LABELS))
    assert CONTRASTIVE.highest == 6


@given(scale=st.sampled_from([CONTRASTIVE, HUNDRED, PREFERENCE]), data=st.data())
def test_every_step_survives_its_label(scale: Scale, data: st.DataObject) -> None:
    step = data.draw(st.integers(0, scale.steps - 1))
    assert scale.step_of(scale.label(step)) == step


@pytest.mark.parametrize("wrong", [-1, 26, 3.0, True, "3", None])
def test_what_is_no_step_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="0 to 25"):
        CONTRASTIVE.check(wrong)


@pytest.mark.parametrize("wrong", ["0.8", "6.2", "3.3", "3,4", "", "nan", "1/0", "1e999999999"])
def test_what_is_no_value_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):
        CONTRASTIVE.step_of(wrong)
