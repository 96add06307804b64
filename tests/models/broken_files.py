"""Changes of a model's folder after which it must be refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[Path], object]


class Ran:
    """Writes a file if it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch ran",)


def removed(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def written(name: str, content: bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(content)


def rewritten(name: str, change: Callable[[bytes], bytes]) -> Change:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def edited(name: str, **changes: Any) -> Change:
    """Change keys of a JSON object."""
    return rewritten(name, lambda content: json.dumps({**json.loads(content), **changes}).encode())


def linked(name: str) -> Change:
    """Put a link to a file outside of the folder in the place of a file."""

    def change(folder: Path) -> None:
        (folder / name).rename(folder.parent / "outside")
        (folder / name).symlink_to(folder.parent / "outside")

    return change
