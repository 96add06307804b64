"""What the image installs: everything that runs, and no tool of the tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def pins(lock: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / lock).read_text(encoding="utf-8").splitlines()
    return {
        canonicalize_name(name): version
        for name, version in (line.partition(";")[0].split("==") for line in lines)
    }


def test_the_image_installs_what_runs_and_no_test_tool() -> None:
    commands = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"requirements/(\w+)\.lock", commands) == ["app", "comet"]
    names = {canonicalize_name(Requirement(line).name) for line in EXTRAS["dev"]}
    assert names & pins("app.lock").keys() == set()
    assert not [
        name for name in pins("app.lock") if re.search(r"pytest|moto|playwright|mypy|ruff|pgserver", name)
    ]


def test_every_requirement_has_a_pin_within_its_range() -> None:
    runs = [
        *PROJECT["dependencies"],
        *(line for extra in ("workers", "webapp", "s3") for line in EXTRAS[extra]),
    ]
    for lock, lines in (("app.lock", runs), ("dev.lock", EXTRAS["dev"])):
        for requirement in map(Requirement, lines):
            version = pins(lock).get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement} has no pin in {lock}"
            assert requirement.specifier.contains(version), f"{lock}: {requirement}"
    assert pins("app.lock").keys() & pins("dev.lock").keys() == set()
