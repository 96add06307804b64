"""The best models of a training (by development loss, or the newest), and their average."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection

from torch import Tensor

from creamtea.methods.training import Keep
from creamtea_workers.training.checkpoint import Best, Saver, slot_name

State = dict[str, Tensor]
_RANKS: dict[Keep, Callable[[Best], tuple[float, int]]] = {
    "best": lambda model: (model.loss, model.update),
    "last": lambda model: (0.0, -model.update),
}


def keep_best(
    saver: Saver,
    best: list[Best],
    count: int,
    candidate: tuple[float, int],
    model: State,
    keep: Keep = "best",
    spared: Collection[int] = (),
) -> list[Best]:
    """The new list of at most `count` models, best first, after a candidate with (loss, update). `keep`: the
    best have the lowest losses ("best") or the highest updates ("last").

    There are two more slots than models: the candidate goes into a slot that neither the list of the last
    checkpoint nor that of the one before (`spared`) uses, so that an attempt that resumes from one of them
    finds all of its models.
    """
    loss, update = candidate
    taken = {*spared, *(kept.slot for kept in best)}
    slot = next(slot for slot in itertools.count() if slot not in taken)
    new = Best(loss, update, slot)
    kept = sorted([*best, new], key=_RANKS[keep])
    if new in kept[:count]:
        saver.save(slot_name(slot), model)
    return kept[:count]


def average_best(saver: Saver, best: list[Best]) -> State:
    """The mean of the models' parameters."""
    total: State = {}
    for kept in best:
        for name, value in saver.load_existing(slot_name(kept.slot)).items():
            total[name] = total[name] + value if name in total else value
    return {name: value / len(best) for name, value in total.items()}
