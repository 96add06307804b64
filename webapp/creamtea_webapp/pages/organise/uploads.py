"""Uploaded files, read by the functions that read those of the command line."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from creamtea.errors import about
from creamtea.wording import uploaded_to

Read = TypeVar("Read")


def read_uploaded(field: str, file: Any, read: Callable[[Path], Read]) -> Read:
    """An uploaded file, read as one on the disk is. InputError about the field, with the file's own name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(file.name).name
        path.write_bytes(file.getvalue())
        with about(field), uploaded_to(Path(folder)):
            return read(path)
