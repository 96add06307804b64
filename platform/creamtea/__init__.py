"""creamtea: the control plane. See docs/architecture.md for the map."""

import os
import sys

__version__ = "0.2.0"

# OpenMP reads this when torch is imported, and worker processes inherit it: so it stands here, in what is
# imported first. Threads of a step with several cores spin for about a tenth of a millisecond when they wait,
# then sleep. Spinning for long, as is usual, takes the cores from the steps beside it; without any, the many
# short operations of a training wait for threads to wake up (docs/results/benchmarks.md).
SET_TOO_LATE = "OMP_WAIT_POLICY" not in os.environ and "torch" in sys.modules
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
