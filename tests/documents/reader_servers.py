"""Servers of the documents: started, asked for a page, and interrupted as by Ctrl-C."""

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from limits import ANSWER, START, wait_until

PAGES = {"serve": "enter", "controller": "metrics"}
EXIT_CODES = {"serve": 0, "controller": 130}


def asked_for_a_page(arguments: list[str], place: Path, environment: dict[str, str]) -> None:
    """AssertionError where it does not answer, or does not end as it should."""
    port = free_port()
    page = f"http://127.0.0.1:{port}/{PAGES[arguments[0]]}"
    option = "--metrics-port" if arguments[0] == "controller" else "--port"
    others = re.sub(rf"{option} \d+", "", " ".join(arguments)).split()
    log = place / f"{arguments[0]}.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "creamtea.cli.main", *others, option, str(port)],
            cwd=place,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(
            lambda: answers(page, place, environment) or server.poll() is not None, START, log.read_text
        )
        assert server.poll() is None, log.read_text()
    finally:
        server.send_signal(signal.SIGINT)
        code = server.wait(ANSWER)
    assert code == EXIT_CODES[arguments[0]], log.read_text()


def answers(page: str, place: Path, environment: dict[str, str]) -> bool:
    token = environment.get("CREAMTEA_METRICS_TOKEN_FILE")
    header = {"Authorization": f"Bearer {(place / token).read_text().strip()}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(page, headers=header), timeout=ANSWER) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        raise
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
