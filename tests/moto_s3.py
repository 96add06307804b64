"""Rights on moto's S3 server, which by itself lets everybody do everything."""

import math
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def rights_enforced(endpoint: str) -> Iterator[None]:
    """Only known keys with a policy are let in."""
    _enforce_from(endpoint, 0)
    try:
        yield
    finally:
        _enforce_from(endpoint, math.inf)


def _enforce_from(endpoint: str, requests: float) -> None:
    request = urllib.request.Request(
        f"{endpoint}/moto-api/reset-auth", str(requests).encode(), {"Content-Type": "text/plain"}
    )
    urllib.request.urlopen(request).close()
