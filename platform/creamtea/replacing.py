"""Writing a local file beside the one whose place it takes, so that no reader ever sees half of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_NAME = 100  # characters of the file's own name: many file systems allow 255 bytes


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new path beside `target`; what the block writes there takes its place, and its mode where it exists.

    A block that raises leaves nothing, and `target` as it was.
    """
    beside = target.with_name(f".{target.name[:MAX_NAME]}.{uuid.uuid4().hex[:8]}")
    try:
        yield beside
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o777)
        beside.replace(target)
    finally:
        with suppress(OSError):  # it has taken its place, or was never written
            beside.unlink()
