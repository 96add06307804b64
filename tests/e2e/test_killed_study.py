"""A whole study on local Ray whose controller and workers are killed: it ends like an undisturbed one, to the
last digit in everything that is no measurement of time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from limits import COMMAND, wait_until
from places import STUDY, Place

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    def holds() -> bool:
        if process.poll() is not None:
            pytest.fail(f"the run ended before the kill:\n{process.communicate()[0]}")
        return bool(condition())

    wait_until(holds, COMMAND)


def train_worker(controller: int, title: str = "ray::train") -> psutil.Process | None:
    """The Ray worker that trains, among the descendants of the controller."""
    for process in psutil.Process(controller).children(recursive=True):
        try:
            if any(title in part for part in process.cmdline()):
                return process
        except psutil.NoSuchProcess:
            continue
    return None


def test_kill_9_of_controller_and_worker_changes_no_digit(undisturbed: Place, tmp_path: Path) -> None:
    place = Place(tmp_path)
    first = place.start("run", str(STUDY))
    wait_for(lambda: place.checkpoint() > 0, first)
    first.kill()  # the controller, and with it local Ray
    first.wait()

    second = place.start("run", str(STUDY))
    wait_for(lambda: train_worker(second.pid), second)  # by now the first run's worker has gone, too
    saved = place.checkpoint()
    wait_for(lambda: place.checkpoint() > saved, second)  # the training has gone on
    worker = train_worker(second.pid)
    assert worker is not None
    worker.kill()
    output, _ = second.communicate(timeout=COMMAND)
    assert second.returncode == 0, output
    assert "starting Ray" in output

    assert place.contents() == undisturbed.contents()
    assert place.happened("train/softmax/1").count("retry") == 1
    assert place.happened("corpus/grammar").count("started") == 1  # what was done is not done again


def test_two_workers_one_of_which_is_killed_train_the_same_model(undisturbed: Place, tmp_path: Path) -> None:
    place = Place(tmp_path)
    run = place.start("run", str(STUDY), "--set", "resources.train.workers=[1, 2]")
    wait_for(lambda: place.checkpoint() > 0, run)
    worker = train_worker(run.pid, "ray::RayTrainWorker")
    assert worker is not None
    worker.kill()
    output, _ = run.communicate(timeout=COMMAND)
    assert run.returncode == 0, output
    assert place.contents() == undisturbed.contents()
    assert place.happened("train/softmax/1").count("retry") == 1
