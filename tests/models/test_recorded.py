"""When a function is recorded. That a replay computes the same is compared on a GPU by `make gpu-check`."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from creamtea_workers.models import packed
from creamtea_workers.models.packed import RECORD_AT, Recorder


class Direct:
    """In place of a recording, which needs a GPU."""

    made: list[tuple[torch.Size, ...]]

    differentiable = (True, False)

    def __init__(
        self, function: packed.Function, arguments: Sequence[Tensor], shared: packed._Shared
    ) -> None:
        self.function, self.count, self.shared = function, len(arguments), shared
        self.made.append(tuple(tensor.shape for tensor in arguments))

    def run(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        return [result.detach() for result in self.function(*arguments)]

    def run_backwards(self, slopes: Sequence[Tensor]) -> list[Tensor | None]:
        (slope,) = slopes
        for of_weight in self.shared.slopes:
            of_weight.fill_(float(slope.sum()))
        return [None] * self.count


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[torch.Size, ...]]:
    Direct.made = []
    monkeypatch.setattr(packed, "_Recording", Direct)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    monkeypatch.setattr(torch.cuda, "Stream", object)
    for name, value in {"mem_get_info": (5, 100), "memory_reserved": 46, "memory_allocated": 1}.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    return Direct.made


WEIGHT = torch.nn.Parameter(torch.zeros(3))
FROZEN = torch.nn.Parameter(torch.zeros(3), requires_grad=False)


def add(x: Tensor) -> tuple[Tensor, Tensor]:
    return x + WEIGHT + FROZEN, x + 1


def call(recorder: Recorder, rows: int, key: Any = None) -> Tensor:
    added, more = recorder(add, [WEIGHT, FROZEN], torch.ones(rows, 3), key=key)
    assert (more.tolist(), more.requires_grad) == ([[2.0] * 3] * rows, False)
    return added


def test_a_shape_is_recorded_once_it_has_come_a_few_times(made: list[Any]) -> None:
    recorder = Recorder()
    for count in range(1, RECORD_AT + 3):
        assert call(recorder, 2).tolist() == [[1.0] * 3] * 2
        assert len(made) == (count >= RECORD_AT)
    call(recorder, 5)
    assert made == [((2, 3),)]
    assert recorder.share == pytest.approx(3 / (RECORD_AT + 3))


def test_gradients_reach_the_weights_that_are_trained(made: list[Any]) -> None:
    recorder = Recorder()
    for _ in range(RECORD_AT):
        call(recorder, 2)
    WEIGHT.grad = None
    for expected in ([6.0] * 3, [12.0] * 3):  # a second time they are added
        call(recorder, 2).sum().backward()
        assert WEIGHT.grad.tolist() == expected
    assert len(made) == 1
    assert FROZEN.grad is None


def test_another_key_is_another_function(made: list[Any]) -> None:
    recorder = Recorder()
    for key in (1, 2):
        for _ in range(RECORD_AT - 1):
            call(recorder, 2, key)
    assert made == []
    call(recorder, 2, 1)
    assert len(made) == 1


def test_no_more_recordings_than_there_is_memory_for(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(most=2)
    for rows in (1, 2, 3):
        for _ in range(RECORD_AT + 1):
            assert call(recorder, rows).shape == (rows, 3)
    assert made == [((1, 3),), ((2, 3),)]


def test_a_part_of_the_memory_stays_free(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 5)
    recorder = Recorder()
    for _ in range(RECORD_AT + 1):
        assert call(recorder, 2).shape == (2, 3)
    assert made == []


def test_a_copy_of_a_model_has_no_recordings(made: list[Any]) -> None:
    recorder = Recorder()
    for _ in range(RECORD_AT):
        call(recorder, 2)
    call(copy.deepcopy(recorder), 2)
    assert len(made) == 1
