"""What a machine is called in provenance and reports."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def processor_name() -> str:
    """The name that its maker gives it, where Linux says it; elsewhere what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
