"""creamtea: the control plane. See docs/architecture.md for the map."""

import atexit
import gc
import os
import sys

__version__ = "0.2.0"

# OpenMP reads these variables when torch is imported, and worker processes inherit them, so they are set
# here, before any other import. Waiting threads of a step spin for about a tenth of a millisecond, then
# sleep. OpenMP's default, spinning for long, takes cores from other steps; without spinning, the many short
# operations of a training wait for threads to wake up (docs/results/data/speed.yaml).
SET_TOO_LATE = "OMP_WAIT_POLICY" not in os.environ and "torch" in sys.modules
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")


def collect_rarely() -> None:
    """Let a process of creamtea's own look for garbage less often, and not when it ends.

    Imports make very many objects, which Python would search again and again.
    """
    gc.set_threshold(10_000, 10, 10)
    atexit.register(gc.freeze)
