"""creamtea's data plane: the code that a study's steps execute."""

import os
import warnings

from creamtea import SET_TOO_LATE

# oneDNN caches a kernel for each shape of matrix product, 1,024 by default: with batches of all lengths the
# cache takes more than a gigabyte per training. oneDNN reads this variable at the first product.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

if SET_TOO_LATE:
    warnings.warn(
        "torch was imported before creamtea, which therefore cannot set how its threads wait: beside other "
        "programs a training may take several times as long. Import creamtea first, or set "
        "OMP_WAIT_POLICY=PASSIVE and GOMP_SPINCOUNT=5000",
        RuntimeWarning,
        stacklevel=2,
    )
