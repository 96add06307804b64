"""What is kept of the systems that people try sentences on. Nothing is really loaded here."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from creamtea.contract.step import Resources
from creamtea.engine import try_out
from creamtea.engine.executors.base import StepTask
from creamtea.engine.try_out import LoadedSystems
from creamtea.store.artefacts import ArtefactStore, StoredFile


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of the steps whose files have been read."""
    keys: list[str] = []

    @contextmanager
    def opened(task: StepTask, store: ArtefactStore) -> Iterator[str]:
        keys.append(task.key)
        yield task.key

    lines = SimpleNamespace(OpenSystem=SimpleNamespace(of_step=lambda key: f"system {key}"))
    monkeypatch.setattr(try_out, "opened", opened)
    monkeypatch.setattr(try_out, "load_module", lambda name, cpus: lines)
    return keys


def step(key: str, *sizes: int) -> StepTask:
    files = [[StoredFile("model", "d", size) for size in sizes]]
    return StepTask(key, 1, key, "decode", 1, {}, {"train": files}, {}, Resources(), "")


def test_a_system_is_read_once(read: list[str], store: ArtefactStore) -> None:
    loaded = LoadedSystems(store)
    assert [loaded.of(step(key, 10)) for key in "aba"] == ["system a", "system b", "system a"]
    assert read == ["a", "b"]


def test_the_least_recently_used_goes_first(read: list[str], store: ArtefactStore) -> None:
    loaded = LoadedSystems(store, max_systems=2)
    for key in "abac":
        loaded.of(step(key, 10))
    assert loaded.keys == ["a", "c"]


def test_their_files_have_room_together(read: list[str], store: ArtefactStore) -> None:
    loaded = LoadedSystems(store, max_bytes=100)
    for key, sizes in {"a": (30, 10), "b": (40,), "c": (20,), "d": (30,)}.items():
        loaded.of(step(key, *sizes))
    assert loaded.keys == ["b", "c", "d"]


def test_one_that_is_too_large_makes_room_for_the_next(read: list[str], store: ArtefactStore) -> None:
    loaded = LoadedSystems(store, max_bytes=100)
    for key, size in {"a": 40, "large": 1000, "b": 40}.items():
        loaded.of(step(key, size))
        assert loaded.keys == [key]
