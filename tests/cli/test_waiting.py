"""What waits for a study says where nobody is working on it."""

from pathlib import Path

import pytest
from limits import wait_until

from creamtea.cli import following

REMEDY = "`creamtea controller --until-idle`"
TRAIN = "train/softmax/1"


@pytest.fixture
def queued(creamtea, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study without a controller, and nobody who waits long for one."""
    monkeypatch.setattr(following, "MISSING_SECONDS", -1.0)
    assert creamtea("submit", study, CREAMTEA_CONTROLLER="service").returncode == 0


def test_status_says_that_no_controller_is_running(creamtea, queued: None) -> None:
    assert REMEDY in creamtea("status", "tiny").stdout
    assert creamtea.json("status", "tiny")["controller"] is None
    service = creamtea("status", "tiny", CREAMTEA_CONTROLLER="service").stdout
    assert "until the service is back" in service
    # nobody is waited for without an end
    for waiting in ("status tiny --watch", "status --watch", f"logs tiny {TRAIN} --follow"):
        done = creamtea(*waiting.split())
        assert (done.returncode, REMEDY in done.stderr.splitlines()[-1]) == (1, True), waiting
    creamtea("cancel", "tiny")
    assert "no controller" not in creamtea("status", "tiny").stdout


def test_a_study_that_nobody_runs_is_not_retried_but_continued(creamtea, queued: None) -> None:
    said = creamtea.refused("retry", "tiny", "--executor", "inline")
    assert "study tiny is queued" in said
    assert REMEDY in said
    assert creamtea("controller", "--until-idle", "--executor", "inline").returncode == 0
    assert creamtea.json("status", "tiny")["state"] == "succeeded"


COMPARE = ("compare", "--source", "test.en", "--reference", "test.de", "ours.de")


@pytest.fixture
def files(creamtea) -> None:
    for name in ("test.en", "test.de", "ours.de"):
        (creamtea.folder / name).write_text(f"{name}\njam\n")


def test_a_comparison_waits_for_a_run(creamtea, files: None) -> None:
    with creamtea.lease(study=1):
        compared = creamtea.start(*COMPARE, "--quiet")
        assert "waiting for another study to end" in compared.stderr.readline()
        assert compared.poll() is None
    printed, _ = compared.communicate()
    assert (compared.returncode, "ours" in printed) == (0, True)


def test_files_are_compared_by_the_controller_that_serves_all(creamtea, files: None) -> None:
    """Which never ends, so that waiting for it would not help."""
    serving = creamtea.start("controller", "--executor", "inline")
    there = creamtea.home / "creamtea.db"
    wait_until(lambda: there.exists() and creamtea.json("status")["controller"] is not None)
    compared = creamtea(*COMPARE, "--quiet")
    assert compared.returncode == 0
    assert "ours" in compared.stdout
    assert serving.poll() is None
    assert creamtea.json("status", "compare-test")["state"] == "succeeded"
