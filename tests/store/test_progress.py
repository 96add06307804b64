"""What a step says of itself while it runs, by its attempt."""

from __future__ import annotations

import time

import pytest

from creamtea.contract.step import LiveExample, LiveView, PointRow
from creamtea.store.artefacts import ArtefactStore


def test_progress_is_read_as_written(store: ArtefactStore) -> None:
    assert store.read_progress("key", 7) is None
    store.write_progress("key", 7, 1.0, 4.0, "süß")
    store.write_progress("key", 7, 2.0, 4.0, "süß")
    progress = store.read_progress("key", 7)
    assert progress is not None
    assert progress.at <= time.time()
    assert (progress.done, progress.total, progress.message) == (2.0, 4.0, "süß")
    assert store.read_progress("key", 8) is None, "an earlier attempt's"


def test_what_a_step_shows_is_that_of_its_last_attempt(store: ArtefactStore) -> None:
    example = LiveExample("süß", "sweet", [(20, "suess"), (40, "süß")])
    view = LiveView([PointRow("train_loss", 20, 1.5)], [example], None)
    store.write_live("key", 7, view)
    assert store.read_live("key", 7) == view
    assert store.read_live("key", 8) is None
    assert store.read_progress("key", 7) is None


@pytest.mark.parametrize("content", [b"", b'{"done": 1', b"\xff", b"[1]"])
def test_progress_that_cannot_be_read_is_none(store: ArtefactStore, content: bytes) -> None:
    store.write_progress("key", 7, 1.0, 4.0, "")
    store.fs.pipe_file(store.path_of("progress", "key.json"), content)
    assert store.read_progress("key", 7) is None
