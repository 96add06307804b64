"""The arrows and agreements that the tree promises (docs/architecture.md)."""

from __future__ import annotations

import importlib
import platform
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from slowest import SLOWEST

from creamtea.steps.catalogue import STEP_KINDS

ROOT = Path(__file__).resolve().parents[2]
CHANGES_PATH = re.compile(r"^sys\.path\.", re.MULTILINE)


def test_the_source_roots_are_no_packages() -> None:
    # platform/__init__.py would shadow the standard library's module and break Ray, torch and pytest.
    for root in ("platform", "workers", "webapp", "migrations", "tests"):
        assert not (ROOT / root / "__init__.py").exists()
    assert platform.python_implementation() == "CPython"


def test_modules_that_tests_share_have_names_of_their_own() -> None:
    # their folders are on one path (pytest's `pythonpath`): of two with one name the second would be hidden
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = [ROOT / folder for folder in settings["tool"]["pytest"]["ini_options"]["pythonpath"]]
    names = Counter(path.stem for folder in folders for path in folder.glob("*.py"))
    shared = {name: count for name, count in names.items() if not name.startswith("test_")}
    assert [name for name, count in shared.items() if count > 1 and name != "conftest"] == []
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    assert [path for path in files if CHANGES_PATH.search(path.read_text(encoding="utf-8"))] == []


def test_the_slowest_files_are_there_once() -> None:
    assert [name for name in SLOWEST if not (ROOT / "tests" / name).is_file()] == []
    assert len(set(SLOWEST)) == len(SLOWEST)


def test_the_catalogue_and_the_steps_folder_agree() -> None:
    files = {p.stem for p in (ROOT / "workers/creamtea_workers/steps").glob("*.py")} - {"__init__"}
    assert files == set(STEP_KINDS)
    for kind in STEP_KINDS.values():
        assert callable(importlib.import_module(kind.module).run)


def test_the_import_arrows_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
