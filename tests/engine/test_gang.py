"""What an attempt on several workers reports when some of them fail."""

import pytest
from toy_gang import ALONE, LARGER, WRONG, outcomes_elsewhere

from creamtea.engine.executors.base import GAVE_WAY


@pytest.fixture(scope="module")
def reported() -> dict[str, tuple[str | None, str]]:
    return outcomes_elsewhere()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        ("alone", "infrastructure", ALONE.error),
        ("wrong", "deterministic", WRONG.error),
        ("larger", GAVE_WAY, LARGER.error),
        ("gone", "infrastructure", "was lost: The actor died unexpectedly"),
        ("no room", "infrastructure", "was lost: no room"),
    ],
)
def test_the_reason_of_a_failed_group(
    reported: dict[str, tuple[str | None, str]], failure: str, kind: str, message: str
) -> None:
    error_kind, error = reported[failure]
    assert error_kind == kind
    assert message in error
    assert "\n" not in error
