"""Several workers train one model: to the last bit what one worker trains."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import group_member
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from limits import COMMAND
from step_context import FolderCheckpoints
from torch import distributed

from creamtea.contract.step import GROUP_PATIENCE, orphaned_parts
from creamtea.errors import InfrastructureError
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.training import group
from creamtea_workers.training.checkpoint import position_names
from creamtea_workers.training.group import (
    Exchange,
    Group,
    ProcessGroup,
    Terms,
    TreeSum,
    batch_seed,
    leaves_of,
    lost_worker,
    next_power_of_two,
)

HERE = Path(__file__).parent


def tree(leaves: list[float], width: int) -> float:
    """The oracle: halves of a power of two; leaves that are missing add nothing."""
    if width == 1:
        return leaves[0]
    half = width // 2
    left = tree(leaves[:half], half)
    return left if len(leaves) <= half else left + tree(leaves[half:], half)


def summed(leaves: list[float]) -> float:
    total = TreeSum()
    *others, last = (torch.tensor([leaf], dtype=torch.float64) for leaf in leaves or [0.0])
    for leaf in others:
        total.add([leaf])
    return total.with_last(0, last).item()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_a_tree_sum_is_that_of_halves(leaves: list[float]) -> None:
    assert summed(leaves) == tree(leaves, next_power_of_two(len(leaves)))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.sampled_from([1, 2, 4, 8]))
def test_workers_sum_subtrees(leaves: list[float], size: int) -> None:
    blocks = [leaves_of(len(leaves), rank, size) for rank in range(size)]
    assert [leaf for members in blocks for leaf in members] == list(range(len(leaves)))
    parts = [summed([leaves[i] for i in members]) for members in blocks]
    while len(parts) > 1:  # as the workers do, in pairs
        parts = [first + second for first, second in zip(parts[::2], parts[1::2], strict=True)]
    assert parts[0] == summed(leaves)


class Pair(Group):
    """One of two workers, of which the other has zeros."""

    size = 2

    def __init__(self) -> None:
        self.began = Event()

    def add(self, terms: Terms) -> Terms:
        self.began.set()
        return super().add(terms)


def test_gradients_are_sent_while_the_backward_pass_computes_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "PART", 1)
    first, last = (torch.nn.Parameter(torch.tensor([value])) for value in (2.0, 3.0))
    pair, began, total = Pair(), [], TreeSum()
    first.register_hook(lambda slope: began.append(pair.began.wait(COMMAND)))
    exchange = Exchange(pair, [first, last])
    total.add([torch.tensor([0.5]), torch.tensor([0.25]), torch.zeros(2)])  # of another batch
    exchange.begin(total)
    (first * 5.0).mul(last).sum().backward()
    losses = exchange.finish(total, torch.tensor([1.0, 7.0]))
    assert began == [True]
    assert losses.tolist() == [1.0, 7.0]
    assert [weight.grad.item() for weight in (first, last) if weight.grad is not None] == [15.5, 10.25]


def test_every_batch_has_a_dropout_of_its_own() -> None:
    places = [(seed, update, position) for seed in (1, 2) for update in (1, 2, 3) for position in (0, 1)]
    assert len({batch_seed(*place) for place in places}) == len(places)


def test_a_lost_worker_is_one_sentence() -> None:
    gloo = "[/pytorch/gloo/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:58599. Advice. Luck!"
    sentence = r"^another worker of this step was lost: Connection closed by peer \[127\.0\.0\.1\]:58599$"
    with pytest.raises(InfrastructureError, match=sentence), lost_worker():
        raise RuntimeError(gloo)
    with pytest.raises(InfrastructureError, match=r"was lost: RuntimeError$"), lost_worker():
        raise RuntimeError


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the members of groups of 2, 3 and 4 processes left."""
    folder = tmp_path_factory.mktemp("groups")
    group_member.make_inputs(folder)
    environment = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(HERE / "group_member.py"), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=COMMAND)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("size", group_member.SIZES)
def test_a_group_adds_in_pairs(groups: Path, size: int) -> None:
    active = 1 << (size.bit_length() - 1)  # the others only receive
    first, second, *others = [group_member.terms(rank) for rank in range(active)]
    expected = [a + b for a, b in zip(first, second, strict=True)]
    if others:
        expected = [e + (c + d) for e, c, d in zip(expected, *others, strict=True)]
    for rank in range(size):
        added = torch.load(groups / f"added-{size}-{rank}.pt")
        assert all(torch.equal(a, b) for a, b in zip(added, expected, strict=True))


@pytest.mark.slow
def test_any_number_of_workers_trains_the_same_weights(groups: Path, tmp_path: Path) -> None:
    prepare_torch(1)
    alone = group_member.train(tmp_path)
    for size in group_member.SIZES:
        for rank in range(size):
            weights = torch.load(groups / f"weights-{size}-{rank}.pt")
            assert weights.keys() == alone.keys()
            for name, value in alone.items():
                assert torch.equal(value, weights[name]), (size, rank, name)


@pytest.mark.slow
@pytest.mark.parametrize("size", group_member.SIZES)
def test_workers_write_large_checkpoints_together(groups: Path, size: int) -> None:
    names = FolderCheckpoints(groups / f"checkpoints-{size}").names()
    parts = [name for name in names if name.endswith(".safetensors")]
    assert bool(parts) == (size > 2)
    assert position_names(names)
    assert not orphaned_parts(names, lambda name: (groups / f"checkpoints-{size}" / name).read_bytes())


@pytest.mark.slow
def test_any_number_of_workers_writes_the_same_translations(groups: Path, tmp_path: Path) -> None:
    prepare_torch(1)
    group_member.decode(groups, tmp_path / "alone", tmp_path / "checkpoints")
    alone = (tmp_path / "alone" / "hypotheses.jsonl").read_bytes()
    for size in group_member.SIZES:
        assert (groups / f"decoded-{size}-0" / "hypotheses.jsonl").read_bytes() == alone
        assert not any(any((groups / f"decoded-{size}-{rank}").iterdir()) for rank in range(1, size))


def test_workers_wait_for_messages_as_long_as_for_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of torch's has half an hour where nothing else is said, whatever the first one has."""
    made: dict[str, Any] = {}
    monkeypatch.setattr(distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(distributed, "new_group", lambda **given: made.update(given))
    ProcessGroup()
    assert made["timeout"] == timedelta(seconds=GROUP_PATIENCE)
