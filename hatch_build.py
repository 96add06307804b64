"""Build hook: a wheel has the documentation as a site, in creamtea/site, which `creamtea docs` shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SiteHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # a checkout: `make docs-site` builds the site when somebody wants it
            return
        site = Path(self.root) / "build" / "wheel-site"
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
        subprocess.run(command, cwd=self.root, check=True)
        build_data["force_include"][str(site)] = "creamtea/site"
