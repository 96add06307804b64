"""How long tests wait for other processes, in seconds.

Ten times what a quiet machine needs, since others may be busy on it. A test waits for a condition and goes on
as soon as it holds, so that a limit is only reached where something is broken.
"""

import time
from collections.abc import Callable

ANSWER = 180.0  # an answer of a server, an element of a page, a thing that another process does
START = 300.0  # until a server, Ray or a node of a cluster is ready
COMMAND = 900.0  # a whole command, with Ray or a small training in it
MILLISECONDS = 1000  # Playwright's unit

# Ray gives up after 30 or 60 seconds by itself, and its workers (15) would starve beside other tests.
RAY_ENVIRONMENT = {
    "RAY_worker_niceness": "0",
    "RAY_gcs_server_port_wait_time_s": f"{START:.0f}",
    "RAY_gcs_server_request_timeout_seconds": f"{START:.0f}",
    "RAY_worker_register_timeout_seconds": f"{START:.0f}",
}


def wait_until(
    condition: Callable[[], object],
    seconds: float = ANSWER,
    what: Callable[[], str] = lambda: "",
    pause: float = 0.05,
) -> None:
    """Ask every `pause` seconds until the condition holds; where it does not in time, the failure says
    `what()`."""
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < deadline, f"waited for {seconds:g} s in vain {what()}".rstrip()
        time.sleep(max(pause, 3 * (now - asked)))  # what is waited for needs the processor, too
