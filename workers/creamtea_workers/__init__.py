"""creamtea's data plane: what the steps of a study execute."""

import os

# oneDNN keeps every shape of matrix product that it has met, 1,024 of them by default: with batches of all
# lengths that is more than a gigabyte per training. It reads this when the first product is made.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

# Threads of a step with several cores spin for about a tenth of a millisecond when they wait, then sleep.
# Spinning for long, as is usual, takes the cores from the steps beside it; without any, the many short
# operations of a training wait for threads to wake up (docs/results/benchmarks.md).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
