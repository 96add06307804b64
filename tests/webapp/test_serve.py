"""`creamtea serve` as a person meets it."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from limits import ANSWER, START, wait_until
from test_gate import cookie_of, exchange, handshake

from creamtea.errors import InputError
from creamtea_webapp.server import check_address

SERVE = [sys.executable, "-c", "from creamtea.cli.main import main; main()", "serve"]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_an_input_error(host: str) -> None:
    with pytest.raises(InputError, match=rf"cannot listen on {host}:0: .*see --host and --port"):
        check_address(host, 0)


@pytest.mark.slow
def test_ctrl_c_stops_the_server_cleanly_even_with_an_open_websocket(
    sqlite_template: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*SERVE, "--port", "0", "--no-browser", "--host", "127.0.0.1"],
            env={**os.environ, "CREAMTEA_DATABASE_URL": f"sqlite:///{tmp_path / 'new.db'}"},
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: "/enter#" in log.read_text() or process.poll() is not None, START, log.read_text)
        link = re.search(r"http://\S+/enter#\S+", log.read_text())
        place = urlsplit(link[0])
        cookie = cookie_of(exchange(SimpleNamespace(url=link[0]), link[0]))
        with socket.create_connection((place.hostname, place.port), timeout=ANSWER) as connection:
            connection.sendall(handshake(place.netloc, cookie))
            assert connection.recv(100).startswith(b"HTTP/1.1 101")
            process.send_signal(signal.SIGINT)
            assert process.wait(ANSWER) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    written = log.read_text()
    assert written.startswith(
        f"creamtea is served at http://{place.netloc}; open this link, it works once:\n"
    )
    assert re.findall(r"#(\S+)", written) == [place.fragment]  # the only secret
    assert written.endswith("\nstopped\n")
    assert "Traceback" not in written
