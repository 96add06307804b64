"""The best models of a training (by development loss, or the newest), and their average."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from creamtea.contract.step import Checkpoints
from creamtea.methods.training import Keep
from creamtea_workers.training.checkpoint import Best, load, save

State = dict[str, Tensor]
_RANKS: dict[Keep, Callable[[Best], tuple[float, int]]] = {
    "best": lambda one: (one.loss, one.update),
    "last": lambda one: (0.0, -one.update),
}


def keep_best(
    checkpoints: Checkpoints,
    best: list[Best],
    many: int,
    candidate: tuple[float, int],
    model: State,
    keep: Keep = "best",
) -> list[Best]:
    """The new list of at most `many`, best first, after a model with (loss, update). `keep`: the best have
    the lowest losses ("best") or the highest updates ("last").

    There is one slot more than models: the new one goes where the list of the last checkpoint keeps
    nothing, so that an attempt that resumes from that checkpoint finds all that it names.
    """
    loss, update = candidate
    slot = min(set(range(many + 1)) - {one.slot for one in best})
    new = Best(loss, update, slot)
    kept = sorted([*best, new], key=_RANKS[keep])
    if new in kept[:many]:
        save(checkpoints, slot_name(slot), model)
    return kept[:many]


def average_best(checkpoints: Checkpoints, best: list[Best]) -> State:
    """The mean of the models' parameters."""
    total: State = {}
    for one in best:
        for name, value in load(checkpoints, slot_name(one.slot)).items():
            total[name] = total[name] + value if name in total else value
    return {name: value / len(best) for name, value in total.items()}


def slot_name(slot: int) -> str:
    return f"best-{slot}.pt"
