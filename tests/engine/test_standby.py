"""`creamtea controller` as a service: a second one stands by, takes over after kill -9; SIGTERM ends it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from limits import ANSWER, START, wait_until
from toy_steps import attempts, counts
from toy_study import ToyStudy

from creamtea.orders.controllers import live_controller
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import open_database

TOYS = Path(__file__).parent / "toys"


def start_service(study: ToyStudy, log: Path) -> subprocess.Popen[bytes]:
    url = study.database.url.render_as_string(hide_password=False)
    environment = {**os.environ, "CREAMTEA_DATABASE_URL": url, "CREAMTEA_ARTEFACTS": study.store.root}
    command = [sys.executable, str(TOYS / "toy_controller.py"), "service"]
    with log.open("wb") as output:
        return subprocess.Popen(command, env=environment, stderr=output)


@pytest.mark.slow
def test_a_second_controller_takes_over_after_kill_9_and_ends_cleanly(
    postgres_url: str, store: ArtefactStore, log: Path
) -> None:
    database = open_database(postgres_url)
    study = ToyStudy(database, store, log)
    study.add("counting", "count", stop_at=3)
    study.add("long", "sleep", before=["counting"])
    study.submit()
    services = [start_service(study, log / "first")]
    try:
        wait_until(lambda: counts(log) == ["from 0", "at 3"], START)
        services.append(start_service(study, log / "second"))
        wait_until(lambda: "waiting for another controller" in (log / "second").read_text(), START)
        services[0].kill()
        wait_until(lambda: "long" in attempts(log), START)
        assert counts(log) == ["from 0", "at 3", "from 3"]
        assert study.happened("counting") == ["started", "interrupted", "started", "succeeded"]
        services[1].send_signal(signal.SIGTERM)
        assert services[1].wait(ANSWER) == 0, (log / "second").read_text()
        assert study.states() == {"counting": "succeeded", "long": "ready"}, "it is to be resumed"
        assert live_controller(database) is None
    finally:
        for service in services:
            service.kill()
            service.wait()
        database.close()
