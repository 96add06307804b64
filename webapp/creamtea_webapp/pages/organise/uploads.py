"""Uploaded files, read by the functions that read those of the command line."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from creamtea.errors import InputError

Read = TypeVar("Read")


def read_uploaded(field: str, file: Any, read: Callable[[Path], Read]) -> Read:
    """An uploaded file, read as one on the disk is. InputError about the field, with the file's own name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(file.name).name
        path.write_bytes(file.getvalue())
        try:
            return read(path)
        except InputError as error:
            raise InputError(without_folder(folder, error), about=field) from None


def without_folder(folder: str, error: InputError) -> str:
    """The message, which calls a file as the organiser does."""
    return str(error).replace(f"{folder}/", "")
