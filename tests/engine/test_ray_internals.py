"""What Ray says of a group of workers that fails; and Ray's private names, which a new version of Ray may
change: all in one module, and all still there."""

import re
from pathlib import Path

import pytest
from ray_elsewhere import ALONE, LARGER, WRONG, asked_elsewhere

from creamtea.engine.executors.base import GAVE_WAY

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = re.compile(r"\bray\._|\bray\.core\.|\bray\.train\.v2\b")
MODULE = "platform/creamtea/engine/executors/ray_internals.py"
Asked = tuple[dict[str, tuple[str | None, str]], list[str]]


@pytest.fixture(scope="module")
def asked() -> Asked:
    return asked_elsewhere()


def test_no_other_module_uses_rays_private_names() -> None:
    folders = ("platform", "workers", "webapp", "bench")
    files = {path for folder in folders for path in (ROOT / folder).rglob("*.py")}
    users = {file.relative_to(ROOT).as_posix() for file in files if PRIVATE.search(file.read_text("utf-8"))}
    assert users == {MODULE}


@pytest.mark.slow
def test_rays_private_names_are_still_there(asked: Asked) -> None:
    assert asked[1] == []


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
def test_the_reason_of_a_failed_group(asked: Asked, failure: str, kind: str, message: str) -> None:
    error_kind, error = asked[0][failure]
    assert error_kind == kind
    assert message in error
    assert "\n" not in error
