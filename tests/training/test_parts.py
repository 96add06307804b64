"""Large checkpoints: in parts, the same as in one file; whole at every moment; nothing left behind."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_trainings import Killed, interrupted, parameters, reversals, trainer
from step_context import FolderCheckpoints
from torch import Tensor

from creamtea.contract.step import index_name, orphaned_parts
from creamtea.errors import DamagedCheckpoint, InfrastructureError, InputError
from creamtea.files import host_id
from creamtea.settings import checkpoint_part
from creamtea.store.artefacts import ArtefactStore
from creamtea_workers.training.checkpoint import (
    Position,
    Saver,
    Split,
    bytes_of,
    load_parts,
    load_position,
    position_names,
    read_index,
    save_position,
    slot_name,
    tensors_of,
)

PART = "CREAMTEA_CHECKPOINT_PART_MB"
SMALL, LARGE = "0.001", "1000"
NAME = "training-{:012}.pt"


def content(number: float = 1.0) -> dict[str, Any]:
    """What a training saves: nested, with tied weights, scalars, kinds of numbers and orders of memory."""
    tied = torch.full((20, 30), number)
    return {
        "position": {"update": int(number), "points": [("loss", 1, 0.5)], "nothing": None},
        "model": {"a/b": tied, "output": tied, "half": torch.randn(7, 9).bfloat16(), "none": torch.empty(0)},
        "optimiser": {
            "state": {0: {"step": torch.tensor(number), "mean": torch.randn(30, 20).T}, 1: {}},
            "param_groups": [{"betas": (0.9, 0.98), "params": [0, 1], "lr": 0.1}],
        },
    }


def same(first: Any, second: Any) -> bool:
    """To the bit."""
    if isinstance(first, Tensor):
        kinds = first.dtype == second.dtype and first.shape == second.shape
        return kinds and torch.equal(first.contiguous().view(-1), second.contiguous().view(-1))
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return type(first) is type(second) and len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def save(saver: Saver, value: Any) -> None:
    saver.save("training.pt", value)
    saver.wait()


def test_a_content_in_parts_is_that_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value, loaded = content(), {}
    for part in (SMALL, LARGE):
        monkeypatch.setenv(PART, part)
        saver = Saver(FolderCheckpoints(tmp_path / part))
        save(saver, value)
        loaded[part] = saver.load("training.pt")
        assert same(loaded[part], value)
    assert same(loaded[SMALL], loaded[LARGE])
    files = FolderCheckpoints(tmp_path / SMALL).names()
    assert sum(name.endswith(".safetensors") for name in files) >= 3
    assert "training.pt.json" in files
    assert FolderCheckpoints(tmp_path / LARGE).names() == ["training.pt"]


def test_a_save_whose_parts_another_attempt_has_removed_leaves_the_good_one(tmp_path: Path) -> None:
    """An attempt that goes on after another has begun: its machine slept, say."""
    checkpoints = FolderCheckpoints(tmp_path)
    value = content()
    good, stale = Split.of(value, "x.pt", "a", 1000), Split.of(content(2.0), "x.pt", "b", 1000)
    good.write(checkpoints, 0, 1)
    good.commit(checkpoints)
    stale.write(checkpoints, 0, 1)
    kept = read_index(checkpoints, "x.pt")
    for name in set(checkpoints.names()) - {index_name("x.pt"), kept.rest, *kept.tensors}:
        checkpoints.remove(name)
    with pytest.raises(InfrastructureError, match="another attempt of this step has begun"):
        stale.commit(checkpoints)
    assert same(load_parts(checkpoints, kept), value)


@given(sizes=st.lists(st.integers(0, 40), max_size=12), most=st.integers(1, 200))
def test_parts_hold_every_tensor_once_and_nothing_is_copied(sizes: list[int], most: int) -> None:
    value = [torch.zeros(size) for size in sizes]
    split = Split.of(value, "x.pt", "save", most)
    held = [tensor for part in split.parts for tensor in part.tensors.values()]
    assert [tensor.data_ptr() for tensor in held] == [tensor.data_ptr() for tensor in value]
    for part in split.parts:
        assert part.size <= most or sum(tensor.nbytes > 0 for tensor in part.tensors.values()) == 1
    assert sum(part.size for part in split.parts) == bytes_of(value)
    assert not list(tensors_of(split.rest))


class Crash(Exception):
    pass


class Crashing(FolderCheckpoints):
    """Its process dies at the change with this number."""

    def __init__(self, folder: Path, crash_at: int) -> None:
        super().__init__(folder)
        self.left = crash_at

    def save(self, name: str, source: Path) -> None:
        self.count()
        super().save(name, source)

    def remove(self, name: str) -> None:
        self.count()
        super().remove(name)

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash


@pytest.mark.parametrize("forms", [(SMALL, SMALL), (LARGE, SMALL), (SMALL, LARGE)])
def test_a_crash_at_any_moment_leaves_a_whole_checkpoint(
    forms: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after, last = content(1.0), content(2.0), content(3.0)
    crashes, ended = 0, False
    while not ended:
        folder = tmp_path / f"{crashes}"
        monkeypatch.setenv(PART, forms[0])
        save(Saver(FolderCheckpoints(folder)), before)
        monkeypatch.setenv(PART, forms[1])
        try:
            save(Saver(Crashing(folder, crashes)), after)
            ended = True
        except Crash:
            crashes += 1
        found = Saver(FolderCheckpoints(folder)).load("training.pt")
        assert same(found, after) if ended else same(found, before) or same(found, after)
        resumed = Saver(FolderCheckpoints(folder))
        resumed.clear()
        assert same(resumed.load("training.pt"), found)
        assert not orphaned_parts(resumed._checkpoints.names(), resumed._read)
        save(resumed, last)
        save(resumed, last)
        assert same(resumed.load("training.pt"), last)
        kinds = {name.partition(".parts/")[0] for name in resumed._checkpoints.names()}
        assert kinds == ({"training.pt"} if forms[1] == LARGE else {"training.pt", "training.pt.json"})
    assert crashes >= 2


def test_a_part_that_was_deleted_is_named_and_the_checkpoint_before_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PART, SMALL)
    saver = Saver(FolderCheckpoints(tmp_path))
    for update in (1, 2, 3):
        save_position(saver, Position(update), content()["model"], content()["optimiser"])
    saver.wait()
    assert position_names(FolderCheckpoints(tmp_path).names()) == {NAME.format(2), NAME.format(3)}
    next((tmp_path / f"{NAME.format(3)}.parts").rglob("00001.safetensors")).unlink()
    with pytest.raises(DamagedCheckpoint, match=r"training-0+3\.pt\.parts/\w+/00001\.safetensors is missing"):
        load_position(saver)
    saver.discard_damaged()
    found = load_position(saver)
    assert found[0].update == 2
    assert not any(NAME.format(3) in name for name in FolderCheckpoints(tmp_path).names())


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped": lambda whole: (
        whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 0x40]) + whole[len(whole) // 2 + 1 :]
    ),
    "truncated": lambda whole: whole[: len(whole) // 2],
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("part", ["0.05", LARGE])
def test_a_training_begins_from_the_checkpoint_before_a_damaged_one_and_ends_the_same(
    part: str, damage: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PART, part)
    store = ArtefactStore(tmp_path)
    monkeypatch.setattr("small_trainings.FolderCheckpoints", lambda folder: store.checkpoints(folder.name))
    params = parameters({"batch_tokens": 60, "max_epochs": 3, "checkpoint_every": 2, "average": 2})
    pairs = reversals(30, 6, seed=1)
    whole = trainer(params, pairs, tmp_path / "whole").run()
    folder = tmp_path / "checkpoints" / "piece"
    for stop in (5, whole.position.update - 1):
        with pytest.raises(Killed):
            trainer(params, pairs, folder, kill_at=stop).run()
        *_, before, newest = [0, *sorted(position_names(store.checkpoints("piece").names()))]
        damaged = next(folder.glob(f"{newest}.parts/*/*.safetensors" if part != LARGE else str(newest)))
        damaged.write_bytes(damage(damaged.read_bytes()))
        with pytest.raises(DamagedCheckpoint, match=f"{damaged} does not match its checksum"):
            trainer(params, pairs, folder).run()
        assert position_names(store.checkpoints("piece").names()) == {before}
        goes_on = trainer(params, pairs, folder)
        goes_on.resume()
        assert NAME.format(goes_on.state.update) == before
    again = trainer(params, pairs, folder).run()
    assert same(again.model.state_dict(), whole.model.state_dict())
    assert again.position.points == whole.position.points


@pytest.mark.slow
def test_of_damaged_models_those_that_no_checkpoint_needs_are_gone_and_others_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtefactStore(tmp_path)
    monkeypatch.setattr("small_trainings.FolderCheckpoints", lambda folder: store.checkpoints(folder.name))
    params = parameters({"batch_tokens": 60, "max_epochs": 3, "keep": "last", "average": 1})
    pairs = reversals(30, 6, seed=1)
    whole = trainer(params, pairs, tmp_path / "whole").run()
    folder = tmp_path / "checkpoints" / "piece"
    last = whole.position.update
    with pytest.raises(Killed):
        trainer(params, pairs, folder, kill_at=last - 1).run()
    state = trainer(params, pairs, folder)
    state.resume()
    newest = folder / slot_name(state.state.best[0].slot)
    newest.write_bytes(DAMAGES["flipped"](newest.read_bytes()))
    with pytest.raises(DamagedCheckpoint, match=newest.name):
        trainer(params, pairs, folder).run()
    [left] = position_names(store.checkpoints("piece").names())
    assert left < NAME.format(state.state.update)
    for model in folder.glob("best-*.pt"):
        model.write_bytes(DAMAGES["truncated"](model.read_bytes()))
    with pytest.raises(DamagedCheckpoint, match=r"best-\d\.pt"):
        trainer(params, pairs, folder).run()
    assert store.checkpoints("piece").names() == []
    again = trainer(params, pairs, folder).run()
    assert same(again.model.state_dict(), whole.model.state_dict())


@pytest.mark.slow
def test_a_training_without_a_model_that_it_would_average_begins_anew(tmp_path: Path) -> None:
    params = parameters({"batch_tokens": 60, "max_epochs": 3, "checkpoint_every": 2, "average": 2})
    pairs = reversals(30, 6, seed=1)
    with pytest.raises(Killed):
        trainer(params, pairs, tmp_path, kill_at=5).run()
    for model in tmp_path.glob("best-*.pt"):
        model.unlink()
    with pytest.raises(DamagedCheckpoint, match=r"best-\d\.pt is missing"):
        trainer(params, pairs, tmp_path).run()
    assert not FolderCheckpoints(tmp_path).names()


class Slow(FolderCheckpoints):
    def save(self, name: str, source: Path) -> None:
        time.sleep(0.005)
        super().save(name, source)


@pytest.mark.slow
def test_a_training_with_large_checkpoints_resumes_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates go on while a checkpoint is being written."""
    params = parameters({"batch_tokens": 60, "max_epochs": 2, "checkpoint_every": 2, "average": 2})
    pairs = reversals(70, 6, seed=1)
    monkeypatch.setenv(PART, LARGE)
    whole = trainer(params, pairs, tmp_path / "whole").run()
    monkeypatch.setenv(PART, "0.02")
    monkeypatch.setattr("small_trainings.FolderCheckpoints", Slow)
    updates = whole.position.update
    pieces = interrupted(params, pairs, tmp_path / "pieces", [3, 6, updates - 1])
    assert same(pieces.model.state_dict(), whole.model.state_dict())
    names = FolderCheckpoints(tmp_path / "pieces").names()
    assert not orphaned_parts(names, Saver(FolderCheckpoints(tmp_path / "pieces"))._read)
    assert {name.partition(".")[0].partition("-0")[0] for name in names} >= {"training", "best"}
    assert sum(name.endswith(".safetensors") for name in names) > 8


@pytest.mark.parametrize("value", ["0", "-1", "much", "nan"])
def test_a_size_that_is_none(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PART, value)
    with pytest.raises(InputError, match=f"{PART}={value}: write a number of megabytes"):
        checkpoint_part()


@pytest.mark.parametrize("part", [SMALL, LARGE])
def test_what_a_killed_process_was_writing_can_be_found(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is one that `creamtea.files.clear_abandoned` removes."""
    monkeypatch.setenv(PART, part)
    folders: set[str] = set()

    class Watched(FolderCheckpoints):
        def save(self, name: str, source: Path) -> None:
            folders.add(source.parent.name)
            super().save(name, source)

    save(Saver(Watched(tmp_path / "checkpoints")), content())
    assert folders
    assert all(folder.startswith(f"creamtea-checkpoint-{host_id()}-{os.getpid()}-") for folder in folders)
