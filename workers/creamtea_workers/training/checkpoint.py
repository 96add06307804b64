"""What a training needs to continue exactly where it stopped, as plain tensors and JSON-like values.

Saves are atomic (`creamtea.contract.step.Checkpoints`); files are read with `weights_only`, so that a
checkpoint cannot contain code.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from creamtea.contract.step import Checkpoints

MAIN = "training.pt"


@dataclass
class Best:
    """A saved model: its development loss, update, and the slot (file) that holds it."""

    loss: float  # or what else models are chosen by, lower is better
    update: int
    slot: int


@dataclass
class Position:
    """Where the training is. The data's order follows from (seed, epoch, position) alone."""

    update: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch that are done
    validated: int = 0  # the update of the last validation
    waited: int = 0  # validations since the best one
    stalled: int = 0  # of these, since the learning rate was last halved
    halvings: int = 0  # of the learning rate
    best: list[Best] = field(default_factory=list)  # best first
    points: list[tuple[str, int, float]] = field(default_factory=list)  # learning curves
    tokens: int = 0  # target tokens trained on, and the seconds spent on them, over all attempts
    seconds: float = 0.0
    loss_sum: float = 0.0  # since the last point of the training loss
    loss_tokens: int = 0


def save_position(
    checkpoints: Checkpoints, position: Position, model: dict[str, Any], optimiser: dict[str, Any]
) -> None:
    """Only torch's global generators are used (for dropout), so theirs is the whole random state."""
    content = {"position": asdict(position), "model": model, "optimiser": optimiser, "random": random_state()}
    save(checkpoints, MAIN, content)


def load_position(checkpoints: Checkpoints) -> tuple[Position, dict[str, Any], dict[str, Any]] | None:
    """(position, model's state, optimiser's state), after restoring torch's generators; None at first."""
    content = load(checkpoints, MAIN)
    if content is None:
        return None
    set_random_state(content["random"])
    fields = content["position"]
    fields["best"] = [Best(**best) for best in fields["best"]]
    return Position(**fields), content["model"], content["optimiser"]


def save(checkpoints: Checkpoints, name: str, content: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        torch.save(content, file)
        checkpoints.save(name, file)


def load(checkpoints: Checkpoints, name: str) -> Any:
    file = checkpoints.load(name)
    return None if file is None else torch.load(file, map_location="cpu", weights_only=True)


def random_state() -> dict[str, Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: dict[str, Tensor]) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
