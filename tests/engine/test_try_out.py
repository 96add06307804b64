"""What is kept of the systems that people try sentences on. Nothing is really loaded here."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

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


@pytest.mark.parametrize(
    ("room", "sizes", "kept"),
    [
        # the least recently used goes first
        ({"max_systems": 2}, [("a", 10), ("b", 10), ("a", 10), ("c", 10)], ["a", "c"]),
        # their files have room together
        ({"max_bytes": 100}, [("a", 30, 10), ("b", 40), ("c", 20), ("d", 30)], ["b", "c", "d"]),
        # one that is too large stays alone, and makes room for the next
        ({"max_bytes": 100}, [("a", 40), ("large", 1000)], ["large"]),
        ({"max_bytes": 100}, [("a", 40), ("large", 1000), ("b", 40)], ["b"]),
    ],
)
def test_systems_are_kept_that_have_room(
    room: dict[str, int], sizes: list[Any], kept: list[str], read: list[str], store: ArtefactStore
) -> None:
    loaded = LoadedSystems(store, **room)
    for key, *files in sizes:
        loaded.of(step(key, *files))
    assert loaded.keys == kept
