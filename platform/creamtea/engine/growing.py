"""Groups of workers that could be larger: a node has come back, or other steps have ended.

Such an attempt is told so (`room/` in the artefact store). At its next checkpoint it ends, which costs no
attempt, and its step begins again with as many workers as there is room for.
"""

from __future__ import annotations

from dataclasses import replace

from creamtea.contract.resources import Resources
from creamtea.engine.executors.base import Capacity, Need

GROW_AFTER = 120.0  # seconds that a group has to work before: to begin again takes some


def larger_group(resources: Resources, workers: int, capacity: Capacity) -> int:
    """With how many workers the step of a group of `workers` could go on now; 0: with no more than it has.

    `capacity`: beside all that runs. Only powers of two count, as in every group.
    """
    need, (_, most) = Need.of(resources), resources.workers
    for possible in (1 << power for power in range(most.bit_length() - 1, workers.bit_length() - 1, -1)):
        more = possible - workers
        if capacity.place(replace(need, workers=(more, more))):
            return possible
    return 0
