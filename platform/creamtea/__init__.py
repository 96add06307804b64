"""creamtea: the control plane. See docs/architecture.md for the map."""

import os
import sys

__version__ = "0.2.0"

# OpenMP reads these variables when torch is imported, and worker processes inherit them, so they are set
# here, before any other import. Waiting threads of a step spin for about a tenth of a millisecond, then
# sleep. OpenMP's default, spinning for long, takes cores from other steps; without spinning, the many short
# operations of a training wait for threads to wake up (docs/results/benchmarks.md).
SET_TOO_LATE = "OMP_WAIT_POLICY" not in os.environ and "torch" in sys.modules
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
