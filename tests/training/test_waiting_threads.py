"""How OpenMP's threads wait is set before torch is imported, or it is said that it was not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TORCH = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')"  # itself, it takes seconds
CHECK = """
import os
print(os.environ["OMP_WAIT_POLICY"], os.environ["GOMP_SPINCOUNT"])
"""


@pytest.mark.parametrize(
    "imports, warned",
    [
        (f"import creamtea_workers; {TORCH}", False),
        (f"import creamtea; {TORCH}; import creamtea_workers", False),
        (f"{TORCH}; import creamtea_workers", True),
    ],
    ids=["workers first", "platform first", "torch first"],
)
def test_the_setting_is_made_in_time_or_a_warning_says_so(imports: str, warned: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    command = [sys.executable, "-W", "always", "-c", imports + CHECK]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["PASSIVE", "5000"]
    assert ("torch was imported before creamtea" in done.stderr) is warned
