"""creamtea's data plane: what the steps of a study execute."""

import os

# oneDNN keeps every shape of matrix product that it has met, 1,024 of them by default: with batches of all
# lengths that is more than a gigabyte per training. It reads this when the first product is made.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

# Threads of a step with several cores sleep while they wait. Spinning, as is usual, takes the cores from the
# steps beside it: a matrix product on two threads took six to eleven times as long next to a training.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
