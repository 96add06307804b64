"""Optimisers against their formulas in plain float64 loops; learning rates against written-out values."""

import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from creamtea.methods.training import Training
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.training.optimiser import learning_rate, make_optimiser

RATES = [0.1, 0.05, 0.02, 0.2]


class Toy(nn.Module):
    """A matrix, a matrix of zeros, and a vector."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.matrix = nn.Parameter(torch.randn(3, 4, dtype=torch.float64))
        self.zeros = nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))
        self.vector = nn.Parameter(torch.randn(4, dtype=torch.float64))


def gradients(update: int) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(update)
    return [torch.randn(size, generator=draw, dtype=torch.float64) for size in ((3, 4), (2, 2), (4,))]


def trained(optimizer: str, decay: float) -> list[list[float]]:
    """The toy's parameters, flat, after an update at each of RATES."""
    toy = Toy()
    optimiser = make_optimiser(toy, Training(optimizer=optimizer, weight_decay=decay))
    for update, rate in enumerate(RATES, start=1):
        for parameter, gradient in zip(toy.parameters(), gradients(update), strict=True):
            parameter.grad = gradient
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
    return [parameter.detach().flatten().tolist() for parameter in toy.parameters()]


def written_out(lamb: bool, betas: tuple[float, float], epsilon: float, decay: float) -> list[list[float]]:
    found = []
    for index, parameter in enumerate(Toy().parameters()):
        matrix, weights = parameter.ndim == 2, parameter.detach().flatten().tolist()
        mean, square = [0.0] * len(weights), [0.0] * len(weights)
        for update, rate in enumerate(RATES, start=1):
            steps = []
            for i, g in enumerate(gradients(update)[index].flatten().tolist()):
                mean[i] = betas[0] * mean[i] + (1 - betas[0]) * g
                square[i] = betas[1] * square[i] + (1 - betas[1]) * g * g
                m, v = mean[i] / (1 - betas[0] ** update), square[i] / (1 - betas[1] ** update)
                steps.append(m / (math.sqrt(v) + epsilon) + (decay * weights[i] if matrix else 0.0))
            length, step = math.hypot(*weights), math.hypot(*steps)
            ratio = length / step if lamb and matrix and length > 0 and step > 0 else 1.0
            weights = [w - rate * ratio * s for w, s in zip(weights, steps, strict=True)]
        found.append(weights)
    return found


@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("adamw", {"lamb": False, "betas": (0.9, 0.98), "epsilon": 1e-9}),
        ("lamb", {"lamb": True, "betas": (0.9, 0.999), "epsilon": 1e-6}),
    ],
)
def test_updates_are_the_formulas(name: str, formula: dict[str, Any], decay: float) -> None:
    for ours, theirs in zip(trained(name, decay), written_out(**formula, decay=decay), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def test_adam_has_no_decay() -> None:
    assert trained("adam", 0.3) == trained("adam", 0.0)


def rates(updates: list[int], width: int = 256, **training: Any) -> list[float]:
    return [learning_rate(update, Training(**training), width) for update in updates]


def test_warm_up_then_inverse_square_root() -> None:
    found = rates([1, 50, 100, 400, 10000], learning_rate=0.002, warmup=100)
    assert found == pytest.approx([0.00002, 0.001, 0.002, 0.001, 0.0002])


def test_noam() -> None:
    """Factor 2 at width 256: the peak at update 100 is 2/16 · 1/10."""
    found = rates([1, 50, 100, 400], schedule="noam", learning_rate=2.0, warmup=100)
    assert found == pytest.approx([0.000125, 0.00625, 0.0125, 0.00625])


def test_linear_ends_at_zero_after_the_last_update() -> None:
    updates = list(range(1, 41))
    found = rates(updates, schedule="linear", learning_rate=0.3, warmup=8, max_updates=40)
    assert found == pytest.approx(np.interp(updates, [0, 8, 41], [0.0, 0.3, 0.0]))
    found = rates([1, 4], schedule="linear", learning_rate=0.4, warmup=1, max_updates=4)
    assert found == pytest.approx([0.4, 0.1])
    found = rates([1, 4], schedule="linear", learning_rate=0.4, warmup=0, max_updates=4)
    assert found == pytest.approx([0.32, 0.08])  # on the line from 0.4 at update 0


def test_constant_with_and_without_warm_up() -> None:
    assert rates([1, 5, 10, 1000], schedule="constant", learning_rate=0.1, warmup=10) == pytest.approx(
        [0.01, 0.05, 0.1, 0.1]
    )
    assert rates([1, 1000], schedule="constant", learning_rate=0.1, warmup=0) == [0.1, 0.1]


def test_trainings_are_deterministic_on_cpus_unless_the_study_says_otherwise() -> None:
    chosen = {value: Training(deterministic=value) for value in (None, True, False)}
    assert [chosen[value].is_deterministic(on_gpu=False) for value in chosen] == [True, True, False]
    assert [chosen[value].is_deterministic(on_gpu=True) for value in chosen] == [False, True, False]
    assert "deterministic" not in chosen[None].model_dump()  # keys of earlier trainings stay
    assert chosen[True].model_dump()["deterministic"] is True
    prepare_torch(torch.get_num_threads(), deterministic=False)
    assert torch.get_deterministic_debug_mode() == 0
    prepare_torch(torch.get_num_threads())
    assert torch.get_deterministic_debug_mode() == 1


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "lamb"])
def test_no_training_imports_torchs_compiler(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch._dynamo", "torch._inductor", "torch._inductor.config"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it is an error
    prepare_torch(torch.get_num_threads())
    assert torch.get_deterministic_debug_mode() == 1
    optimiser = make_optimiser(Toy(), Training(optimizer=optimizer))
    for parameter in optimiser.param_groups[0]["params"]:
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()
    optimiser.load_state_dict(optimiser.state_dict())
    optimiser.zero_grad()


@pytest.mark.parametrize(
    ("optimizer", "of_torch"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_updates_are_those_of_torchs_own(optimizer: str, of_torch: Any) -> None:
    toys = Toy(), Toy()
    mine = make_optimiser(toys[0], Training(optimizer=optimizer))
    groups = [{**group, "lr": 0.1, "params": []} for group in mine.param_groups]
    where = {id(mine_): theirs for mine_, theirs in zip(*(toy.parameters() for toy in toys), strict=True)}
    for group, of_mine in zip(groups, mine.param_groups, strict=True):
        of_mine["lr"] = 0.1
        group["params"] = [where[id(weight)] for weight in of_mine["params"]]
    theirs = of_torch(groups)
    for update in range(1, 4):
        for toy, optimiser in zip(toys, (mine, theirs), strict=True):
            for parameter, gradient in zip(toy.parameters(), gradients(update), strict=True):
                parameter.grad = gradient
            optimiser.step()
    for found, expected in zip(*(toy.parameters() for toy in toys), strict=True):
        assert torch.equal(found, expected)
    assert str(mine.state_dict()) == str(theirs.state_dict())
