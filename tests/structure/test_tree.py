"""The arrows and agreements that the tree promises (docs/architecture.md)."""

from __future__ import annotations

import importlib
import platform
import subprocess
import sys
from pathlib import Path

from creamtea.steps.catalogue import STEP_KINDS

ROOT = Path(__file__).resolve().parents[2]


def test_the_source_roots_are_no_packages() -> None:
    # platform/__init__.py would shadow the standard library's module and break Ray, torch and pytest.
    for root in ("platform", "workers", "webapp", "migrations", "tests"):
        assert not (ROOT / root / "__init__.py").exists()
    assert platform.python_implementation() == "CPython"


def test_the_catalogue_and_the_steps_folder_agree() -> None:
    files = {p.stem for p in (ROOT / "workers/creamtea_workers/steps").glob("*.py")} - {"__init__"}
    assert files == set(STEP_KINDS)
    for kind in STEP_KINDS.values():
        assert callable(importlib.import_module(kind.module).run)


def test_the_import_arrows_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
