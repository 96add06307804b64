"""Stands in for the agent of Ray's dashboard, which takes time to start and memory.

The raylet waits for the agent's ports, for 15 seconds at most, and ends when the agent ends.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

SERVICES = ("metrics_agent", "metrics_export", "dashboard_agent_listen")


def main(arguments: list[str]) -> None:
    """Write that no service is in use, as Ray's own agent does without a dashboard; end with the raylet."""
    options = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
    for service in SERVICES:
        file = Path(options["session-dir"], f"{service}_port_{options['node-id']}")
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text("-1")
        unfinished.rename(file)
    raylet = os.getppid()
    while os.getppid() == raylet:
        time.sleep(1.0)


if __name__ == "__main__":
    main(sys.argv[1:])
