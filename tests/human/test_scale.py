from fractions import Fraction

import pytest

from creamtea.human import scale

WHOLE = range(1, 6)
LABELS = [f"{whole}.{tenth}" for whole in WHOLE for tenth in (0, 2, 4, 6, 8)] + ["6.0"]


def test_the_26_labels_are_exact() -> None:
    assert [scale.label(step) for step in range(scale.STEPS)] == LABELS


@pytest.mark.parametrize(("step", "label"), list(enumerate(LABELS)))
def test_label_and_value_and_step_agree(step: int, label: str) -> None:
    assert scale.value(step) == Fraction(label)
    assert scale.step_of(label) == step


@pytest.mark.parametrize("wrong", [-1, 26, 3.0, True, "3", None])
def test_what_is_no_step_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="0 to 25"):
        scale.check_step(wrong)


@pytest.mark.parametrize("wrong", ["0.8", "6.2", "3.3", "3,4", "", "nan", "1/0"])
def test_what_is_no_value_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):
        scale.step_of(wrong)


def test_the_mean_is_exact() -> None:
    assert scale.mean([12, 12, 13]) == Fraction("3.4") + Fraction(1, 15)
    with pytest.raises(ValueError, match="no scores"):
        scale.mean([])
