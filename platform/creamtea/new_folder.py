"""A folder that is new or empty, and that a command fills: whole afterwards, or as it was."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from creamtea.errors import InputError
from creamtea.printable import is_utf8


def check_new(path: Path, option: str) -> None:
    """InputError, of the option that names it, for a folder with something in it: nothing is overwritten; and
    for a name that is not UTF-8."""
    if not is_utf8(str(path)):
        raise InputError(f"{option} {path}: the name is not UTF-8; give another")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        what = "it is not empty" if path.is_dir() else "it is a file"
        raise InputError(f"{option} {path}: {what}; give a new folder or an empty one")


@contextmanager
def new_folder(path: Path, option: str) -> Iterator[Path]:
    """The folder, to be filled. InputError as `check_new`, and where something cannot be written; whatever
    ends it early, the folder is as it was, so that the next try finds nothing in it."""
    made: list[Path] = []
    try:
        check_new(path, option)
        made = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        try:
            yield path
        except BaseException:
            _clear(path)
            raise
    except BaseException as error:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise InputError(f"{option} {path}: {_reason(error, path)}") from None
        raise


def _clear(path: Path) -> None:
    for entry in path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _reason(error: OSError, path: Path) -> str:
    """As "scores.csv: No space left on device"."""
    name = Path(error.filename) if isinstance(error.filename, str) else path
    within = f"{name.relative_to(path)}: " if name != path and name.is_relative_to(path) else ""
    return f"{within}{error.strerror or error}"


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Each text as the file of its name, in folders within this one where the name has some, as UTF-8 with
    its line ends as they are. Returns the files."""
    files = [folder / name for name in texts]
    for file, text in zip(files, texts.values(), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return files
