"""What the image installs: everything that runs, and no tool of the tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(lock: str) -> list[str]:
    """The lock's pins, each with the hashes that follow it."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8").replace("\\\n", "")
    return [line for line in text.splitlines() if not line.startswith("#")]


def pins(lock: str) -> dict[str, str]:
    return {
        canonicalize_name(name): version
        for name, version in (re.split(r"==|\s", line)[:2] for line in requirements(lock))
    }


@pytest.mark.parametrize("lock", ["app.lock", "comet.lock", "dev.lock", "torch.lock", "torch-cpu.lock"])
def test_every_pin_has_hashes(lock: str) -> None:
    for line in requirements(lock):
        assert re.fullmatch(r"[\w.-]+==[\w.+]+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+", line), line[:80]


def test_pip_installs_no_lock_without_its_hashes() -> None:
    for file in ("Dockerfile", "Makefile"):
        text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", "")
        commands = re.findall(r"pip install [^&\n]*-r requirements/", text)
        assert commands
        assert all("--require-hashes" in command for command in commands)


def test_images_of_others_are_named_by_digest() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"].values()
    images = re.findall(r"^FROM (\S+)", dockerfile, flags=re.MULTILINE)
    images += [service["image"] for service in services if "build" not in service]
    assert len(images) == 2
    for image in images:
        assert re.search(r"@sha256:[0-9a-f]{64}\b", image), image


def test_the_image_installs_what_runs_and_no_test_tool() -> None:
    commands = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"requirements/(\w+)\.lock", commands) == ["app", "torch", "comet", "torch"]
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
        pinned = pins("torch.lock") | pins(lock)
        for requirement in map(Requirement, lines):
            version = pinned.get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement} has no pin in {lock}"
            assert requirement.specifier.contains(version), f"{lock}: {requirement}"
    assert pins("app.lock").keys() & pins("dev.lock").keys() == set()
