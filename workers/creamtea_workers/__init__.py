"""creamtea's data plane: what the steps of a study execute."""

import os
import warnings

from creamtea import SET_TOO_LATE

# oneDNN keeps every shape of matrix product that it has met, 1,024 of them by default: with batches of all
# lengths that is more than a gigabyte per training. It reads this when the first product is made.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

if SET_TOO_LATE:
    warnings.warn(
        "torch was imported before creamtea, which therefore cannot set how its threads wait: beside other "
        "programs a training may take several times as long. Import creamtea first, or set "
        "OMP_WAIT_POLICY=PASSIVE and GOMP_SPINCOUNT=5000",
        RuntimeWarning,
        stacklevel=2,
    )
